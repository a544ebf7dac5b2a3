"""Words too common to look for, in some languages. A query of nothing else is still asked."""

from __future__ import annotations

from typing import Final

_ENGLISH = """
a about after all also am an and any are as at be been before being but by can could did do does doing for
from had has have having he her here hers him his how i if in into is it its just me more most my no nor not
of off on once only or other our out over own s same she should so some such t than that the their them then
there these they this those to too under until up very was we were what when where which while who whom why
will with would you your
"""
_INDONESIAN = """
ada adalah agar akan aku anda apa apakah atau bagaimana bahwa banyak beberapa bisa bukan dalam dan dapat dari
dengan di dia hanya harus ini itu jadi jika juga kami kamu kapan karena ke kenapa kita lagi lebih mana masih
mengapa mereka oleh pada para saat saja sangat saya sebagai sebuah sedang seperti siapa sudah tapi telah
tentang tetapi tidak untuk yang
"""
_GERMAN = """
aber als am an auch auf aus bei bin bis bist da damit dann das dass dein dem den der des die dies diese doch
du durch ein eine einem einen einer eines er es für hat hatte hier ich ihr im in ist ja kann kein keine man
mein mich mir mit nach nicht noch nur oder ob sein seine sich sie sind so über um und uns unter vom von vor
war was weil wenn wer wie wir wird wo zu zum zur
"""
_HINDI = """
और का की के को में से है हैं था थी थे पर यह वह जो तो ही भी एक कि ने या क्या कैसे मैं हम आप
"""

STOP_WORDS: Final[frozenset[str]] = frozenset(f"{_ENGLISH} {_INDONESIAN} {_GERMAN} {_HINDI}".split())
