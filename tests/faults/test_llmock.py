"""The engine before an examiner of someone else's making: llmock serves faults and grades the client's reaction."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from explorer.llm.clients import RetrySettings
from explorer.llm.options import Timeouts
from explorer.llm.retry import Timing
from explorer.run.hooks import RunHooks
from explorer.run.run import start
from explorer.schema.errors import ModelError
from faults.stage import QUESTION, REPORT, hooks, settings_at

pytestmark = pytest.mark.slow

WIRES = ("openai", "anthropic")
Examiner = Any
"""llmock's handle; it has no stable types of its own."""


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """One examiner's server; the test is skipped where llmock is not installed."""
    with pytest.importorskip("llmock.testing").LLMockServer() as running:
        yield running


@pytest.fixture
def examiner(server: Any) -> Examiner:  # noqa: ANN401 - see `Examiner`
    """The examiner, without memory of the test before."""
    return pytest.importorskip("llmock.pytest_plugin").LLMock(server).reset()


def _patient() -> RunHooks:
    """The product's own patience, in real time, but for its chance and the watch over content."""
    timing = Timing(random=lambda: 0.1)
    return replace(hooks(), retry_settings=RetrySettings(Timeouts(first_content_s=0.8, idle_s=0.8, total_s=10), timing))


async def _run(examiner: Examiner, server: Any, wire: str, folder: Path) -> str:  # noqa: ANN401 - see `Examiner`
    """A small run: the lead writes the report itself; its status, or why it stopped."""
    written = {"filepath": "report.md", "content": REPORT, "mode": "overwrite"}
    # An attempt whose stream fails uses its reply up, so there is one for each.
    examiner.call_tool("write_file", written, times=3)
    examiner.call_tool("finish_exploration", {"summary": "May was good."})
    settings = settings_at(server.base_url(wire), folder, is_anthropic=wire == "anthropic")
    try:
        async with asyncio.timeout(50):
            result = await start(QUESTION, settings, _patient())
            return f"{result.status}, written" if "A good May" in result.report_text else str(result.status)
    except ModelError as error:
        return error.fault


def _broken(mock: Examiner) -> None:
    """A chunk that is no JSON. At full speed the rest could be sent before the hang-up is seen, and count as read."""
    mock.pace(200).corrupt(after_chunks=1, times=2)


FAULTS: dict[str, tuple[Callable[[Examiner], object], str]] = {
    "throttled twice": (lambda mock: mock.rate_limit(times=2, retry_after=0.5), "complete, written"),
    "down three times": (lambda mock: mock.fail(503, times=3), "complete, written"),
    "overloaded": (lambda mock: mock.fail(529, times=2), "complete, written"),
    "dropped": (lambda mock: mock.disconnect(after_chunks=2, times=2), "complete, written"),
    "cut short": (lambda mock: mock.truncate(after_chunks=2, times=2), "complete, written"),
    "broken": (_broken, "complete, written"),
    "stalled": (lambda mock: mock.stall(after_chunks=1, seconds=5, times=1), "complete, written"),
    "out for good": (lambda mock: mock.outage(status=503), "overloaded"),
    "key refused": (lambda mock: mock.fail(401, times=None), "credentials"),
    "too long": (lambda mock: mock.context_overflow(times=None), "partial"),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", FAULTS)
async def test_the_examiner_finds_no_fault(
    fault: str,
    wire: str,
    examiner: Examiner,
    server: Any,  # noqa: ANN401 - see `Examiner`
    tmp_path: Path,
) -> None:
    """Retry-after honoured, waits that grow, nothing hopeless retried, no cut stream taken for whole: strictly."""
    inject, expected = FAULTS[fault]
    inject(examiner)
    assert await _run(examiner, server, wire, tmp_path) == expected
    verdict = examiner.verdict()
    assert verdict.faults > 0
    verdict.assert_ok(strict=True)


async def test_the_examiner_bites(examiner: Examiner, server: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """A client that takes a cut stream for a whole answer is found out."""
    openai = pytest.importorskip("openai")
    examiner.truncate(after_chunks=2)
    async with openai.AsyncOpenAI(base_url=server.base_url("openai"), api_key=tmp_path.name, max_retries=0) as client:
        output = [{"role": "user", "content": QUESTION}]
        stream = await client.chat.completions.create(model="gpt-6-luna", messages=output, stream=True)
        async for _ in stream:
            pass
    with pytest.raises(AssertionError, match="truncated_stream_accepted"):
        examiner.verdict().assert_ok(strict=True)
