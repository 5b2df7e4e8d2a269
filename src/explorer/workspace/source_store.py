"""The ledger of sources: every page, post, thread, hit or file a tool returned, stored once under an id like `S12`.

A source whose text is nearly the same as that of another address gets a flag with the other's id. Likely pairs are
found by hashes of runs of words, the smallest of each text (a bottom-k sketch, Broder 1997), so a further text costs
the same however many there are; only likely pairs are then compared word by word.
"""

import asyncio
import hashlib
import heapq
import re
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from urllib.parse import urlsplit

import yaml

from explorer.schema.errors import StorageError, ToolError, first_of
from explorer.schema.events import Append, Source, SourceRecorded
from explorer.schema.tool import SourceDraft
from explorer.text.differences import compare, normal, words
from explorer.text.frontmatter import split_frontmatter
from explorer.text.rendering import ModelText, block, code, own
from explorer.text.sanitize import single_line, visible
from explorer.text.urls import url_key

NEAR_DUPLICATE = "near_duplicate"
"""`near_duplicate:S3`: it repeats S3, which is the primary."""
ALTERED_COPY = "altered_copy"
"""`altered_copy:S3`: it repeats S3 with other numbers or names."""
PRIMARY_OF = "primary_of"
"""`primary_of:S3`: S3, stored earlier, is the copy."""
DIFFERS = "differs"
"""`differs:12 → 21`: the text of S3, and the text of this source."""
MIN_WORDS = 40
"""The least length of compared texts: shorter ones share too much by chance."""
RUN_WORDS = 4
SKETCH_HASHES = 48
SHARED_FOR_LIKELY = 8
"""The number of hashes of which a likely pair shares one."""
MAX_SKETCHED_CHARS = 40_000
"""The length to which texts are compared, from their beginning."""
MAX_INDEXED = 5_000
"""The number of sources that later ones are compared with, which limits the memory."""
MAX_SHARING = 64
"""The number of sources under one hash; what more texts share is a site's frame."""
MAX_LIKELY = 3
MIN_COVERED = 0.85
MIN_COVERED_ON_ONE_SITE = 0.92
"""`MIN_COVERED` for two pages of one site, which share their frame."""
MIN_LENGTH_RATIO = 0.4
SEARCH_HIT = "search_hit"
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
RELATION = re.compile(rf"({NEAR_DUPLICATE}|{ALTERED_COPY}|{PRIMARY_OF}):(S\d+)")


@dataclass(frozen=True)
class Text:
    """A source's text, and what decides which of two sources is the primary."""

    url: str
    title: str
    kind: str
    published: str
    text: str


@dataclass(frozen=True)
class Relation:
    """The relation of a source to an earlier one."""

    kind: str
    """`near_duplicate`, `altered_copy` or `primary_of`."""
    other: str
    """The other source's id."""
    differs: tuple[str, ...]
    """`12 → 21`: the text of the other one, and the text of this one."""


def sketch(text: str) -> tuple[int, ...]:
    """Return the smallest hashes of a text's runs of words; empty for a text that is too short."""
    found = words(normal(text[:MAX_SKETCHED_CHARS]).lower())
    if len(found) < MIN_WORDS:
        return ()
    runs = zip(*(found[start:] for start in range(RUN_WORDS)), strict=False)
    # CRC-32 and not `hash`: a resumed run is another process and must find the same pairs.
    return tuple(heapq.nsmallest(SKETCH_HASHES, {zlib.crc32(" ".join(run).encode()) for run in runs}))


class SketchIndex:
    """The sketches of all sources, for finding those that a further one is like."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._sharing: dict[int, list[int]] = {}

    def add(self, identifier: str, hashes: Sequence[int]) -> None:
        """Add a source."""
        if not hashes or len(self._ids) >= MAX_INDEXED:
            return
        place = len(self._ids)
        self._ids.append(identifier)
        for number in hashes:
            places = self._sharing.setdefault(number, [])
            if len(places) < MAX_SHARING:
                places.append(place)

    def likely(self, hashes: Sequence[int]) -> list[str]:
        """Return the ids of sources that a text may repeat, the likeliest first."""
        counts = Counter(place for number in hashes for place in self._sharing.get(number, ()))
        least = max(2, len(hashes) // SHARED_FOR_LIKELY)
        # By number and not by place: a resumed run takes sources in in another order.
        ranked = sorted((-count, int(self._ids[place][1:])) for place, count in counts.items() if count >= least)
        return [f"S{number}" for _, number in ranked[:MAX_LIKELY]]


def flags_between(earlier: Text, later: Text, earlier_id: str) -> tuple[str, ...]:
    """Return the flags of the later source for its relation to the earlier one; empty when they are not alike."""
    if _place(earlier.url) == _place(later.url):
        return ()
    is_one_site = _site(earlier.url) == _site(later.url)
    if is_one_site and SEARCH_HIT in {earlier.kind, later.kind}:
        return ()
    one, other = earlier.text[:MAX_SKETCHED_CHARS], later.text[:MAX_SKETCHED_CHARS]
    if min(len(one), len(other)) < MIN_LENGTH_RATIO * max(len(one), len(other)):
        return ()
    likeness = compare(one, other)
    if likeness.covered < (MIN_COVERED_ON_ONE_SITE if is_one_site else MIN_COVERED):
        return ()
    if likeness.changes and is_one_site and _are_other_titles(earlier.title, later.title):
        # Another page made from the same form: another town's weather, another version's manual.
        return ()
    copied = ALTERED_COPY if likeness.changes else NEAR_DUPLICATE
    kind = PRIMARY_OF if _is_primary(later, earlier) else copied
    return (f"{kind}:{earlier_id}", *(f"{DIFFERS}:{change}" for change in likeness.changes))


def _are_other_titles(one: str, other: str) -> bool:
    """Return whether each title has a word that the other does not have."""
    mine, theirs = (Counter(words(normal(title).lower())) for title in (one, other))
    return bool(mine - theirs) and bool(theirs - mine)


def _is_primary(later: Text, earlier: Text) -> bool:
    """Return whether the later stored one is the primary: published earlier, else linked by the other one."""
    mine, theirs = _day(later.published), _day(earlier.published)
    if mine is not None and theirs is not None and mine != theirs:
        return mine < theirs
    names_later, names_earlier = _place(later.url) in earlier.text, _place(earlier.url) in later.text
    return names_later and not names_earlier


def _day(published: str) -> date | None:
    found = ISO_DATE.match(published)
    try:
        return date.fromisoformat(found[0]) if found is not None else None
    except ValueError:
        return None


def _place(url: str) -> str:
    """Return an address without scheme, `www.`, fragment and slash at the end, which do not change the page."""
    return re.sub(r"^\w+://(?:www\.)?", "", url.partition("#")[0]).rstrip("/")


def _site(url: str) -> str:
    try:
        return urlsplit(url).netloc.removeprefix("www.").lower()
    except ValueError:  # what a source gives as its address is kept, even if it is none
        return url


def relation_of(flags: Iterable[str]) -> Relation | None:
    """Return the relation to another source in a source's flags; None without one."""
    known = list(flags)
    for flag in known:
        found = RELATION.fullmatch(flag)
        if found is not None:
            marks = tuple(flag.removeprefix(f"{DIFFERS}:") for flag in known if flag.startswith(f"{DIFFERS}:"))
            return Relation(found[1], found[2], marks)
    return None


def plain_flags(flags: Iterable[str]) -> list[str]:
    """Return flags for readers of a report: without ids, and without those that only the engine needs."""
    labels = {NEAR_DUPLICATE: "repeats another source", ALTERED_COPY: "altered copy of another source"}
    names = [(flag, flag.partition(":")[0]) for flag in flags]
    kept = [labels.get(name, flag.replace("_", " ")) for flag, name in names if name not in {PRIMARY_OF, DIFFERS}]
    return list(dict.fromkeys(kept))


def advice(source: Source) -> ModelText:
    """Return the remark for models on a source that is a copy, or has one; empty for all others.

    The words that differ are external text, and not in it.
    """
    relation = relation_of(source.flags)
    if relation is None:
        return own("")
    this, other = code(source.id), code(relation.other)
    copy, primary = (this, other) if relation.kind in {NEAR_DUPLICATE, ALTERED_COPY} else (other, this)
    if relation.kind == ALTERED_COPY or (relation.kind == PRIMARY_OF and relation.differs):
        return own("{copy} is an altered copy of {primary}: cite {primary}.", copy=copy, primary=primary)
    return own(
        "{copy} repeats {primary}: cite {primary}; together they are one source, not two.", copy=copy, primary=primary
    )


def remarks(sources: Iterable[Source]) -> list[ModelText]:
    """Return the remarks for models on copies among sources: which to cite, and in what they differ."""
    lines: list[ModelText] = []
    for source in sources:
        relation = relation_of(source.flags)
        if relation is not None:
            lines.append(advice(source))
            lines += [own("They differ in:"), block("; ".join(relation.differs))] if relation.differs else []
    return list(dict.fromkeys(lines))


TITLE_CHARS = 300
SOURCES = ".explorer/sources"


Write = Callable[[str, str], Awaitable[None]]
Read = Callable[[str], Awaitable[str]]
"""Return a file's text by its path; raise a ToolError when it cannot be read."""


class SourceStore:
    """Stores sources, and owns the ledger.

    Args:
        append: Puts an event on disk.
        write: Writes a file, by path.
        now: The clock for the time of retrieval.
        known: The sources of earlier sessions of the run.
        read: Reads a stored file; without it texts are not compared with earlier ones.
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
        """The id of the primary of each copy."""
        for source in self._sources.values():
            self._note_primary(source)
        self._index = SketchIndex()
        self._unread = list(self._sources)
        """Ids of sources of earlier sessions that are not yet in the index."""
        self._reading = asyncio.Lock()

    @property
    def sources(self) -> dict[str, Source]:
        """All stored sources by id, in the order of storing."""
        return dict(self._sources)

    async def store(self, drafts: Sequence[SourceDraft]) -> list[Source]:
        """Store new texts, and return the sources in the drafts' order.

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
        # One lock for each key: a second tool with the same text waits until its id is on disk.
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key in self._ids:
                return self._sources[self._ids[key]]
            # The id before the first await: a call's drafts have ids in their order.
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
        # The lowest free id: one that was not recorded because of a crash was never shown, and is used again.
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
        """Add the sources of earlier sessions to the index, once, before the first comparison."""
        async with self._reading:
            for identifier in self._unread:
                text = await self._text_of(self._sources[identifier])
                self._index.add(identifier, await asyncio.to_thread(sketch, text))
            self._unread.clear()

    async def _compared(self, source: Source, text: str) -> Source:
        """Return the source, flagged if it is nearly the same as one stored before."""
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
        """Return a likely source; before it its primary, if it is itself a copy."""
        # Whoever stores the source has the lock: another source names its id only once it is on disk.
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
        """Return a stored text; empty when it cannot be read, or was changed."""
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
    """Return the path of a source's text in the run's folder."""
    return f"{SOURCES}/{identifier}.md"


def stored_text(content: str) -> str:
    """Return the text in a stored source's file, without its frontmatter: the digest is that of this text."""
    head, text = split_frontmatter(content)
    return content if head is None else text.removesuffix("\n")


def is_intact(source: Source, text: str) -> bool:
    """Return whether a text is the one that was stored."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() == source.sha256


def _stored_form(source: Source, text: str) -> str:
    head = yaml.safe_dump(source.model_dump(mode="json"), allow_unicode=True, sort_keys=False)
    return f"---\n{head}---\n{text}\n"
