"""What the index holds of a conversation: messages whole where they fit, split at seams where they do not."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mempersist.archive import graph
from mempersist.archive.model import Node
from mempersist.index.chunking import Chunk, chunk_conversation, estimate_tokens, split
from tests.rigs import conversations as make

any_text = st.text(alphabet=st.characters(codec=None))


def chunked(nodes: list[Node], current: str | None = None) -> tuple[Chunk, ...]:
    active = graph.active_path(graph.parents_of(nodes), current or nodes[-1].source_node_id).node_ids
    return chunk_conversation("c", "g", nodes, active)


def chain(*texts: str) -> list[Node]:
    return list(make.chain("c", *texts).nodes)


def test_35_messages_of_an_events_size_are_35_chunks_of_one_source_each() -> None:
    chunks = chunked(chain(*[f"event {index}: " + "what happened then " * 15 for index in range(35)]))
    assert len(chunks) == 35
    assert all(len(chunk.sources) == 1 for chunk in chunks)


def test_short_neighbours_share_a_chunk_up_to_six() -> None:
    chunks = chunked(chain(*["short"] * 14))
    assert [len(chunk.sources) for chunk in chunks] == [6, 6, 2]


def test_a_group_stays_under_320_tokens() -> None:
    chunks = chunked(chain(*["w" * 180] * 9))
    assert [len(chunk.sources) for chunk in chunks] == [5, 4]


def test_a_chunk_says_who_speaks() -> None:
    (chunk,) = chunked(chain("ask", "answer"))
    assert chunk.body == "[user]\nask\n\n[assistant]\nanswer"


def test_headed_sections_begin_at_their_heading() -> None:
    text = "\n\n".join(f"## Section {index}\n\n" + "words of it " * 250 for index in range(6))
    parts = [text[start:end] for start, end in split(text)]
    assert len(parts) > 1
    assert all(part.startswith("## Section") for part in parts)


def test_a_long_message_in_many_scripts_with_code_is_split_without_a_gap() -> None:
    text = ("Ein Absatz über Größe. 漢字とかな。 हिन्दी पाठ। 🙂\n\n```python\nprint('x')\n```\n\n" * 300)[:-7]
    chunks = chunked([make.node("n", None, text)])
    assert len(chunks) > 5
    assert all(chunk.token_estimate <= 1810 for chunk in chunks)
    ranges = [(chunk.sources[0].start, chunk.sources[0].end) for chunk in chunks]
    assert [start for start, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == len(text)


@settings(max_examples=60, deadline=None)
@given(any_text.filter(bool), st.integers(1, 4000))
def test_any_text_is_covered_without_overlap_in_parts_that_fit(text: str, times: int) -> None:
    long = text * times
    ranges = list(split(long[:40_000]))
    assert "".join(long[start:end] for start, end in ranges) == long[:40_000]
    assert all(estimate_tokens(long[start:end]) <= 1800 for start, end in ranges)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["a", "bb " * 30, "ccc " * 60]), min_size=1, max_size=14), st.integers(1, 14))
def test_an_append_changes_no_chunk_but_the_last(texts: list[str], cut: int) -> None:
    before, after = chunked(chain(*texts[:cut])), chunked(chain(*texts))
    assert [chunk.id for chunk in before[:-1]] == [chunk.id for chunk in after[: len(before) - 1]]


@settings(max_examples=60, deadline=None)
@given(make.conversations("c"))
def test_each_message_with_text_is_indexed_once(source: object) -> None:
    nodes = list(source.nodes)  # type: ignore[attr-defined]
    active = graph.active_path(graph.parents_of(nodes), source.current_source_node_id)  # type: ignore[attr-defined]
    found = [
        item.source_node_id
        for chunk in chunk_conversation("c", "g", nodes, active.node_ids)
        for item in chunk.sources
        if item.start == 0
    ]
    reachable = {
        node
        for branch in graph.alternate_branches(graph.parents_of(nodes), active.node_ids)
        for node in branch.node_ids
    } | set(active.node_ids)
    expected = [node.source_node_id for node in nodes if node.is_message and node.text.strip()]
    assert len(found) == len(set(found))
    assert set(found) == set(expected) & reachable


def test_hidden_and_blank_messages_are_left_out() -> None:
    nodes = [make.node("a", None, "system", hidden=True), make.node("b", "a", " \n"), make.node("c", "b", "said")]
    (chunk,) = chunked(nodes)
    assert [source.source_node_id for source in chunk.sources] == ["c"]
