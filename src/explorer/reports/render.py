"""Renders a draft as a report: citations become numbered references, and nothing in it is loaded from the network."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from explorer.schema.events import Source
from explorer.text.citations import CITATION, HEADING_REFERENCES, MISSING, cited_ids
from explorer.text.frontmatter import without_frontmatter
from explorer.text.rendering import codes, own
from explorer.text.urls import site_of
from explorer.text.words import count_words
from explorer.workspace.source_store import plain_flags

PLACEHOLDER = re.compile(
    r"\W*(?:(?:todo|tbd|placeholder|lorem ipsum|to be written|coming soon|report goes here)\b"
    r"|(?:soon|pending|in progress|done|finished|report|the report|n/?a|see above|待写|待补充|待定)\W*\Z)",
    re.IGNORECASE,
)
"""The pattern of a text that is only a placeholder for a report; a short text with content does not match."""
HEADINGS = re.compile(r"^ {0,3}#{1,6}(?:\s.*)?$", re.MULTILINE)
OWN_NUMBER = re.compile(
    r"(?:(?<![\w\]])|(?<=[a-z]{3})(?=\[[^\]]*\](?:[.,;!?](?:\s|$)|$)))"
    r"\[(?P<number>[1-9]\d?|\^\w{1,20})(?:: no source)?\](?![(\[:=]|\.[a-z_])",
    re.MULTILINE,
)
"""The pattern of a writer's own numbers, `[1]` and `[^1]`; `row[1] is` does not match, because it is code.

After a letter, a number matches only at the end of a clause.
"""
NO_SOURCE = "[{number}: no source]"
"""The text that replaces a writer's own number, so that readers do not take it for the number of a reference."""
AS_DEFINITION = re.compile(r"^(?P<before>(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*)\[(?P<number>\d+)\]:", re.MULTILINE)
"""The pattern of a number at the beginning of a line that defines, for a viewer, where all such numbers lead."""
AS_LABEL = re.compile(r"\[(?!S\d)")
"""The pattern of a label behind a citation, which a viewer would take for the address of it."""
KIND_WORDS = {"comments": "discussion", "search_hit": "search result"}
SAMPLE_FLAG = "sample"
"""The flag of bundled, invented sources; references do not show it, but a note says when all of them have it."""
SAMPLE_WORDS = {
    "en": "All sources are invented sample data.",
    "zh": "全部来源均为虚构的示例数据。",
    "de": "Alle Quellen sind erfundene Beispieldaten.",
}
HEADING_FURTHER = {"en": "Further links", "zh": "延伸阅读", "de": "Weitere Links"}
IMAGE = (
    r"!\[(?P<shows>(?:(?!!\[)(?:[^\[\]\\`<]|\\[^`<]|\[[^\[\]`<]*\]))*)\]"
    r"\((?P<path><[^<>`]*>|[^()<>`\s]*)(?:[ \t]+\"[^\"`<]*\")?\)"
    r"|(?P<bang>!)(?=\[)"
)
IMAGES = re.compile(IMAGE)
RISKY = re.compile(
    rf"\\.|{IMAGE}"
    r"|<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\x00-\x20\x7f<>`\[]*|[\w.+-]+@[\w.-]+)>"
    r"|(?<=[\w.,;:)])</?(?:br|sub|sup)\s*/?>"
    r"|(?P<code>`[^`]+`)"
    r"|(?P<tag><)(?=[A-Za-z/!?])"
)
"""The pattern of escapes, images, addresses in angle brackets, small tags, possible code and all other HTML."""
LOADING_TAG = re.compile(r"<(?=[a-z][a-z0-9-]*[\s/]+[^\s/>]|(?:style|script)\b)", re.IGNORECASE)
MAX_BLOCKS_CHARS = 300_000
"""The length in characters up to which a text is searched for blocks of code; a longer search would take too long.
"""
MAX_ROUNDS = 5
"""The number of times that blocks of code are searched for, because each added blank line can change the blocks."""
LOCAL = re.compile(r"(?!/)[\w./%+,@=~ -]+")


@dataclass(frozen=True)
class Rendered:
    """The body of a report with numbered references, and what it cites."""

    text: str
    cited: tuple[str, ...]
    """The ids of the cited sources, in the order of their numbers."""


def is_placeholder(text: str) -> bool:
    """Return whether a report has no content: it is empty, has only headings, or is a placeholder."""
    prose = HEADINGS.sub("", without_frontmatter(text))
    return not count_words(prose) or PLACEHOLDER.match(prose) is not None


def dangling_ids(text: str, sources: Mapping[str, Source]) -> list[str]:
    """Return the ids that a draft cites and no source has, sorted."""
    return sorted({identifier for identifier in cited_ids(without_frontmatter(text)) if identifier not in sources})


def problem_of(text: str, dangling: Sequence[str]) -> str:
    """Return the reason, as a message to the model, why a draft cannot become the report; empty when it can.

    Args:
        text: The draft.
        dangling: The ids that the draft cites and no source has.
    """
    if is_placeholder(text):
        return own("report.md is empty or a placeholder; have the report written first")
    if dangling:
        return own(
            "report.md cites {ids}, which no stored source has; correct or remove these citations (only ids that a "
            "tool showed exist)",
            ids=codes(dangling),
        )
    return own("")


def image_problem(text: str, has_file: Callable[[str], bool]) -> str:
    """Return the reason, as a message to the model, why a draft's images cannot be shown; empty when they can."""
    lines = [line for line, is_code in _lines(without_frontmatter(text)) if not is_code]
    paths = [path for line in lines for found in RISKY.finditer(line) if (path := _local(found))]
    missing = [path for path in dict.fromkeys(paths) if not has_file(path)]
    if not missing:
        return own("")
    return own(
        "report.md shows {paths}, which is not a file of this run; correct the path (list_files shows all files) or "
        "take the image out",
        paths=", ".join(missing),
    )


def render(
    draft: str,
    sources: Mapping[str, Source],
    language: str,
    has_file: Callable[[str], bool] = lambda _: True,
    recommended: Sequence[str] = (),
) -> Rendered:
    """Number the citations in order of first use, append the references, and remove all that would load by itself.

    Args:
        draft: Markdown with `[S12]` citations.
        sources: All sources of the run, by id.
        language: The language of headings and notes: `en`, `zh` or `de`.
        has_file: Returns whether a path is a file of the run, so that it can be shown as an image.
        recommended: The ids of sources to list below the references, unless they are cited.
    """
    body = without_network(without_frontmatter(draft).strip(), has_file)
    cited = list(dict.fromkeys(identifier for identifier in cited_ids(body) if identifier in sources))
    numbers = {identifier: number for number, identifier in enumerate(cited, 1)}

    def numbered(found: "re.Match[str]") -> str:
        if found["ids"] is None:
            return found[0]
        ids = re.findall(r"S\d+", found["ids"])
        shown = "".join(f"[{numbers[name]}]" if name in numbers else MISSING for name in ids)
        return f"{shown} " if AS_LABEL.match(found.string, found.end()) else shown

    text = CITATION.sub(numbered, _without_own_numbers(body) if cited else body)
    if cited:
        text = AS_DEFINITION.sub(r"\g<before>[\g<number>]\\:", text)
        heading = HEADING_REFERENCES.get(language, HEADING_REFERENCES["en"])
        lines = [RISKY.sub(_tamed, f"{numbers[name]}. {reference(sources[name])}") for name in cited]
        is_sample = all(SAMPLE_FLAG in sources[name].flags for name in cited)
        sample_note = [SAMPLE_WORDS.get(language, SAMPLE_WORDS["en"]), ""] if is_sample else []
        text = f"{text}\n\n## {heading}\n\n" + "\n".join([*sample_note, *lines])
        text += _further([sources[name] for name in recommended if name not in numbers], language)
    return Rendered(text + "\n", tuple(cited))


def _further(sources: Sequence[Source], language: str) -> str:
    """Return the list of further links with its heading, as a part of the references; empty without sources."""
    heading = HEADING_FURTHER.get(language, HEADING_FURTHER["en"])
    lines = [RISKY.sub(_tamed, f"- {reference(source)}") for source in sources]
    return f"\n\n### {heading}\n\n" + "\n".join(lines) if lines else ""


def _without_own_numbers(body: str) -> str:
    """Return a body in which each number of the writer's own is marked as without a source; code is not changed."""
    pieces: list[str] = []
    place = 0
    for found in [*CITATION.finditer(body), None]:
        end = len(body) if found is None else found.start()
        numbers = OWN_NUMBER.finditer(body, place, end)
        for mark in numbers:
            pieces += [body[place : mark.start()], NO_SOURCE.format(number=mark["number"])]
            place = mark.end()
        pieces.append(body[place : len(body) if found is None else found.end()])
        place = len(body) if found is None else found.end()
    return "".join(pieces)


def without_network(text: str, has_file: Callable[[str], bool] = lambda _: True) -> str:
    """Return markdown from which a viewer loads nothing external, because an image's address could send a secret out.

    External images become links, and HTML becomes visible text. Code within a line cannot be recognised reliably from
    that line alone, so possible code is changed too, but less: it may show an additional space.
    """

    def image(found: "re.Match[str]") -> str:
        path = _local(found)
        return f"(image missing: {found['shows'] or path})" if path and not has_file(path) else _tamed(found)

    return "\n".join(line if is_code else RISKY.sub(image, line) for line, is_code in _lines(text))


def _tamed(found: "re.Match[str]") -> str:
    """Return the harmless text that replaces a match of `RISKY` or `IMAGES`."""
    shows = found["shows"]
    if shows is not None and not _local(found):
        gap = " " if found.start() and found.string[found.start() - 1] == "!" else ""
        return f"{gap}[{shows or 'image'}{found[0][2 + len(shows) :]}"
    if found["bang"]:
        return "! "
    kind = found.lastgroup
    if kind == "code":
        return LOADING_TAG.sub("< ", IMAGES.sub(_tamed, found[0]))
    return "&lt;" if kind == "tag" else found[0]


def _local(found: "re.Match[str]") -> str:
    """Return the path of an image under the report's folder; empty for every other match."""
    address = (found["path"] or "").strip("<>")
    path = unquote(address).removeprefix("./")
    is_beneath = LOCAL.fullmatch(address) and LOCAL.fullmatch(path) and ".." not in path.split("/")
    return path if is_beneath else ""


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Return the lines of a text, each with whether it is in a fenced block of code for every viewer.

    HTML is read as plain text, because a report is shown without HTML; otherwise it could change where a block ends. A
    blank line is added before a block that directly follows other text, because some viewers would read the block as a
    row of a table.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for _ in range(MAX_ROUNDS):
        blocks = _fences(lines)
        joined = [first for first, _ in blocks if first and lines[first - 1].strip(" \t>")]
        if not joined:
            code = {number for first, end in blocks for number in range(first, end)}
            return ((line, number in code) for number, line in enumerate(lines))
        for first in reversed(joined):
            lines.insert(first, _marks_of_quote(lines[first]))
    return ((line, False) for line in lines)


def _marks_of_quote(line: str) -> str:
    """Return the text of a blank line that belongs to the same quotation as `line`: its leading `>` marks."""
    return line[: len(line) - len(line.lstrip(" \t>"))].rstrip()


def _fences(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return the first line of each fenced block of code, and the line after its last, both counted from 0."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only reports need it

    text = "\n".join(lines)
    if len(text) > MAX_BLOCKS_CHARS:
        return []
    reader = MarkdownIt("commonmark", {"html": False}).disable("inline")
    return [(block.map[0], block.map[1]) for block in reader.parse(text) if block.type == "fence" and block.map]


def reference(source: Source) -> str:
    """Return a source as a line of the references: title, kind, site, date, address, flags and id."""
    title = re.sub(r"([\[\]\\`*_<>])", r"\\\1", source.title)
    kind = KIND_WORDS.get(source.kind, "")
    site = site_of(source.url)
    address = source.url if "://" in source.url else source.url.removeprefix("file:")
    head = f"{title} ({kind})" if kind else title
    end = "" if head.endswith(("?", "!", ".")) else "."
    flags = [flag for flag in plain_flags(source.flags) if flag != SAMPLE_FLAG]
    marks = f" ({', '.join(flags)})" if flags else ""
    parts = [part for part in (site, source.published[:10], address) if part]
    return f"{_inline(head + end)} {', '.join(parts)}{marks} `{source.id}`"


def _inline(title: str) -> str:
    """Return a title that begins no block of markdown: `9. Classes` would be a list in the list of references."""
    return re.sub(r"^(\d+(?=[.)](?:\s|$))|(?=[-+#]))", r"\1\\", title)
