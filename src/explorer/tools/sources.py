"""The tools that list the run's sources, and read a source's text word for word."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence

from pydantic import Field

from explorer.schema.errors import ToolError
from explorer.schema.events import Source
from explorer.schema.messages import JsonObject
from explorer.schema.text_part import part_at
from explorer.schema.tool import Arguments, Tool, ToolContext, ToolResult
from explorer.text.citations import cited_ids
from explorer.text.rendering import ModelText, block, code, codes, inline, own, render
from explorer.text.sanitize import single_line, visible
from explorer.text.words import sentences
from explorer.workspace.source_store import (
    advice,
    is_intact,
    plain_flags,
    relation_of,
    remarks,
    stored_at,
    stored_text,
)
from explorer.workspace.workspace import Workspace

TEXT_CHARS = 20_000
"""The characters of a stored text per call."""
BEFORE_CHARS = 400
AFTER_CHARS = 1_600
"""The characters shown around a passage that was searched for."""
MAX_LISTED = 100
MAX_CITING = 6
MAX_CITING_CHARS = 1_000_000
"""The characters of a file in which citations are searched for."""
TITLE_CHARS = 200
SOURCE_ID = re.compile(r"\[?\s*S?(\d{1,9})\s*\]?", re.IGNORECASE)
CHANGED = own("Its stored text is not what was stored: it was changed or damaged since. Do not cite it; read it again.")
QUOTES = {"'": "['\u2018\u2019\u02bc`]", '"': '["\u201c\u201d\u201e\u00ab\u00bb]', "-": "[-\u2010-\u2015\u2212]"}
"""Characters with several forms, each with all of them."""
SAME = {sign: pattern for plain, pattern in QUOTES.items() for sign in (plain, *pattern[2:-1])}
MIN_SHARED = 0.5
"""The share of a passage's words that the most similar sentence must have to be shown."""

Sources = Callable[[], Mapping[str, Source]]
"""Returns the current sources by id."""


class ListSourcesArguments(Arguments):
    """Arguments of `list_sources`."""

    query: str = Field(default="", max_length=200, description="In title or address")
    kind: str = Field(default="", max_length=40, description="page, file, story, comments, search_hit")


class ListSourcesTool(Tool[ListSourcesArguments]):
    """`list_sources`: lists the run's sources."""

    name = "list_sources"
    description = "List the sources of this run by id, with flags, copies, and the files that cite them."
    arguments = ListSourcesArguments
    activity = "listing the sources"

    def __init__(self, workspace: Workspace, sources: Sources) -> None:
        self._workspace = workspace
        self._sources = sources

    async def execute(self, arguments: ListSourcesArguments, context: ToolContext) -> ToolResult:
        """Return the requested sources."""
        known = self._sources()
        wanted = arguments.query.casefold().split()
        found = [
            source
            for source in known.values()
            if (not arguments.kind or source.kind == arguments.kind)
            and all(word in f"{source.id} {source.title} {source.url}".casefold() for word in wanted)
        ]
        if not found:
            kinds = ", ".join(sorted({source.kind for source in known.values()})) or own("none")
            content = own("0 of {count} sources. Kinds there are: {kinds}.", count=len(known), kinds=kinds)
            return ToolResult(success=True, content=content)
        shown = found[:MAX_LISTED]
        citing = await asyncio.to_thread(_citing, self._workspace)
        left = len(found) - len(shown)
        more = own("; {left} more are not shown: narrow by query or kind", left=left) if left else own("")
        head = own("{count} of {all} sources{more}.", count=len(found), all=len(known), more=more)
        entries = "\n".join(_entry(one, citing.get(one.id, ())) for one in shown)
        return ToolResult(success=True, content=render(head, block(entries)))


class ReadSourceArguments(Arguments):
    """Arguments of `read_source`."""

    source_id: str = Field(min_length=1, max_length=20)
    offset: int = Field(default=0, ge=0)
    find: str = Field(
        default="", max_length=500, description="A quote or number: shows its place, or the sentence most like it"
    )


class ReadSourceTool(Tool[ReadSourceArguments]):
    """`read_source`: reads a source's stored text."""

    name = "read_source"
    description = (
        f"Read the stored text of a source by its id, {TEXT_CHARS} characters at a time, or look up a passage in it."
    )
    arguments = ReadSourceArguments
    activity = "reading the source {source_id}"

    def __init__(self, workspace: Workspace, sources: Sources, page_chars: int = TEXT_CHARS) -> None:
        self._workspace = workspace
        self._sources = sources
        self._page_chars = page_chars

    async def execute(self, arguments: ReadSourceArguments, context: ToolContext) -> ToolResult:
        """Return a part of the text, or the passage searched for."""
        source = self._find(arguments.source_id)
        text = stored_text(await asyncio.to_thread(self._workspace.read_text, stored_at(source.id)))
        part = part_at(text, arguments.offset, self._page_chars, source.id)
        changed = own("") if is_intact(source, text) else CHANGED
        facts: JsonObject = {"sources": [source.id]}
        if arguments.find.strip():
            place = await asyncio.to_thread(_place, text, arguments.find, arguments.offset)
        else:
            place = [part.place, part.content]
            facts |= part.facts
        content = render(*_head(source), changed, *remarks([source]), *place)
        return ToolResult(success=True, content=content, metadata=facts)

    def _find(self, asked: str) -> Source:
        known = self._sources()
        number = SOURCE_ID.fullmatch(asked.strip())
        source = known.get(f"S{int(number[1])}") if number is not None else None
        if source is None:
            raise ToolError.of(
                "there is no source {asked}; list_sources shows all {count}.",
                asked=repr(single_line(asked, TITLE_CHARS)),
                count=len(known),
            )
        return source


def _citing(workspace: Workspace) -> dict[str, list[str]]:
    """Return the run's files by the ids that they cite."""
    citing: dict[str, list[str]] = {}
    for info in workspace.files():
        if info.bytes > MAX_CITING_CHARS:
            continue
        try:
            text = workspace.read_text(info.path)
        except ToolError:  # a binary file cites nothing
            continue
        for identifier in set(cited_ids(text)):
            citing.setdefault(identifier, []).append(info.path)
    return citing


def _entry(source: Source, citing: Sequence[str]) -> str:
    facts = [source.url, source.published[:10], source.kind]
    shown = ", ".join(single_line(fact, TITLE_CHARS) for fact in facts if fact)
    head = f"[{source.id}] {single_line(source.title, TITLE_CHARS)} ({shown})"
    relation = relation_of(source.flags)
    flags = [flag for flag in plain_flags(source.flags) if relation is None or "another source" not in flag]
    lines = [
        head,
        f"flags: {', '.join(flags)}" if flags else "",
        advice(source),
        f"differs in: {'; '.join(relation.differs)}" if relation is not None and relation.differs else "",
        f"cited in: {', '.join(citing[:MAX_CITING])}{' ...' if len(citing) > MAX_CITING else ''}" if citing else "",
    ]
    return "\n   ".join(line for line in lines if line)


def _head(source: Source) -> list[ModelText]:
    theirs = [
        f"by {single_line(source.author, TITLE_CHARS)}" if source.author else "",
        f"published {single_line(source.published, TITLE_CHARS)}" if source.published else "",
        single_line(source.url, TITLE_CHARS),
        f"via {source.via}",
    ]
    flags = ", ".join(plain_flags(source.flags))
    return [
        own("[{id}] {title}", id=code(source.id), title=inline(source.title, TITLE_CHARS)),
        inline(" | ".join(fact for fact in theirs if fact)),
        own("flags: {flags}", flags=flags) if flags else own(""),
    ]


def _place(text: str, wanted: str, offset: int) -> list[ModelText]:
    """Return the first place of a passage from `offset` on, with the text around it; else the most similar sentence."""
    found = list(_pattern(wanted).finditer(text, offset))
    if found:
        places = codes(str(match.start()) for match in found[:10])
        times = own("{count} times", count=len(found)) if len(found) > 1 else own("once")
        part = part_at(text, max(0, found[0].start() - BEFORE_CHARS), BEFORE_CHARS + AFTER_CHARS, "")
        return [own("Found {times}, at {places}.", times=times, places=places), part.place, part.content]
    from_here = own(" from character {offset} on", offset=offset) if offset else own("")
    nearest = _nearest(text[offset:], wanted)
    lines = [own("It is not there word for word{from_here}.", from_here=from_here)]
    if not nearest:
        words = "No sentence is like it. Without find, you get the text from its start ({count} characters)."
        return [*lines, own(words, count=len(text))]
    return [*lines, own("The sentence most like it:"), block(nearest)]


def _pattern(wanted: str) -> "re.Pattern[str]":
    """Return a pattern of the passage for any line breaks, capitals and quotation marks."""
    parts = visible(wanted).split()
    spelled = ("".join(SAME.get(sign, re.escape(sign)) for sign in part) for part in parts)
    return re.compile(r"\s+".join(spelled), re.IGNORECASE)


def _nearest(text: str, wanted: str) -> str:
    words = set(re.findall(r"\w+", wanted.casefold()))
    best, score = "", MIN_SHARED
    for sentence in (one for line in text.splitlines() for one in sentences(line)):
        share = len(words.intersection(re.findall(r"\w+", sentence.casefold()))) / max(1, len(words))
        if share > score:
            best, score = sentence, share
    return best[:AFTER_CHARS]
