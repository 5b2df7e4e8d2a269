"""A real browser at a real `explorer serve`: the process, a model whose answers wait, and what the browser reports."""

import asyncio
import re
import subprocess
import threading
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload
from urllib.parse import urlsplit

from cli.stage import begin_explorer, end_of
from made_runs import make_run, page, two_runs
from model_servers import JsonObject, OpenAIServer, Reply, Script
from sources.loopback import kept_port
from team_script import NOTES, team

if TYPE_CHECKING:  # These tests are collected, and skipped, where the package is missing.
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Request, Route
    from playwright.sync_api._generated import LocatorAssertions, PageAssertions

CHROMIUM = Path("/usr/bin/chromium")
SCREENSHOTS = Path(__file__).resolve().parents[3] / "screenshots"
WAIT_MS = 30_000
"""A machine that has much else to do takes long to show something."""
LATE_S = 0.3
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1200, "height": 900}
ASK = "How was May for the plant?"
TEAM_MODEL = "openai:model-a"
NOTES_FILE: Any = {"name": "notes.md", "mimeType": "text/markdown", "buffer": NOTES.encode()}
"""The file that the team of `team_script` reads."""
REPORTS_VIOLATIONS = (
    "addEventListener('securitypolicyviolation', event =>"
    " console.error(`policy violated: ${event.violatedDirective} ${event.blockedURI}`))"
)


class PacedModel(OpenAIServer):
    """A model on loopback whose answers wait until the test lets them go."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self._allowed = threading.Semaphore(0)
        self._is_free = threading.Event()

    def allow(self, replies: int = 1) -> None:
        """Let so many answers go."""
        self._allowed.release(replies)

    def let_go(self) -> None:
        """Let all answers go, from now on."""
        self._is_free.set()

    def reply_to(self, body: JsonObject, headers: dict[str, str]) -> tuple[int, Reply]:
        """Look the reply up, and wait."""
        number, reply = super().reply_to(body, headers)
        while not (self._is_free.is_set() or self._allowed.acquire(timeout=0.02) or self.wait_until_closed(0)):
            pass
        return number, reply


@dataclass
class SiteProcess:
    """A server of the web page, as a process of its own with an empty home."""

    home: Path
    words: Sequence[str] = ("--model", "offline")
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    token: str = "none"
    printed: str = ""
    """The address that it printed, with a token where there is one."""
    address: str = ""
    process: "subprocess.Popen[str] | None" = None
    _kept: ExitStack = field(default_factory=ExitStack)

    def begin(self) -> None:
        """Start it on a port of its own, also when it is started again, and wait until it says where it is."""
        port = str(urlsplit(self.address).port or self._kept.enter_context(kept_port()))
        words = ("serve", "--port", port, "--token", self.token, *self.words)
        self.process = begin_explorer(*words, cwd=self.home, **self.variables)
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        found = re.search(r"explorer is at ((http://127\.0\.0\.1:\d+)/\S*)", said)
        assert found, said + self.process.stderr.read()
        self.printed, self.address = found[1], found[2]

    def kill(self) -> None:
        """End it without a word, as the kernel does when memory is short."""
        assert self.process is not None
        self.process.kill()
        end_of(self.process)
        self.process = None

    def end(self) -> None:
        """End it as a user does, if it is there."""
        if self.process is not None:
            self.process.terminate()
            code, _, error = end_of(self.process)
            self.process = None
            self._kept.close()
            assert "Traceback" not in error, error
            assert code == 143, error

    @property
    def runs(self) -> list[Path]:
        """The folders of its runs, oldest first."""
        return sorted(path for path in (self.home / "workspace").glob("[!.]*") if path.is_dir())


LONG = "20260603-080000-a-long-one"
WIDE_WORD = "Donaudampfschifffahrtselektrizitaetenhauptbetriebswerkbauunterbeamtengesellschaft" * 3
WIDE_REPORT = f"""# {WIDE_WORD}

| Place | Megawatts | Since | Owner | Address | What people say of it |
|---|---|---|---|---|---|
| Harbour | 12 | 2019 | The town | https://plant.example/{WIDE_WORD} | It is said to be loud in the night |

```
{WIDE_WORD} = {WIDE_WORD}
```

It fed 12 % more power into the grid [S1]. {WIDE_WORD}
"""


@contextmanager
def filled_site(home: Path) -> Generator[SiteProcess]:
    """A server with runs of all kinds: of a team, two of one question, one with too wide words; and a queue."""
    (home / "notes.md").write_text(NOTES)
    with OpenAIServer(team) as model:
        variables = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test"}
        code, _, error = end_of(begin_explorer("--model", TEAM_MODEL, "--file", "notes.md", ASK, cwd=home, **variables))
        assert code == 0, error
    code, _, error = end_of(begin_explorer("submit", "--model", "offline", "Who takes this?", cwd=home))
    assert code == 0, error
    with ThreadPoolExecutor() as threads:  # In this one, the browser's driver has a loop.
        threads.submit(asyncio.run, _add_runs(home / "workspace")).result()
    site = SiteProcess(home)
    site.begin()
    try:
        yield site
    finally:
        site.end()


async def _add_runs(workspace: Path) -> None:
    await two_runs(workspace)
    source = page("https://plant.example/may", f"It fed 12 % more power into the grid. {WIDE_WORD}", title=WIDE_WORD)
    await make_run(workspace, LONG, [source], WIDE_REPORT, question=f"What is {WIDE_WORD}?")


@dataclass
class Visitor:
    """Opens pages in a browser, and notes what it reports: errors, violations of the policy, requests elsewhere."""

    browser: "Browser"
    complaints: list[str] = field(default_factory=list[str])
    expected: list[str] = field(default_factory=list[str])
    """Patterns of complaints that the test provokes."""
    contexts: "list[BrowserContext]" = field(default_factory=list[Any])

    @property
    def pages(self) -> "list[Page]":
        """All pages that are open."""
        return [page for context in self.contexts for page in context.pages]

    def open(self, site: SiteProcess, path: str = "/", late: str = "", **options: Any) -> "Page":
        """A page in a window of its own, whose script `late` takes a while; the options are those of a context."""
        chosen: dict[str, Any] = {"viewport": DESK} | options
        context = self.browser.new_context(base_url=site.address, **chosen)
        self.contexts.append(context)
        context.set_default_timeout(WAIT_MS)
        context.add_init_script(REPORTS_VIOLATIONS)
        if late:
            context.route(f"**/{late}", _delayed)
        context.on("page", lambda page: self._watch(page, site.address))
        page = context.new_page()
        page.goto(path)
        return page

    def wait_for(self, page: "Page", words: str) -> None:
        """Wait until the browser has complained so."""
        for _ in range(WAIT_MS // 50):
            if any(words in one for one in self.complaints):
                return
            page.wait_for_timeout(50)
        raise AssertionError(f"no complaint says {words!r}: {self.complaints}")

    def close(self) -> None:
        """Close all windows, and say what was wrong."""
        for context in self.contexts:
            context.close()
        wrong = [one for one in self.complaints if not any(re.search(known, one) for known in self.expected)]
        assert wrong == [], wrong

    def _watch(self, page: "Page", address: str) -> None:
        def heard(message: "ConsoleMessage") -> None:
            if message.type in {"error", "warning"}:
                self.complaints.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

        def asked(request: "Request") -> None:
            if urlsplit(request.url).scheme != "data" and not request.url.startswith(f"{address}/"):
                self.complaints.append(f"request to {request.url}")

        page.on("console", heard)
        page.on("request", asked)
        page.on("pageerror", lambda error: self.complaints.append(f"not caught: {error}"))


def _delayed(route: "Route") -> None:
    threading.Event().wait(LATE_S)
    route.continue_()


@overload
def expect(place: "Locator") -> "LocatorAssertions": ...
@overload
def expect(place: "Page") -> "PageAssertions": ...
def expect(place: "Locator | Page") -> "LocatorAssertions | PageAssertions":
    """What has to be true of a page, or of a place of it, within the time there is."""
    from playwright.sync_api import expect as expectation  # noqa: PLC0415 - tests are collected without the package

    expectation.set_options(timeout=WAIT_MS)
    return expectation(place)


def ask(page: "Page", question: str, *files: Any) -> str:
    """Ask in the form of the first page; the id of the run, whose page is shown then."""
    page.get_by_label("Question", exact=True).fill(question)
    if files:
        page.get_by_text("Files, model, limits").click()
        page.get_by_label("Files the question").set_input_files(list(files))
    page.get_by_role("button", name="Explore").click()
    page.wait_for_url(re.compile(r"/runs/[^/]+$"))
    return page.url.rsplit("/", 1)[1]


def status(page: "Page") -> "Locator":
    """The place that shows the status of the run."""
    return page.locator("#part-head > p[role=status] .status")


def agent(page: "Page", name: str) -> "Locator":
    """The line of an agent in the tree."""
    return page.locator("li.agent").filter(has=page.locator("summary strong", has_text=re.compile(f"^{name}$")))


def wait_until(page: "Page", condition: str) -> None:
    """Wait until an expression is true of a page; Playwright's own way evaluates a text, which the policy forbids."""
    for _ in range(WAIT_MS // 50):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {condition}")


def overflow_px(page: "Page") -> int:
    """How much wider than the window the page is."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
