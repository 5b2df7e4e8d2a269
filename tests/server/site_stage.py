"""A server of the web page on a real socket of this machine, in the test's own loop, and a client of it."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx2

from explorer.run.hooks import RunHooks
from explorer.run.served import ServedRuns, ServerPlan
from explorer.schema.messages import LLMClient, Request, Turn
from explorer.schema.settings import Settings
from explorer.server.app import build_site
from explorer.server.fleet_status import AskFleet, CopyOf, DecideElsewhere, Queued
from explorer.server.listening import PageServer, open_socket
from explorer.server.security import ServerAccess
from explorer.testing import says

HERE = {"sec-fetch-site": "same-origin"}
"""What a browser adds when a page of the server sends a form."""


class GatedClient:
    """A model that answers once the gate is open, and looks into the folder `turns` times before that answer."""

    def __init__(self, turns: int = 0) -> None:
        self.gate = asyncio.Event()
        self._turns = turns

    async def generate(self, request: Request) -> Turn:
        """The next reply."""
        taken = sum(isinstance(message, Turn) for message in request.history)
        if taken < self._turns:
            return says("Looking.", ("list_files", {}))
        await self.gate.wait()
        return says("There is nothing about it.")


@dataclass
class Browser:
    """A client that sends what a browser sends, and follows where a form leads."""

    client: httpx2.AsyncClient
    runs: ServedRuns
    address: str
    close_feeds: Callable[[], None]

    async def get(self, path: str, **more: Any) -> httpx2.Response:
        """The answer to a request for a page."""
        return await self.client.get(path, **more)

    async def page(self, path: str, code: int = 200, **more: Any) -> str:
        """The HTML of a page that has this status."""
        answer = await self.client.get(path, **more)
        assert answer.status_code == code, (path, answer.status_code, answer.text[:500])
        return answer.text

    async def send(self, path: str, code: int = 303, files: Any = None, **fields: object) -> httpx2.Response:  # noqa: ANN401 - whatever the client takes
        """The answer to a form."""
        answer = await self.client.post(path, data=fields, files=files, headers=HERE, follow_redirects=False)
        assert answer.status_code == code, (path, answer.status_code, plain(answer.text)[:500])
        return answer

    async def ask(self, question: str, **fields: Any) -> str:
        """The id of a run that was started from the form."""
        answer = await self.send("/runs", question=question, **fields)
        return answer.headers["location"].removeprefix("/runs/")

    async def until(self, run: str, *statuses: str) -> str:
        """The page of a run once it has one of these statuses."""
        while True:
            page = await self.page(f"/runs/{run}")
            if status_of(page) in statuses:
                return page
            await asyncio.sleep(0.05)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    while True:
        if condition():
            return
        await asyncio.sleep(0.02)


def status_of(page: str) -> str:
    """The status that the page of a run shows."""
    found = re.search(r'data-status="(\w*)"', page)
    assert found
    return found[1]


OWN_ORDER = re.compile(r"|none|/live\?.*|/runs/[A-Za-z0-9._-]+/(live\?.*|agents/.*|claims\?.*)")
"""The values of attributes that htmx and the script of the pages follow."""


class _ActiveParts(HTMLParser):
    """Collects what would run, load or send something."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at a tag."""
        values = {name: value or "" for name, value in attrs}
        if tag in {"iframe", "object", "embed", "base", "svg", "math"} and "gantt" not in values.get("class", ""):
            self.found.append(tag)
        if tag == "script" and not values.get("src", "").startswith("/static/"):
            self.found.append(tag)
        if tag == "meta" and "http-equiv" in values:
            self.found.append(tag)
        self.found += [f"{tag} {name}" for name in values if name.startswith("on") or name in {"style", "srcdoc"}]
        orders = {name: value for name, value in values.items() if name.startswith("hx-") or name == "data-load"}
        self.found += [f"{tag} {name}" for name, value in orders.items() if OWN_ORDER.fullmatch(value) is None]
        for name in ("src", "href", "action", "formaction", "srcset", "data"):
            address = values.get(name, "/")
            is_own = address.startswith(("/", "#", "?")) and not address.startswith("//")
            is_web = name == "href" and tag == "a" and address.startswith(("http://", "https://", "mailto:"))
            if (
                not is_own
                and not is_web
                and not (tag in {"img", "link"} and address.startswith(("data:image/", "data:,")))
            ):
                self.found.append(f"{tag} {name}={address}")

    def handle_comment(self, data: str) -> None:
        """Look at a comment: the server writes none."""
        self.found.append(f"<!--{data}")


def active_parts(page: str) -> list[str]:
    """What in a page would run, load something from elsewhere, or send something there."""
    parser = _ActiveParts()
    parser.feed(page)
    parser.close()
    return parser.found


def plain(page: str) -> str:
    """The text of a page, without tags."""
    return unescape(" ".join(re.sub(r"<[^>]+>", " ", page).split()))


def offline_settings(folder: Path, **settings: Any) -> Settings:
    """Settings of runs over a small folder, without a model."""
    notes = folder / "notes"
    notes.mkdir(exist_ok=True)
    (notes / "ropes.md").write_text("# Ropes\n\nThe ropes cost 120 euros in March 2026, said the harbour master.\n")
    values: dict[str, Any] = {"model": "offline", "corpus": notes, "state_dir": folder / "state"} | settings
    return Settings(workspace=folder / "workspace", shell="off", **values)


@asynccontextmanager
async def browsing(  # noqa: PLR0913, PLR0917 - what a server is made of
    folder: Path,
    client: LLMClient | None = None,
    access: ServerAccess | None = None,
    fleet: AskFleet | None = None,
    elsewhere: CopyOf | None = None,
    approval_wait_s: float = 0.0,
    decide_elsewhere: DecideElsewhere | None = None,
    queued: Queued = lambda _run: "",
    **settings: Any,
) -> AsyncGenerator[Browser]:
    """A browser at a server of this folder's runs."""
    chosen = offline_settings(folder, **settings)
    plan = ServerPlan(
        chosen,
        lambda: RunHooks(client=client),
        lambda _folder: chosen,
        max_runs=2,
        approval_wait_s=approval_wait_s,
    )
    runs = ServedRuns(plan)
    site = build_site(runs, access or ServerAccess(), fleet, elsewhere, decide_elsewhere, queued)
    with closing(open_socket("127.0.0.1", 0)) as listening:
        server = PageServer(listening, site, site.state.site.feeds.close)
        address = server.address("127.0.0.1")
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve())
            try:
                async with httpx2.AsyncClient(base_url=address, timeout=30, trust_env=False) as http:
                    yield Browser(http, runs, address, site.state.site.feeds.close)
            finally:
                server.end()
                await runs.close()
