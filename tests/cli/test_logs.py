"""The log of `-v` and `-vv`: each operation once, with its level, and no key in it."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from loguru import logger

from command import explorer, explorer_here
from explorer.sources.search.port import SearchFailedError, WebAnswer, WebQuery, WebSearch
from explorer.sources.search.selection import SearchChain
from sources.loopback import Answer, open_plain_web, serving

CANARY = "sk-canary-0123456789abcdef"
Log = tuple[str, str, Counter[str]]
LINE = re.compile(r"^\d\d:\d\d:\d\d (DEBUG|INFO|WARNING|ERROR) explorer\.[\w.]+: (.*)$", re.MULTILINE)
FOLLOWED = {
    "process (\\d+) works on": 1,
    "run started: ": 1,
    "shell: ": 1,
    "agent started: orchestrator": 1,
    "agent started: writer-1": 1,
    "agent finished: orchestrator complete": 1,
    "tool finished: orchestrator finish_exploration": 1,
    "tool finished: searcher-1 get_hn_stories": 1,
    "report written: ": 1,
    "run finished: complete": 1,
    "process (\\d+) is done with": 1,
}
DETAILS = (
    "journal opened: 0 records",
    "role loaded: writer",
    "tool started: searcher-1 get_hn_stories",
    "source stored: S1 ",
)


@pytest.fixture(
    scope="module",
    params=[
        ("-vv", explorer_here),
        *(pytest.param((flag, explorer), marks=pytest.mark.slow) for flag in ("-v", "-vv")),
    ],
    ids=["here", "-v", "-vv"],
)
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    """The flag, all that was written, and the lines of the log with their levels."""
    flag, run = request.param
    folder = tmp_path_factory.mktemp("demo")
    keys = {"ANTHROPIC_API_KEY": CANARY, "EXA_API_KEY": CANARY}
    done = run("demo", flag, f"What do people say of {CANARY} and Tern TLS?", cwd=folder, settings=keys)
    assert done.returncode == 0, done.stderr
    shown = done.stderr
    if run is explorer_here:
        # Only a process of its own keeps keys out of what it shows of the question.
        _, _, shown = shown.partition("\n")
    yield flag, done.stdout + shown, Counter(f"{level} {words}" for level, words in LINE.findall(done.stderr))
    # What a command line in this process did to the log.
    logger.remove()
    logger.disable("explorer")


@pytest.mark.slow
def test_each_operation_is_logged_once(log: Log) -> None:
    """What a user follows is INFO, once each, with model replies and fetches beside it; nothing went wrong."""
    flag, _, lines = log
    for words, times in FOLLOWED.items():
        found = [line for line in lines.elements() if re.match(f"(INFO|WARNING) {words}", line)]
        assert len(found) == times, (words, found)
        assert found[0].startswith("INFO")
    replies = [line for line in lines.elements() if line.startswith("INFO model replied: ")]
    assert len(replies) > 10
    assert all(re.search(r" in \d+\.\d\d s, \d+ tokens in, \d+ out, \$0\.0000, \d+ calls$", line) for line in replies)
    assert [line for line in lines if re.match(r"INFO source fetched: [\w.-]+ status 200, \d+ bytes", line)]
    assert (flag == "-vv") == any(line.startswith("DEBUG") for line in lines)


@pytest.mark.slow
def test_details_are_for_engineers(log: Log) -> None:
    """`-vv` adds requests, starts and stored sources, once each; `-v` has none of them."""
    flag, _, lines = log
    times = 1 if flag == "-vv" else 0
    for words in DETAILS:
        found = [line for line in lines.elements() if line.startswith(f"DEBUG {words}")]
        assert len(found) == times, words
    asked = sum(count for line, count in lines.items() if line.startswith("DEBUG model asked: "))
    replied = sum(count for line, count in lines.items() if line.startswith("INFO model replied: "))
    assert asked == replied * times


def test_no_key_and_no_text_is_logged(log: Log) -> None:
    """The key, which is even in the question, is nowhere; neither the question nor a page is in the log."""
    _, written, lines = log
    assert CANARY not in written
    assert not [line for line in lines if "people say" in line or "stepping down" in line.lower()]


async def test_what_went_worse_is_a_warning() -> None:
    """A source that refuses and an engine that fails are warnings, with the host and no more of the address."""

    class Failing(WebSearch):
        name = "failing"

        async def search(self, query: WebQuery) -> WebAnswer:
            del query
            raise SearchFailedError("failing", "is over its limit")

    class Answering(Failing):
        name = "answering"

        async def search(self, query: WebQuery) -> WebAnswer:
            del query
            return WebAnswer("answering", ())

    shown: list[str] = []
    logger.enable("explorer")
    sink = logger.add(lambda message: shown.append(str(message).strip()), format="{level} {message}", level="INFO")
    try:
        with serving({"/secret-path": Answer(b"no", 403)}) as site:
            async with open_plain_web() as web:
                await web.get(f"{site.url}/secret-path")
        await SearchChain([Failing(), Answering()], "").search(WebQuery("glue"))
    finally:
        logger.remove(sink)
        logger.disable("explorer")
    assert shown == [
        "WARNING source fetched: 127.0.0.1 status 403, 2 bytes",
        "WARNING web search failed: failing is over its limit",
        "INFO web search: answering gave 0 results",
    ]


@pytest.mark.slow
def test_silent_until_asked(tmp_path: Path) -> None:
    """Without a flag there is no line of the log."""
    assert not LINE.findall(explorer("demo", cwd=tmp_path).stderr)
