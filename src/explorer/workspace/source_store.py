"""The ledger of sources: every page, post, thread, hit or file a tool returned, stored once under an id like `S12`."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime

import yaml
from pydantic import AwareDatetime

from explorer.schema.errors import StorageError, ToolError, first_of
from explorer.schema.events import AnyEvent, Source, SourceRecorded
from explorer.schema.messages import Frozen
from explorer.text.frontmatter import split_frontmatter
from explorer.text.sanitize import single_line, visible
from explorer.text.urls import url_key
from explorer.workspace.near_duplicates import PRIMARY_OF, SketchIndex, Text, flags_between, relation_of, sketch

TITLE_CHARS = 300
SOURCES = ".explorer/sources"


class SourceDraft(Frozen):
    """A piece of evidence as a tool found it, before it has an id."""

    url: str
    title: str
    kind: str
    """`page`, `story`, `comments`, `search_hit`, `file`, ..."""
    via: str
    """What gave it: `hackernews`, `tavily`, `tavily-keyless`, `direct`, `reader`, `file`, ..."""
    text: str
    author: str = ""
    published: str = ""
    language: str = ""
    retrieved: AwareDatetime | None = None
    """When it was fetched, where that was not just now."""
    flags: tuple[str, ...] = ()


Store = Callable[[Sequence[SourceDraft]], Awaitable[list[Source]]]
"""Store drafts and return their sources, in order; the same text at the same URL keeps its id."""


Append = Callable[[AnyEvent], Awaitable[None]]
Write = Callable[[str, str], Awaitable[None]]
Read = Callable[[str], Awaitable[str]]
"""A file's text by its path; a ToolError when it cannot be had."""


class SourceStore:
    """The one owner of the ledger.

    Args:
        append: Puts an event on disk.
        write: Writes a file, by path.
        now: The clock for the time of retrieval.
        known: What earlier lives of the run stored.
        read: Reads a file back; without it nothing is compared with what was stored before.
    """

    def __init__(
        self,
        append: Append,
        write: Write,
        now: Callable[[], datetime],
        known: Iterable[Source] = (),
        read: Read | None = None,
    ) -> None:
        self._append = append
        self._write = write
        self._read = read
        self._now = now
        self._sources = {source.id: source for source in known}
        self._ids = {_key(source.url, source.sha256): source.id for source in self._sources.values()}
        self._keys = {identifier: key for key, identifier in self._ids.items()}
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}
        self._next = 1
        self._primaries: dict[str, str] = {}
        """By the id of a copy."""
        for source in self._sources.values():
            self._note_primary(source)
        self._index = SketchIndex()
        self._unread = list(self._sources)
        """Of earlier lives: not yet in the index."""
        self._reading = asyncio.Lock()

    @property
    def sources(self) -> dict[str, Source]:
        """All stored sources by id, in the order of storing."""
        return dict(self._sources)

    async def store(self, drafts: Sequence[SourceDraft]) -> list[Source]:
        """Store what is new and return the sources in the drafts' order.

        The text is on disk before its event, so that an id in the journal always has its text.
        """
        await self._recall()
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._store_one(draft)) for draft in drafts]
        except BaseExceptionGroup as errors:
            raise first_of(errors, StorageError) or errors from None
        return [task.result() for task in tasks]

    async def _store_one(self, draft: SourceDraft) -> Source:
        text = visible(draft.text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        key = _key(draft.url, digest)
        # One lock a key: a second tool with the same text waits until its id is on disk.
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key in self._ids:
                return self._sources[self._ids[key]]
            # The id first, before anything is waited for: a call's drafts have ids in their order.
            source = self._describe(draft, text, digest)
            self._keys[source.id] = key
            source = await self._compared(source, text)
            await self._write(stored_at(source.id), _stored_form(source, text))
            await self._append(SourceRecorded(source=source))
            self._ids[key] = source.id
            self._sources[source.id] = source
            self._note_primary(source)
            return source

    def _describe(self, draft: SourceDraft, text: str, digest: str) -> Source:
        # The lowest free id: one that a crash kept from being recorded was shown to nobody, and is given again.
        while f"S{self._next}" in self._sources:
            self._next += 1
        identifier = f"S{self._next}"
        self._next += 1
        return Source(
            id=identifier,
            url=draft.url,
            title=single_line(draft.title, TITLE_CHARS) or draft.url,
            kind=draft.kind,
            via=draft.via,
            author=visible(draft.author),
            published=draft.published,
            language=draft.language,
            retrieved=draft.retrieved or self._now(),
            sha256=digest,
            chars=len(text),
            flags=draft.flags,
        )

    async def _recall(self) -> None:
        """Take what earlier lives stored into the index, once, when there is first something to compare with it."""
        async with self._reading:
            for identifier in self._unread:
                text = await self._text_of(self._sources[identifier])
                self._index.add(identifier, await asyncio.to_thread(sketch, text))
            self._unread.clear()

    async def _compared(self, source: Source, text: str) -> Source:
        """The source, flagged when it is nearly the same as one stored before."""
        if self._read is None:
            return source
        hashes = sketch(text)
        likely = self._index.likely(hashes)
        self._index.add(source.id, hashes)
        later = _as_text(source, text)
        seen: set[str] = set()
        for identifier in likely:
            for other in await self._with_primary(identifier):
                if other.id in seen:
                    continue
                seen.add(other.id)
                earlier = _as_text(other, await self._text_of(other))
                flags = await asyncio.to_thread(flags_between, earlier, later, other.id)
                if flags:
                    return source.model_copy(update={"flags": (*source.flags, *flags)})
        return source

    async def _with_primary(self, identifier: str) -> list[Source]:
        """A likely source; before it its primary, if it is itself a copy."""
        # Held by whoever is storing it: an id is named by another only once it is on disk.
        async with self._locks.setdefault(self._keys[identifier], asyncio.Lock()):
            source = self._sources.get(identifier)
        if source is None:
            return []
        primary = self._sources.get(self._primaries.get(identifier, ""))
        return [source] if primary is None else [primary, source]

    def _note_primary(self, source: Source) -> None:
        relation = relation_of(source.flags)
        if relation is not None and relation.kind == PRIMARY_OF:
            self._primaries[relation.other] = source.id
        elif relation is not None:
            self._primaries[source.id] = relation.other

    async def _text_of(self, source: Source) -> str:
        """A stored text; empty when it cannot be had, or is not what was stored."""
        try:
            text = stored_text(await self._read(stored_at(source.id))) if self._read is not None else ""
        except ToolError:
            return ""
        return text if is_intact(source, text) else ""


def _key(url: str, digest: str) -> tuple[str, str]:
    return (url_key(url), digest)


def _as_text(source: Source, text: str) -> Text:
    return Text(source.url, source.title, source.kind, source.published, text)


def stored_at(identifier: str) -> str:
    """Where a source's text is, in the run's folder."""
    return f"{SOURCES}/{identifier}.md"


def stored_text(content: str) -> str:
    """The text in a stored source's file, without its frontmatter: what the sha256 is of."""
    head, text = split_frontmatter(content)
    return content if head is None else text.removesuffix("\n")


def is_intact(source: Source, text: str) -> bool:
    """Whether a text is the one that was stored."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() == source.sha256


def _stored_form(source: Source, text: str) -> str:
    head = yaml.safe_dump(source.model_dump(mode="json"), allow_unicode=True, sort_keys=False)
    return f"---\n{head}---\n{text}\n"
