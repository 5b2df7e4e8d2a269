import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from engine_stage import source
from explorer.reports.render import dangling_ids, problem_of, reference, render
from explorer.schema.events import Source
from explorer.text.citations import cited_ids
from explorer.text.frontmatter import with_frontmatter, without_frontmatter
from explorer.text.words import count_words, phrase_language

SOURCES = {identifier: source(identifier) for identifier in ("S1", "S2", "S3", "S12")}
WORDS = "Twelve words or more are needed before a draft is taken for a report at all. "


def body(draft: str) -> str:
    """The rendered prose, without the references."""
    return render(draft, SOURCES, "en").text.split("\n\n## References")[0].rstrip("\n")


def test_citations_are_numbered_in_order_of_first_use() -> None:
    """Each id gets one number, wherever it comes again, alone or among others; the references follow the numbers."""
    draft = "A [S12]. B [S1, S12]; C [S1;S2] [S12]."
    rendered = render(draft, SOURCES, "en")
    assert rendered.text.startswith("A [1]. B [2][1]; C [2][3] [1].\n\n## References\n\n1. Title of S12.")
    assert (rendered.cited, len(cited_ids(draft)), dangling_ids(draft, SOURCES)) == (("S12", "S1", "S2"), 6, [])
    assert [line[:2] for line in rendered.text.splitlines()[-3:]] == ["1.", "2.", "3."]
    assert "S3" not in rendered.text


def test_ids_without_a_source_cannot_be_rendered() -> None:
    """They become words that say so, are listed, and the others keep their numbers."""
    draft = "A [S99]. B [S1, S98] C [S99]."
    rendered = render(draft, SOURCES, "en")
    assert rendered.text.startswith("A [source missing]. B [1][source missing] C [source missing].")
    assert (rendered.cited, len(cited_ids(draft)), dangling_ids(draft, SOURCES)) == (("S1",), 4, ["S98", "S99"])


def test_code_cites_nothing() -> None:
    """An index in code stays as it is, in a block or inside a line; an id that is only dressed up as code is one."""
    block = "```python\nrow[S1] = [S99]\n```"
    assert body(f"Fact [S2].\n\n{block}\n\nMore [S2].") == f"Fact [1].\n\n{block}\n\nMore [1]."
    assert body("Use `row[S99]` and `x` [S1]`y` here.") == "Use `row[S99]` and `x` [1]`y` here."
    assert body("Said so (`[S1]`), and `[S1, S2]`.") == "Said so ([1]), and [1][2]."
    assert body("An open `tick [S1].\n\n```\nnever closed [S2]") == "An open `tick [1].\n\n```\nnever closed [2]"
    assert dangling_ids(WORDS + "`row[S99]`", SOURCES) == []


def test_what_only_looks_like_a_citation_stays() -> None:
    """Links, notes and other brackets are the writer's own."""
    text = "See [S1 alone] and [s1], [1], [SX], S1, [link](https://example.com/[S]) and [ S1 ]."
    assert body(text) == text
    assert body("Hers [1] is not ours [S1].") == "Hers [1: no source] is not ours [1]."
    assert body("A linked [S1](https://example.com).") == "A linked [1](https://example.com)."


def test_no_line_of_a_report_says_where_its_numbers_lead() -> None:
    """A definition, which no viewer shows, would make a link to anywhere of each citation."""
    evil = "https://evil.example/"
    for draft in (f"[S1]: {evil}", f"[1]: {evil}", f"> - [S1]: {evil}", f"[S2][x] more\n\n[x]: {evil}"):
        shown = MarkdownIt().render(body(f"It is so [S1].\n\n{draft}"))
        assert "<p>It is so [1].</p>" in shown
        assert f'<a href="{evil}">2</a>' not in shown
    assert body("So [S1].\n\n[S1]: It is so.") == "So [1].\n\n[1]\\: It is so."


def test_without_citations_there_are_no_references() -> None:
    """Nothing is added to a text that cites nothing."""
    assert render("Plain.", SOURCES, "en").text == "Plain.\n"


def test_the_heading_is_in_the_reports_language() -> None:
    """Chinese for Chinese, English for what is not known."""
    assert "\n\n## 参考来源\n\n1. " in render("太阳能 [S1]", SOURCES, "zh").text
    assert "\n\n## References\n\n1. " in render("Energia [S1]", SOURCES, "pt").text


def test_a_reference_says_what_where_and_how_sure() -> None:
    """Title, site, date, address, honest flags, and the id under which the text is stored."""
    assert reference(source("S1", flags=("truncated", "http_403"))) == (
        "Title of S1. example.com, 2026-08-09, https://www.example.com/S1 (truncated, http 403) `S1`"
    )
    local = source("S2", url="file:inputs/notes.md", title="notes.md", published="")
    assert reference(local) == "notes.md. inputs/notes.md `S2`"
    assert reference(source("S3", title="Why?", kind="comments")).startswith("Why? (discussion). example.com")
    assert reference(source("S3", title="Why?")).startswith("Why? example.com")


def test_a_reference_cannot_break_the_report() -> None:
    """Markup in a title is shown, an address stays as it is, and one that is none does no harm."""
    assert reference(source("S1", title="[x](y) <b> `c` *d*")).startswith(r"\[x\](y) \<b\> \`c\` \*d\*. ")
    assert "https://example.com/a?.b!.c" in reference(source("S1", url="https://example.com/a?.b!.c"))
    assert "http://[broken" in reference(source("S1", url="http://[broken"))


def test_a_title_begins_no_block_of_markdown() -> None:
    """A chapter such as `9. Classes`, a bare year, and a title that begins with a dash are lines of one list."""
    for title in ("9. Classes", "1984", "2) Two", "- a dash", "+ more", "# 1 of all", "-", "3.5 metres", "C# in depth"):
        html = MarkdownIt("commonmark").render(f"1. {reference(source('S1', title=title))}")
        assert html.startswith(f"<ol>\n<li>{title}"), html


def test_sample_sources_are_called_so_once() -> None:
    """Invented data is said to be invented above the references, if all of it is."""
    invented = {"S1": source("S1", flags=("sample",)), "S2": source("S2", flags=("sample",))}
    text = render("A [S1]. B [S2].", invented, "en").text
    assert text.count("invented sample data") == 1
    assert "invented" not in render("A [S1].", SOURCES, "en").text


words = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]) | st.sampled_from(["\n", "\t", "-", "'", ":"])
)


@example({"question": "a\n---\nb: c\n---\n"}, "body")
@given(st.dictionaries(st.sampled_from(["question", "status", "n"]), words | st.integers() | st.none()), st.text())
def test_a_frontmatter_is_read_back(fields: dict[str, str | int | None], text: str) -> None:
    """Whatever a question holds: the head is YAML that gives it back, and the body below it is whole."""
    assert_that_head_and_body_come_back({"run_id": "x", **fields}, text)


def assert_that_head_and_body_come_back(fields: dict[str, str | int | None], text: str) -> None:
    """Write, split, parse."""
    clean = "".join(c for c in text if c.isprintable()).lstrip("\n")
    written = with_frontmatter(fields, clean)
    assert without_frontmatter(written) == clean
    head = written.split("\n---\n")[0].removeprefix("---\n")
    assert yaml.safe_load(head) == fields


def test_a_rule_of_dashes_is_no_frontmatter() -> None:
    """Only fields between dashes are taken off; a writer's own rule stays."""
    assert without_frontmatter("---\ntitle: x\n---\n\nBody") == "Body"
    for text in ("---\n# Title\n\nText.\n---\nMore", "---\nno end", "Text\n---\nmore", "---\n[unclosed\n---\nBody", ""):
        assert without_frontmatter(text) == text
    assert render("---\nstatus: draft\n---\n\nBody [S1]", SOURCES, "en").text.startswith("Body [1]")


def test_empty_drafts_and_placeholders_are_no_reports() -> None:
    """Whatever the model says, too little text or a promise of text is not handed over."""
    empty = "report.md is empty or a placeholder; have the report written first"
    for draft in (
        "",
        "# Report",
        "---\na: b\n---\n",
        "TODO: " + WORDS,
        "**Placeholder** " + WORDS,
        "Lorem ipsum " + WORDS,
    ):
        assert problem_of(draft, ()) == empty
    assert problem_of(WORDS, ()) == ""
    assert problem_of("太阳能发电量在五月增长了百分之十二。", ()) == ""
    assert problem_of("A TODO list app was shown. " + WORDS, ()) == ""


def test_dangling_ids_are_named_to_the_writer() -> None:
    """Each once, in order, with what to do."""
    dangling = dangling_ids(WORDS + "[S1] [S99] [S50, S99]", SOURCES)
    assert problem_of(WORDS, dangling) == (
        "report.md cites S50, S99, which no stored source has; "
        "correct or remove these citations (only ids that a tool showed exist)"
    )


def test_words_and_language() -> None:
    """A Chinese character counts as a word; mostly Chinese is Chinese, all else gets English words."""
    assert count_words("Output rose by 12 %.") == 4
    assert count_words("发电量 rose 12%") == 5
    assert phrase_language("五月的发电量如何？") == "zh"
    assert phrase_language("How was May for the plant?") == "en"
    assert phrase_language("What does 人工智能 mean in this long sentence?") == "en"
    assert phrase_language("") == "en"


def test_rendering_takes_any_source() -> None:
    """Odd titles and addresses from outside never stop a report from being written."""
    odd: dict[str, Source] = {"S1": source("S1", title="", url="", published="")}
    assert render("A [S1].", odd, "en").cited == ("S1",)
