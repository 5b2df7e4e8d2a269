"""Pages that lie in the cache of a folder, and were never fetched: an agent must not read them as fetched.

Each attempt reads a page of a real server in a workspace whose cache has an entry by a stranger. The control is the
same entry with the mark of the victim's own key, as if the victim's explorer had kept it.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from attacks.attack import Attack
from attacks.carried_runs import own_roles, told_apart, touching
from explorer.network.guard import Guard
from explorer.run.hooks import RunHooks
from explorer.run.run import start
from explorer.schema.events import SourceRecorded
from explorer.schema.messages import Request, Turn
from explorer.schema.services import Services
from explorer.schema.settings import Settings
from explorer.sources.http.cache import CACHE_FOLDER, CacheEntry, CacheKey, DiskCache
from explorer.sources.http.fetch import FetchPolicy, Web
from explorer.sources.http.fetched import DAY_S, Fetched
from explorer.sources.pages import PAGE_TYPES
from explorer.testing import says
from explorer.workspace.user_key import UserKey, open_key
from sources.loopback import NOW, Answer, Site, no_pause, serving

TRUE, FALSE = b"Output fell by 3 % in May. " * 20, b"Output rose by 90 % in May. " * 20
STRANGER = UserKey(b"s" * 32)
ACCEPT = "*/*"


def cache_of(folder: Path, key: UserKey, at: datetime = NOW) -> DiskCache:
    """The cache of a workspace, in the hands of who has a key."""
    return DiskCache(folder / "workspace" / CACHE_FOLDER, lambda: key, now=lambda: at)


def put(folder: Path, key: UserKey, url: str, **changes: Any) -> None:
    """Keep an answer as explorer does."""
    kept = replace(Fetched(url, 200, "text/plain", FALSE, fetched_at=NOW, keep_s=DAY_S), **changes)
    at = kept.fetched_at or NOW
    asyncio.run(cache_of(folder, key, at).put(CacheKey(url, ACCEPT, is_opened=True), kept))


async def read(folder: Path, url: str) -> Fetched:
    """Read a page as the victim's explorer does."""
    policy = FetchPolicy(disk=cache_of(folder, open_key(folder / "state")), now=lambda: NOW)
    async with Web(Guard(["127.0.0.1"]), pause=no_pause, fetch_policy=policy) as web:
        return await web.get(url)


def entries(folder: Path) -> list[Path]:
    """The entries of the cache."""
    return [path for path in (folder / "workspace" / CACHE_FOLDER / "entries").rglob("*") if path.is_file()]


def change(folder: Path, key: UserKey, changes: Mapping[str, object]) -> None:
    """Change the entries of the cache; those of a key that is there get its mark again."""
    for path in entries(folder):
        entry = CacheEntry.model_validate_json(path.read_bytes()).model_copy(update=dict(changes))
        path.write_text((entry.marked(key) if key.is_there else entry).model_dump_json())


def planted(name: str, tried: str, plant: Callable[[Path, Site, UserKey], None]) -> Attack:
    """An attack by a page in the cache; it gains if the false page is read, with whatever address and time."""

    def go(folder: Path, *, is_own: bool) -> bool:
        with serving({"/": Answer(TRUE, content_type="text/plain")}) as site:
            plant(folder, site, open_key(folder / "state") if is_own else STRANGER)
            return asyncio.run(read(folder, f"{site.url}/")).body == FALSE

    return told_apart(name, tried, go, "is_own")


def kept_elsewhere(folder: Path, site: Site, key: UserKey) -> None:
    """A whole entry, as another user's explorer keeps it."""
    put(folder, key, f"{site.url}/")


def unmarked(folder: Path, site: Site, key: UserKey) -> None:
    """An entry as explorer 0.1 kept it."""
    put(folder, key, f"{site.url}/")
    if key is STRANGER:
        change(folder, UserKey(), {"mark": ""})


def other_address(folder: Path, site: Site, key: UserKey) -> None:
    """A page that the victim did fetch, of the stranger's site, in the place of another one."""
    own, mark = open_key(folder / "state"), key if key is not STRANGER else UserKey()
    put(folder, own, "http://127.0.0.1:9/of-the-stranger")
    (path,) = entries(folder)
    wanted = CacheKey(f"{site.url}/", ACCEPT, is_opened=True)
    target = path.parent.parent / wanted.digest[:2] / wanted.digest
    target.parent.mkdir(exist_ok=True)
    path.rename(target)
    change(folder, mark, {"asked": wanted.url, "url": wanted.url})


def other_body(folder: Path, site: Site, key: UserKey) -> None:
    """A page that the victim did fetch, with another body."""
    own, mark = open_key(folder / "state"), key if key is not STRANGER else UserKey()
    put(folder, own, f"{site.url}/", body=TRUE)
    digest = hashlib.sha256(FALSE).hexdigest()
    body = folder / "workspace" / CACHE_FOLDER / "bodies" / digest[:2] / digest
    body.parent.mkdir(exist_ok=True)
    body.write_bytes(FALSE)
    change(folder, mark, {"sha256": digest})


def fresh_again(folder: Path, site: Site, key: UserKey) -> None:
    """A page that the victim fetched long ago, and that has changed since."""
    own, mark = open_key(folder / "state"), key if key is not STRANGER else UserKey()
    put(folder, own, f"{site.url}/", fetched_at=NOW - timedelta(days=30))
    change(folder, mark, {"fetched_at": NOW})


def opened_host(folder: Path, site: Site, key: UserKey) -> None:
    """A page that the victim read while the host was not opened, for a session in which it is."""
    own, mark = open_key(folder / "state"), key if key is not STRANGER else UserKey()
    kept = Fetched(f"{site.url}/", 200, "text/plain", FALSE, fetched_at=NOW, keep_s=DAY_S)
    asyncio.run(cache_of(folder, own).put(CacheKey(f"{site.url}/", ACCEPT), kept))
    (path,) = entries(folder)
    wanted = CacheKey(f"{site.url}/", ACCEPT, is_opened=True)
    target = path.parent.parent / wanted.digest[:2] / wanted.digest
    target.parent.mkdir(exist_ok=True)
    path.rename(target)
    change(folder, mark, {"is_opened": True})


def is_cited(folder: Path, *, is_own: bool) -> bool:
    """A whole run reads the page: is the false one stored as a source that was fetched?"""
    with serving({"/": Answer(TRUE, content_type="text/plain")}) as site:
        key = open_key(folder / "state") if is_own else STRANGER
        disk = DiskCache(folder / "workspace" / CACHE_FOLDER, lambda: key)
        fresh = Fetched(f"{site.url}/", 200, "text/plain", FALSE, fetched_at=datetime.now(UTC), keep_s=DAY_S)
        for accept in (ACCEPT, PAGE_TYPES):
            asyncio.run(disk.put(CacheKey(f"{site.url}/", accept, is_opened=True), fresh))
        sources: list[str] = []
        settings = Settings(
            workspace=folder / "workspace",
            state_dir=folder / "state",
            roles_dir=own_roles(folder),
            services=Services(allow_hosts=("127.0.0.1",)),
            shell="off",
        )
        hooks = RunHooks(
            client=Reading(f"{site.url}/"),
            tools=[touching(folder)],
            observe=lambda one: sources.append(one.event.source.id) if isinstance(one.event, SourceRecorded) else None,
        )
        result = asyncio.run(start(f"What does {site.url}/ say?", settings, hooks))
        texts = [(result.folder / ".explorer" / "sources" / f"{one}.md").read_bytes() for one in sources]
        assert texts
        return any(FALSE[:26] in text for text in texts)


class Reading:
    """A model that reads one page."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def generate(self, request: Request) -> Turn:
        """Read it, then end."""
        is_first = not any(isinstance(message, Turn) for message in request.history)
        return says("", ("read_webpage", {"url": self.url})) if is_first else says("That is all.")


ATTACKS = (
    planted("of-another-user", "A folder has a page that another user's explorer kept.", kept_elsewhere),
    planted("of-0.1", "A folder has a page without a mark.", unmarked),
    planted("other-address", "A page of the stranger's site is put in the place of another one.", other_address),
    planted("other-body", "A page that was fetched gets another body.", other_body),
    planted("fresh-again", "A page that was fetched a month ago gets today's date.", fresh_again),
    planted("opened-host", "A page is put in the place of that of an opened host.", opened_host),
    told_apart("stored-as-source", "A planted page becomes a source of a run.", is_cited, "is_own"),
)
