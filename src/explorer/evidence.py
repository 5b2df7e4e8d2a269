"""The ledger of sources: every page, post, thread, hit or file a tool returned, stored once under an id like `S12`."""

import asyncio
import hashlib
import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import yaml

from explorer.errors import StorageError
from explorer.events import AnyEvent, Source, SourceRecorded
from explorer.messages import Frozen

TRACKING_PARAMETERS = re.compile(r"^(utm_\w+|fbclid|gclid|ref_src)$")
TITLE_CHARS = 300
BLANKS = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0e\uffa0\U000e0100-\U000e01ef]")
"""Letters and marks that show nothing: fillers, and variation selectors, of which whole messages can be made."""


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
    flags: tuple[str, ...] = ()


Store = Callable[[Sequence[SourceDraft]], Awaitable[list[Source]]]
"""Store drafts and return their sources, in order; the same text at the same URL keeps its id."""


class Evidence:
    """The one owner of the ledger."""

    def __init__(
        self,
        append: Callable[[AnyEvent], Awaitable[None]],
        write: Callable[[str, str], Awaitable[None]],
        now: Callable[[], datetime],
        known: Iterable[Source] = (),
    ) -> None:
        self._append = append
        self._write = write
        self._now = now
        self._sources = {source.id: source for source in known}
        self._ids = {(_same_address(source.url), source.sha256): source.id for source in known}
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}
        self._next = 1

    @property
    def sources(self) -> dict[str, Source]:
        """All stored sources by id, in the order of storing."""
        return dict(self._sources)

    async def store(self, drafts: Sequence[SourceDraft]) -> list[Source]:
        """Store what is new and return the sources in the drafts' order.

        The text is on disk before its event, so that an id in the journal always has its text.
        """
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._store_one(draft)) for draft in drafts]
        except* StorageError as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _store_one(self, draft: SourceDraft) -> Source:
        text = visible(draft.text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        key = (_same_address(draft.url), digest)
        # One lock a key: a second tool with the same text waits until its id is on disk.
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key in self._ids:
                return self._sources[self._ids[key]]
            source = self._describe(draft, text, digest)
            await self._write(f".explorer/sources/{source.id}.md", _stored_form(source, text))
            await self._append(SourceRecorded(source=source))
            self._ids[key] = source.id
            self._sources[source.id] = source
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
            title=" ".join(visible(draft.title).split())[:TITLE_CHARS] or draft.url,
            kind=draft.kind,
            via=draft.via,
            author=visible(draft.author),
            published=draft.published,
            language=draft.language,
            retrieved=self._now(),
            sha256=digest,
            chars=len(text),
            flags=draft.flags,
        )


def _stored_form(source: Source, text: str) -> str:
    head = yaml.safe_dump(source.model_dump(mode="json"), allow_unicode=True, sort_keys=False)
    return f"---\n{head}---\n{text}\n"


def canonical_url(url: str) -> str:
    """The form under which two spellings of one address are the same: no fragment, no tracking, no trailing slash.

    Raises:
        ValueError: It is no address.
    """
    parts = urlsplit(url)
    query = [(k, v) for k, v in parse_qsl(parts.query, keep_blank_values=True) if not TRACKING_PARAMETERS.match(k)]
    path = parts.path.rstrip("/")
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), path, urlencode(query), ""))


def _same_address(url: str) -> str:
    try:
        return canonical_url(url)
    except ValueError:  # what a source gives as its address is kept, even if it is none
        return url


def visible(text: str) -> str:
    """Drop what a reader cannot see: control and format characters, tag characters, lone surrogates.

    Newline and tab stay. Invisible text is a carrier of instructions that no person would notice.
    """
    kept = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Co"})
    return BLANKS.sub("", kept)


def fence(text: str) -> str:
    """Mark text from outside as untrusted, wherever a model sees it.

    The mark is a hash of the text itself, so the text cannot contain its own closing mark.
    """
    clean = visible(text)
    mark = hashlib.sha256(clean.encode()).hexdigest()[:12]
    return f"<<untrusted {mark}>>\n{clean}\n<<end {mark}>>"
