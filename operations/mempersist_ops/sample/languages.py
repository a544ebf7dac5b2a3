"""Conversations in German, Indonesian, Hindi, Japanese and Chinese."""

from __future__ import annotations

from mempersist_ops.sample.builder import Raw, assistant, branch, conversation, user


def conversations() -> list[Raw]:
    return [*_german(), *_indonesian(), *_hindi(), *_japanese(), *_chinese()]


def _german() -> list[Raw]:
    bicycle = conversation(
        "fahrrad",
        "Fahrrad: die Kette springt über",
        52,
        [
            user("Beim Anfahren am Berg springt meine Fahrradkette über die kleinen Ritzel. Woran liegt das?"),
            assistant(
                "Meist sind Kette und Kassette gemeinsam verschlissen. Miss die Kettenlänge: Bei mehr als "
                "0,75 Prozent Dehnung tauschst du die Kette, und wenn sie danach auf den meistgefahrenen "
                "Ritzeln überspringt, auch die Kassette."
            ),
            user("Kann ich das selbst wechseln?"),
            assistant(
                "Ja, mit Kettennieter, Kettenpeitsche und dem passenden Abzieher. Rechne mit einer halben Stunde."
            ),
        ],
    )
    letter = conversation(
        "vermieter",
        "Brief wegen des Schimmels",
        58,
        [
            user(
                "Formuliere einen höflichen Brief an meinen Vermieter: In der Küche bildet sich hinter dem "
                "Kühlschrank Schimmel."
            ),
            assistant(
                "Sehr geehrte Frau Brandl,\n\nseit Anfang Februar bildet sich an der Außenwand der Küche "
                "Schimmel, obwohl wir regelmäßig lüften und heizen. Bitte teilen Sie uns bis zum 15. März "
                "mit, wann die Ursache untersucht wird.\n\nMit freundlichen Grüßen"
            ),
        ],
    )
    shorter = [
        user("Bitte kürzer und ohne Fristsetzung."),
        assistant("Liebe Frau Brandl, in unserer Küche schimmelt die Außenwand. Könnten Sie sich das bald ansehen?"),
    ]
    return [bicycle, branch(letter, 0, *shorter)]


def _indonesian() -> list[Raw]:
    return [
        conversation(
            "rendang",
            "Resep rendang dari Ibu",
            63,
            [
                user("Bagaimana cara memasak rendang daging supaya bumbunya meresap dan tidak cepat gosong?"),
                assistant(
                    "Pakai api kecil dan wajan yang tebal. Masak santan dengan lengkuas, serai, daun jeruk "
                    "dan cabai giling sampai mengental, baru masukkan daging. Aduk terus setelah minyaknya "
                    "keluar, kira-kira empat jam."
                ),
                user("Kalau tidak ada daun kunyit, bisa diganti apa?"),
                assistant(
                    "Tambahkan sedikit kunyit parut dan satu lembar daun salam. Aromanya tidak sama, tetapi tetap enak."
                ),
            ],
        ),
        conversation(
            "banda-neira",
            "Liburan ke Banda Neira",
            70,
            [
                user("Kapan waktu terbaik untuk berlibur ke Banda Neira, dan naik kapal apa dari Ambon?"),
                assistant(
                    "Bulan Oktober sampai awal Desember lautnya tenang. Dari Ambon ada kapal cepat dua kali "
                    "seminggu, sekitar enam jam, dan kapal Pelni yang lebih lambat tetapi jarang batal."
                ),
            ],
        ),
    ]


def _hindi() -> list[Raw]:
    return [
        conversation(
            "tamatar",
            "बालकनी में टमाटर",
            76,
            [
                user("बालकनी के गमले में टमाटर कैसे उगाऊँ? धूप केवल सुबह आती है।"),
                assistant(
                    "चेरी टमाटर लगाइए, उन्हें चार घंटे की धूप भी काफ़ी है। गमला कम से कम तीस सेंटीमीटर गहरा "
                    "हो, मिट्टी में एक तिहाई खाद मिलाइए और पानी सुबह जड़ों में दीजिए।"
                ),
                user("पत्तियाँ पीली क्यों पड़ रही हैं?"),
                assistant("अक्सर पानी ज़्यादा होने से। दो दिन मिट्टी सूखने दीजिए और गमले का छेद देखिए।"),
            ],
        ),
        conversation(
            "varanasi",
            "वाराणसी की रेल यात्रा",
            80,
            [
                user("दिल्ली से वाराणसी की रात की ट्रेन में सबसे आरामदायक डिब्बा कौन सा है?"),
                assistant("दो टियर वातानुकूलित डिब्बा। नीचे की बर्थ माँगिए, और सुबह की आरती के लिए स्टेशन से सीधे घाट जाइए।"),
            ],
        ),
    ]


def _japanese() -> list[Raw]:
    return [
        conversation(
            "miso",
            "味噌汁のだしの取り方",
            85,
            [
                user("昆布と鰹節で味噌汁のだしを取るとき、どのくらいの温度がいいですか。"),
                assistant(
                    "昆布は水から入れて六十度で三十分、沸騰する前に取り出します。火を止めてから鰹節を入れ、"
                    "二分たったら濾してください。味噌は最後に溶き、煮立てないこと。"
                ),
                user("残っただしは何日もちますか。"),
                assistant("冷蔵庫で三日、冷凍なら一か月です。"),
            ],
        ),
        conversation(
            "ownership",
            "Rustの所有権がわからない",
            88,
            [
                user("Rustで変数を関数に渡したら使えなくなりました。所有権とは何ですか。"),
                assistant(
                    "値には持ち主が一人だけいます。関数に渡すと持ち主が変わるので、元の変数は使えません。"
                    "参照`&value`を渡せば、貸すだけで済みます。"
                ),
            ],
        ),
    ]


def _chinese() -> list[Raw]:
    return [
        conversation(
            "fanqie",
            "阳台种番茄的问题",
            93,
            [
                user("阳台朝东，只有上午有太阳，可以种番茄吗？花开了却不结果。"),
                assistant(
                    "可以，选矮生的樱桃番茄。开花时轻轻摇一摇植株帮助授粉，夜里温度不要低于十三度，"
                    "氮肥少用一些，多给钾肥。"
                ),
                user("叶子背面有白色的小虫怎么办？"),
                assistant("那是粉虱。挂黄色粘虫板，用稀释的肥皂水喷叶背，连续三次，每次隔五天。"),
            ],
        ),
        conversation(
            "dengta",
            "小说大纲：守灯塔的人",
            97,
            [
                user("帮我写一个短篇小说的大纲：守灯塔的人每晚都收到同一封信。"),
                assistant(
                    "第一章，信里只有一句话：明天不要点灯。第二章，他查出寄信人是十年前遇难的船长。第三章，"
                    "暴风雨的夜里，他必须决定相信谁。"
                ),
            ],
        ),
    ]
