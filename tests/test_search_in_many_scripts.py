"""Words are found in any script, with spaces or without, just written or indexed."""

from __future__ import annotations

import pytest

from mempersist.archive.model import OWNER
from mempersist.search.query import search
from tests.rigs.worlds import World, drain, memory_world
from tests.rigs.writes import store

TEXTS = {
    "English": "How do I feed a sourdough starter every morning before work?",
    "Indonesian": "Resep rendang daging sapi khas Padang dengan santan kental",
    "German": "Die Größe der Wohnung beträgt achtzig Quadratmeter",
    "Hindi": "मुझे हिन्दी में किताब पढ़ना पसंद है",
    "Japanese": "京都で紅葉を見るのに最適な時期はいつですか",
    "Chinese": "使用Python编程来分析数据非常方便",
    "Thai": "ฉันชอบกินข้าวผัดกุ้งกับเพื่อน",
    "Arabic": "كيف أتعلم اللغة العربية بسرعة",
    "Korean": "서울에서 맛있는 김치찌개를 먹었다",
    "Code": "call foo_bar.baz in v1.2.3 of lib-x: TypeError cannot unpack",
    "Filler": "nothing that any of these queries asks about",
}
QUERIES = [
    ("English", "sourdough"),
    ("English", "feeding starters"),
    ("English", "SOURDOUGH!"),
    ("Indonesian", "rendang santan"),
    ("German", "Größe"),
    ("German", "GRÖSSE der wohnung"),
    ("German", "betragt"),
    ("Hindi", "किताब"),
    ("Hindi", "हिन्दी"),
    ("Japanese", "紅葉"),
    ("Japanese", "京都で紅葉を見る"),
    ("Chinese", "编程"),
    ("Chinese", "Python"),
    ("Chinese", "分析数据"),
    ("Thai", "ข้าวผัด"),
    ("Arabic", "العربية"),
    ("Korean", "김치"),
    ("Code", "foo_bar.baz"),
    ("Code", "1.2.3"),
    ("Code", "lib-x"),
    ("Code", "TypeError:"),
]


async def first(world: World, query: str) -> str | None:
    hits = (await search(world.ports, OWNER, query=query, limit=3)).results
    return hits[0].title if hits else None


@pytest.mark.parametrize(("language", "query"), QUERIES)
async def test_a_word_is_found_first_among_all_languages(language: str, query: str) -> None:
    world = await memory_world()
    for title, text in TEXTS.items():
        await store(world.ports, text, title=title)
    await drain(world)
    assert await first(world, query) == language


@pytest.mark.parametrize(("language", "query"), QUERIES)
async def test_a_word_is_found_before_it_is_indexed(language: str, query: str) -> None:
    world = await memory_world()
    await store(world.ports, TEXTS["Filler"], title="Filler")
    await store(world.ports, TEXTS[language], title=language)
    result = await search(world.ports, OWNER, query=query, limit=3)
    assert (result.results[0].title, result.results[0].sources) == (language, ("recent_canonical",))


async def test_marks_that_carry_meaning_are_not_dropped() -> None:
    world = await memory_world()
    await store(world.ports, "काम", title="work")
    await store(world.ports, "कम", title="less")
    await drain(world)
    assert await first(world, "कम") == "less"
    assert await first(world, "काम") == "work"
