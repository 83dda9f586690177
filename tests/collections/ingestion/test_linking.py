"""Key points and links by rule."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from apps.collections.ingestion.linking import REVERSE, Link, LinkableChunk, passage_links, passage_points

DUTY = LinkableChunk(
    "The duty on zirconium tubes is five percent. It falls due at entry.", ("Duties", "Metals")
)
LAMPS = LinkableChunk("Lamps are entered under another heading of the schedule.", ("Duties", "Lamps"))
BONDS = LinkableChunk("Every importer files a bond before anything else.", ("Bonds",))
CASES = LinkableChunk("A ruling of 2019 put zirconium tubes beside pipes.", ("Rulings",))


def _of(links: list[Link], source: int) -> set[tuple[int, str, str]]:
    return {(x.target, x.relation, x.common_topic) for x in links if x.source == source}


def test_neighbours_are_linked_by_order_with_the_heading_they_share() -> None:
    links = passage_links([DUTY, LAMPS, BONDS])
    assert (1, "next", "Duties") in _of(links, 0)
    assert (0, "previous", "Duties") in _of(links, 1)
    assert (2, "next", "") in _of(links, 1)


def test_passages_that_share_a_rare_term_are_linked_by_it_as_written() -> None:
    links = passage_links([DUTY, LAMPS, BONDS, CASES])
    shared = {(t, topic) for t, relation, topic in _of(links, 0) if relation == "shares_terms"}
    assert len(shared) == 1
    target, topic = shared.pop()
    assert target == 3
    assert topic in ("zirconium", "tubes")


def test_section_is_linked_with_the_chunk_that_opens_the_one_around_it() -> None:
    opener = LinkableChunk("Duties are laid down here.", ("Duties",))
    links = passage_links([opener, DUTY, LAMPS])
    assert (0, "parent", "Duties") in _of(links, 2)
    assert (2, "child", "Duties") in _of(links, 0)


def test_term_in_many_chunks_joins_nothing() -> None:
    many = [LinkableChunk(f"Customs form number{i} applies.", (f"S{i}",)) for i in range(40)]
    assert not [x for x in passage_links(many) if x.relation == "shares_terms"]


def test_points_are_sentences_of_the_text_in_their_order() -> None:
    text = (
        "It is so. The duty on zirconium tubes is five percent ad valorem. As was said above it is so again. "
        "Entry is at the port of unlading, unless the surety bond names another."
    )
    (points,) = passage_points([LinkableChunk(text)])
    assert points == sorted(points, key=text.index)
    assert any("zirconium" in point for point in points)


def test_table_and_code_say_what_they_are() -> None:
    points = passage_points(
        [
            LinkableChunk("a | b\n1 | 2", is_table=True),
            LinkableChunk("def f():\n    return 1", lead="Return one."),
        ]
    )
    assert points[0] == ["a | b"]
    assert points[1][0] == "Return one."


PASSAGES = st.lists(
    st.builds(
        LinkableChunk,
        text=st.text(max_size=200),
        headings=st.lists(st.sampled_from(["A", "B", "C"]), max_size=3).map(tuple),
        is_table=st.booleans(),
        lead=st.text(max_size=30),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(PASSAGES)
def test_every_link_has_its_way_back_and_leads_elsewhere(passages: list[LinkableChunk]) -> None:
    links = passage_links(passages)
    keys = {(x.source, x.target, x.relation) for x in links}
    assert len(keys) == len(links)
    assert all((t, s, REVERSE[r]) in keys and s != t for s, t, r in keys)
    assert all(0.0 <= x.weight <= 1.0 for x in links)
    assert len(passage_points(passages)) == len(passages)
