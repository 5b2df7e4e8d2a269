"""A report taken apart: blocks of markdown, sentences with the sources they cite, and the passages they quote."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from explorer.reports.verify.claims import without_notice, without_unsupported_marks
from explorer.reports.verify.plain import plain, words
from explorer.text.citations import CITATION
from explorer.text.frontmatter import without_frontmatter
from explorer.text.words import count_words, is_mostly_cjk, sentence_ends

MAX_QUOTE_CHARS = 3_000
LEAST_WORDS = 3
"""Fewer words in quotes may be the writer's own, or the short form of a title."""
QUOTED = re.compile(
    "|".join(
        [
            rf"“(?:[^“”]|“[^“”]{{0,400}}”){{1,{MAX_QUOTE_CHARS}}}”",
            rf"„[^„“”]{{1,{MAX_QUOTE_CHARS}}}[“”]",
            rf"«[^«»]{{1,{MAX_QUOTE_CHARS}}}»",
            rf"「[^「」]{{1,{MAX_QUOTE_CHARS}}}」",
            rf"『[^『』]{{1,{MAX_QUOTE_CHARS}}}』",
            rf'(?<![A-Za-z0-9"])"(?=[^\s"])[^"]{{1,{MAX_QUOTE_CHARS}}}(?<=\S)"(?![A-Za-z0-9])',
            r"(?<![\w\u2019])\u2018(?=[^\s\u2018])(?:[^\u2018\u2019]|\u2019(?=\w)){3,400}[^\u2018\u2019\s]\u2019(?!\w)",
            r"(?<![\w'])'(?=[^\s'\d])(?:[^'\n]|'(?=\w)){3,400}[^'\s]'(?!\w)",
        ]
    )
)


class Quote(NamedTuple):
    """A passage in quotes, with its place in the sentence."""

    start: int
    end: int
    text: str
    """Text without the quotation marks."""


def quotes(sentence: str) -> Iterator[Quote]:
    """Yield the quoted passages, outermost only."""
    for found in QUOTED.finditer(sentence):
        yield Quote(found.start(), found.end(), found[0][1:-1].strip())


def is_short(quote: str) -> bool:
    """Return whether a quote is too short to hold its writer to it."""
    shown = words(plain(quote))
    return len(shown) < (LEAST_WORDS if not is_mostly_cjk(quote) else LEAST_WORDS + 2)


FENCE = re.compile(r"^ {0,3}(`{3,}+(?!.*`)|~{3,}+)")
"""The start or the end of a block of code; with backticks behind it, a line of backticks is code within a line."""
HEADING = re.compile(r"^ {0,3}(#{1,6})(?:\s+(.*?))?\s*#*\s*$")
UNDERLINE = re.compile(r"^ {0,3}(?:=+|-{2,})\s*$")
RULE = re.compile(r"^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$")
ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)、]|[（(]\d{1,2}[)）]|[一二三四五六七八九十]+、)\s+")
NUMBERED_ITEM = re.compile(r"^\s*(?:\*\*)?(?:\d{1,3}[.)、]|[（(]\d{1,2}[)）]|#\d{1,3}\b[.:]?)(?:\*\*)?\s*")
ROW = re.compile(r"^\s*\|.*\|\s*$")
ROW_RULE = re.compile(r"^[\s|:]*-[\s|:-]*$")
QUOTE_LINE = re.compile(r"^ {0,3}>\s?")
DEFINITION = re.compile(
    r"^ {0,3}\[(?!\^)[^\]\n]{1,80}\]:\s*(?:<[^<>\n]*>|\S+)(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*$"
    "|^ {0,3}\\[\\^[^\\]\n]{1,80}\\]:\\s(?!.*\ue000)"
)
"""The address of a link, which is not shown, or a footnote without a citation; anything else is shown as text."""
REFERENCES = re.compile(
    r"(?:\d+\.?\s*)?(?:references?|sources?|bibliography|works cited|citations|footnotes"
    r"|参考来源|参考文献|参考资料|引用来源|来源|引用)\s*:?",
    re.IGNORECASE,
)
SENTENCE_ENDS = tuple(".!?。！？")
LEAST_CLAIMED = 3
"""Words of a line below `Sources` that may be a claim."""
STATES = re.compile(
    r"(?<=[\w%)] )(?:is|are|was|were|has|have|had|will|does|did"
    r"|ist|sind|war|waren|hat|haben|hatten?|wurden?|wird|werden)\b"
)
"""The verb of a statement, which a title seldom has."""
OF_ENTRY = re.compile(
    r"^\W*(?:\d+[.)] )?[\"“„'*_\[<]|^\W*(?:why|how|what|who|when|where|which|warum|wie|was|wer|wann|wo)\b"
    r"|[(|–—]|\b(?:accessed|retrieved|published|visited|pp|vol|doi|isbn|abgerufen|veröffentlicht)\b|\w, [A-Z]\.",
    re.IGNORECASE,
)
"""What an entry of a list of sources has, and a plain statement has not: quotes, brackets, dashes, dates of access."""
MARK = re.compile("\ue000([S\\d,]*)\ue001")
"""A citation while sentences are sought: private characters, which a report has no other use for."""
CITED_CLAUSE = re.compile("\ue001\\s*[;；]")
"""A clause that ends with a citation: what comes behind it is another clause."""
AT_END = re.compile("^[^\ue000]*(?:\ue000[S\\d,]*\ue001[\\s.。]*)+$")
"""Text of a blockquote whose only citations are at its end: they are for all of it."""
NEXT_CITATION = re.compile("[ \\t\\n]*\ue000[S\\d,]*\ue001[.,;。，；]?")
GOES_ON = re.compile(r"[ \t]+[a-z]")


@dataclass(frozen=True)
class Block:
    """A paragraph, a list item, a table row, a blockquote or a heading that cites something."""

    kind: str
    """`text`, `item`, `row`, `quote` or `heading`."""
    line: int
    text: str
    """Lines of the block, with citations as `MARK`."""

    @cached_property
    def breaks(self) -> list[int]:
        """Offsets of the ends of lines: looked up for each sentence, counted once."""
        return [place for place, letter in enumerate(self.text) if letter == "\n"]


@dataclass(frozen=True)
class Sentence:
    """A sentence with the ids it cites."""

    text: str
    """Text without citations."""
    shown: str
    """Text with citations, on one line."""
    line: int
    ids: tuple[str, ...]
    kind: str
    tail: int
    """Where, in `text`, the part begins that is after a cited clause and cites nothing; its length for none."""


def sentences(draft: str) -> Iterator[Sentence]:
    """Yield all sentences of a report, but for code, lists of references and headings that cite nothing."""
    before: Sentence | None = None
    for block in _blocks(draft):
        found = [one for one in _split(block) if re.search(r"\w", one.text)]
        if block.kind == "quote" and found and not any(one.ids for one in found):
            found = _introduced(found, before)
        yield from found
        before = found[-1] if found else before


def _introduced(found: list[Sentence], before: Sentence | None) -> list[Sentence]:
    """Give a blockquote without a citation those of the line that announces it."""
    is_announced = before is not None and before.ids and before.text.rstrip(" *_").endswith((":", "："))
    return [replace(one, ids=before.ids) for one in found] if is_announced and before is not None else found


def _blocks(draft: str) -> Iterator[Block]:
    """Yield the blocks that can hold claims."""
    gathered: list[str] = []
    kind, first = "", 0
    for number, line in enumerate(_lines(draft), 1):
        own = _kind_of(line)
        goes_on = own == kind == "quote" or (own == "text" and kind in {"text", "item", "quote"})
        if gathered and not goes_on:
            yield Block(kind, first, "\n".join(gathered))
            gathered = []
        if not own:
            kind = ""
            continue
        if not gathered:
            kind, first = own, number
        gathered.append(_bare(line, own))
    if gathered:
        yield Block(kind, first, "\n".join(gathered))


def _kind_of(line: str) -> str:
    """Return what a line is a part of; empty for what separates."""
    if not line.strip() or RULE.match(line) or DEFINITION.match(line) or ROW_RULE.match(line):
        return ""
    if HEADING.match(line):
        return "heading"
    if ROW.match(line):
        return "row"
    if QUOTE_LINE.match(line):
        return "quote"
    return "item" if ITEM.match(line) else "text"


def _bare(line: str, kind: str) -> str:
    """Return a line without the marks of its block."""
    if kind == "heading":
        found = HEADING.match(line)
        return (found[2] or "") if found else line
    if kind == "quote":
        line = QUOTE_LINE.sub("", line)
    if kind in {"item", "quote"}:
        line = ITEM.sub("", line)
    return NUMBERED_ITEM.sub("", line) if kind in {"item", "text"} and NUMBERED_ITEM.match(line) else line


def _lines(draft: str) -> list[str]:
    """Return the draft's lines, empty where nothing is claimed: frontmatter, code, headings, references."""
    clean = without_unsupported_marks(re.sub("[\ue000\ue001]", "", draft)).replace("\r\n", "\n").replace("\r", "\n")
    body = without_frontmatter(clean)
    head = clean[: len(clean) - len(body)] if clean.endswith(body) else ""
    # Only a report that the engine wrote has a frontmatter; a notice is its own, and claims nothing.
    body = without_notice(body) if head else body
    text = "\n" * head.count("\n") + body
    return _without_references(_marked(_without_code(text)).split("\n"))


def _without_code(text: str) -> str:
    kept: list[str] = []
    fence = ""
    for line in text.split("\n"):
        found = FENCE.match(line)
        if not fence:
            fence = found[1] if found else ""
            kept.append("" if found else line)
        else:
            kept.append("")
            is_end = found is not None and found[1].startswith(fence) and not line.strip(" `~")
            fence = "" if is_end else fence
    return "\n".join(kept)


def _marked(text: str) -> str:
    """Return the text with citations as `MARK`; code within a line cites nothing and stays."""

    def marked(found: "re.Match[str]") -> str:
        if found["ids"] is None:
            return found[0]
        return f"\ue000{','.join(re.findall(r'S[0-9]+', found['ids']))}\ue001"

    return CITATION.sub(marked, text)


def _without_references(lines: list[str]) -> list[str]:
    """Drop headings that cite nothing, and the entries below one that announces references."""
    kept: list[str] = []
    skipped = 0
    for place, line in enumerate(lines):
        heading = HEADING.match(line)
        following = lines[place + 1] if place + 1 < len(lines) else ""
        is_underlined = bool(line.strip()) and UNDERLINE.match(following) and not UNDERLINE.match(line)
        level = len(heading[1]) if heading else 2 if is_underlined and _kind_of(line) == "text" else 0
        title = (heading[2] or "") if heading else line
        if level:
            is_list = REFERENCES.fullmatch(re.sub(r"[*_]", "", title).strip()) is not None
            skipped = level if is_list else 0 if not skipped or level <= skipped else skipped
        is_shown = not level or MARK.search(line) is not None
        is_claim = is_shown and (not skipped or (not level and _is_cited_claim(line)))
        kept.append(line if is_claim and not UNDERLINE.match(line) else "")
    return kept


def _is_cited_claim(line: str) -> bool:
    """Return whether a line below `Sources` is a sentence that cites, and no entry: an entry begins with its id."""
    found = MARK.search(line)
    if found is None or "://" in line:
        return False
    said = ITEM.sub("", line[: found.start()])
    rest = MARK.sub("", line).rstrip(' \t|*_"”»」')
    # Without a full stop, a verb tells a statement from the title, author and date of an entry.
    is_statement = not MARK.sub("", line[found.start() :]).strip() and STATES.search(said) and not OF_ENTRY.search(said)
    return count_words(said) >= LEAST_CLAIMED and (rest.endswith(SENTENCE_ENDS) or bool(is_statement))


def _split(block: Block) -> Iterator[Sentence]:
    """Yield the sentences of a block: a table's row is one, and so is a blockquote with its citation at the end."""
    text = block.text
    if block.kind == "row" or (block.kind == "quote" and AT_END.search(text)):
        yield _sentence(block, 0, len(text))
        return
    start = 0
    for end in _ends(text):
        if text[start:end].strip():
            yield _sentence(block, start, end)
        start = end
    if text[start:].strip():
        yield _sentence(block, start, len(text))


def _sentence(block: Block, start: int, end: int) -> Sentence:
    raw = block.text[start:end]
    led = len(raw) - len(raw.lstrip())
    ids = [one for mark in MARK.finditer(raw) for one in mark[1].split(",") if one]
    last = max((found.end() for found in CITED_CLAUSE.finditer(raw)), default=0)
    has_tail = last > 0 and MARK.search(raw, last) is None
    text = MARK.sub(" ", raw)
    if block.kind == "row":
        text = _without_rank(text)
    tail = len(MARK.sub(" ", raw[:last])) if has_tail else len(text)
    shown = MARK.sub(lambda found: f"[{found[1].replace(',', ', ')}]", raw)
    line = block.line + bisect_left(block.breaks, start + led)
    return Sentence(text, " ".join(shown.split()), line, tuple(dict.fromkeys(ids)), block.kind, tail)


def _without_rank(row: str) -> str:
    """Return a row without the counter in its first cell."""
    return re.sub(r"^(\s*\|)\s*(?:\*\*)?#?\d{1,3}[.)]?(?:\*\*)?\s*(?=\|)", r"\1 ", row)


def _ends(text: str) -> Iterator[int]:
    """Yield where sentences end, their citations included; ends within a quote do not count, except its last one."""
    inside = [found.span() for found in QUOTED.finditer(text)]
    starts = [start for start, _ in inside]
    start = 0
    for found in sentence_ends(text, MARK):
        around = inside[: bisect_left(starts, found.mark)][-1:]
        is_within = any(begin < found.mark and found.after_mark < end - 1 for begin, end in around)
        if found.mark >= start and found.end - start > 1 and not is_within:
            start = _with_citations(text, found.end)
            yield start


def _with_citations(text: str, end: int) -> int:
    """Return the end of a sentence with the citations after it, unless they begin the next: `[S3] says ...`."""
    place = end
    while found := NEXT_CITATION.match(text, place):
        place = found.end()
    begins = GOES_ON.match(text, place)
    return end if place > end and begins and text[end : end + 1].isspace() else place
