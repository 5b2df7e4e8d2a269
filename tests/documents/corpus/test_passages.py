"""Cutting texts into passages, and snippets out of them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.documents.corpus.passages import MAX_CHARS, SNIPPET_CHARS, page_at, passages_of, snippet
from thoroughness import examples

BITS = st.sampled_from(["word ", "a sentence. ", "\n", "\n\n", "\n## Heading\n", "x" * 700, "数据库。", "。", "\t"])


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(BITS, max_size=300).map("".join))
def test_passages_join_to_the_whole(text: str) -> None:
    """Nothing but blank space is left out, nothing stands in two passages, and none is too long."""
    passages = list(passages_of(text))
    assert all(0 < passage.end - passage.start <= MAX_CHARS for passage in passages)
    last = 0
    for passage in passages:
        assert passage.start >= last
        assert not text[last : passage.start].strip()
        last = passage.end
    assert not text[last:].strip()


def test_borders_are_paragraphs_where_there_are_any() -> None:
    """A passage ends with a paragraph, and a heading begins the next one."""
    paragraph = "The harbour was quiet that morning. " * 12
    text = f"{paragraph}\n\n{paragraph}\n\n{paragraph}\n## Ropes\n\n{paragraph}\n\n{paragraph}"
    first, second, *_ = [text[passage.start : passage.end] for passage in passages_of(text)]
    assert first.rstrip().endswith("morning.")
    assert second.startswith("## Ropes")


def test_no_passage_reaches_over_a_page() -> None:
    """Each passage is on one page, and knows which; pages without text are left out of the count of starts."""
    text = "front\n\n[page 1]\none\n\n[page 3]\nthree"
    starts = ((text.index("[page 1]"), 1), (text.index("[page 3]"), 3))
    found = [(text[passage.start : passage.end].strip(), passage.page) for passage in passages_of(text, starts)]
    assert found == [("front", 0), ("[page 1]\none", 1), ("[page 3]\nthree", 3)]
    assert page_at(len(text), starts) == 3


def test_a_snippet_shows_where_the_words_are() -> None:
    """The stretch with most of the words is shown, verbatim, whatever their endings, case or marks."""
    text = f"{'Nothing here. ' * 40}The Café paid for the ropes in May. {'Nothing there. ' * 40}"
    shown = snippet(text, ["cafe", "rope", "pays"])
    assert "The Café paid for the ropes in May." in shown
    assert len(shown) <= SNIPPET_CHARS + 8
    assert shown.strip(". ") in text
    assert snippet("short", ["x"]) == "short"
    chinese = f"{'没有内容。' * 100}数据库的维护成本下降。{'没有内容。' * 100}"
    assert "维护成本" in snippet(chinese, ["维 护", "成 本"])
