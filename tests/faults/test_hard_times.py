"""Faults that strike the whole team: storms, outages, a lost key, a full window, text that breaks encoders."""

import asyncio
import base64
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import pytest
from loguru import logger
from pydantic import SecretStr

from command import explorer
from explorer.llm.faults import redact
from explorer.llm.options import Endpoint
from explorer.llm.retry import FailedAttempt, RateGate, RetryingClient, Timing
from explorer.run.run import resume, start
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.events import Compacted, Status, Summarised, ToolFinished
from explorer.schema.messages import Request, Turn, repair_text
from explorer.schema.tool import ToolResult, tool
from explorer.text.rendering import block
from faults.fault_table import CUT, HOSTILE
from faults.stage import (
    KEY,
    NOTES,
    QUESTION,
    REPORT,
    WIRES,
    Raw,
    Watchful,
    check_left_behind,
    events_of,
    hooks,
    only_run,
    pairs,
    request_problems,
    steady,
)
from faults.stage import settings as settings_for
from model_servers import Asked, JsonObject, Reply
from team_script import role_of

LONE_REQUESTS = 5
ON_EACH_WIRE = pytest.mark.parametrize(
    "wire", ["anthropic", *(pytest.param(wire, marks=pytest.mark.slow) for wire in ("openai", "openai-responses"))]
)
AGENTS = 64


class Storm:
    """64 helpers, all throttled: all at once, when the last of them has asked, and then until five came one by one."""

    def __init__(self, retry_after: str) -> None:
        headers = {"retry-after": retry_after}
        self._throttled = Raw(status=429, error="rate_limit", headers=headers, before=self._wait_for_all)
        self._all_have_asked = threading.Event()
        self._asked_at: list[float] = []

    def __call__(self, asked: Asked) -> Reply:
        """Answer, or throttle."""
        if role_of(asked) != "searcher" or len(self.gaps) >= LONE_REQUESTS:
            return steady(asked, AGENTS)
        self._asked_at.append(time.monotonic())
        if len(self._asked_at) == AGENTS:
            self._all_have_asked.set()
        return self._throttled

    @property
    def gaps(self) -> list[float]:
        """Seconds between requests, from the last of those that came at once."""
        return [later - earlier for earlier, later in pairwise(self._asked_at[AGENTS - 1 :])]

    def _wait_for_all(self) -> None:
        assert self._all_have_asked.wait(60)


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("wire", "retry_after", "asked_s", "scale"),
    [
        pytest.param("anthropic", "1", 1, 1.0, marks=pytest.mark.slow),
        pytest.param("openai", "60", 60, 0.1, marks=pytest.mark.slow),
    ],
)
async def test_a_storm_of_64_throttled_agents_is_waited_out_together(
    wire: str, retry_after: str, asked_s: float, scale: float, tmp_path: Path
) -> None:
    """After the first volley one request goes out per wait that the provider asked for; all work is done."""
    script = Storm(retry_after)
    with WIRES[wire](script) as server:
        # Money for all requests of the volley: they are reserved at their worst case.
        limits = {"max_agents": AGENTS + 1, "max_parallel_agents": AGENTS, "max_cost_usd": 1_000}
        settings = settings_for(tmp_path, server, **limits)
        async with asyncio.timeout(150):
            result = await start(QUESTION, settings, hooks(watch_s=60, seconds_per_second=scale))
        check_left_behind(result.folder, server)
    assert result.status is Status.COMPLETE, result.reason
    assert result.agents == AGENTS + 2
    assert len(script.gaps) == LONE_REQUESTS
    assert min(script.gaps) > 0.9 * asked_s * scale


class Outage:
    """The steady team, until a helper asks for the second time: then the server is gone."""

    def __init__(self) -> None:
        self.server: Watchful | None = None
        self.is_down = False

    def __call__(self, asked: Asked) -> Reply:
        """Answer, or be gone for good."""
        assert self.server is not None
        if role_of(asked) == "searcher" and asked.results and not self.is_down:
            self.is_down = True
            return Raw(resets="before", before=self.server.stop_listening)
        return Raw(resets="before") if self.is_down else steady(asked)


@pytest.mark.slow
@ON_EACH_WIRE
async def test_an_outage_longer_than_our_patience_leaves_a_run_to_resume(wire: str, tmp_path: Path) -> None:
    """When nothing listens any more, the run stops as 'provider down', says how to go on, and goes on."""
    script = Outage()
    with WIRES[wire](script) as server:
        script.server = server
        with pytest.raises(ModelError) as stopped:
            await start(QUESTION, settings_for(tmp_path, server), hooks())
        check_left_behind(only_run(tmp_path), server)
    assert (stopped.value.exit_code, stopped.value.fault) == (6, ModelFault.TRANSPORT)
    run = only_run(tmp_path)
    partial = (run / "report.md").read_text()
    assert "status: partial" in partial
    assert f"explorer resume {run.name}" in partial
    with WIRES[wire](steady) as server:
        result = await resume(run, settings_for(tmp_path, server), hooks=hooks())
        check_left_behind(run, server)
    assert result.status is Status.COMPLETE
    assert "A good May" in result.report_text


class Revoked:
    """Eight helpers at work, seven of which wait for an answer, when the key of the eighth is refused."""

    def __init__(self) -> None:
        self.waiting = 0
        self.refused_at = 0.0
        self._is_ready = threading.Event()

    def __call__(self, asked: Asked) -> Reply:
        """Answer the first requests, keep seven of the second ones waiting, refuse the eighth, quoting the key."""
        if role_of(asked) != "searcher" or not asked.results:
            return steady(asked, 8)
        self.waiting += 1
        if self.waiting < 8:
            return Reply(text="I look", stalls="pings")
        body = f'{{"error": {{"message": "invalid key: {" ".join(spellings(KEY))}", "type": "authentication_error"}}}}'
        return Raw(status=401, body=body, before=self._note)

    def _note(self) -> None:
        self.refused_at = time.monotonic()


def spellings(key: str) -> tuple[str, ...]:
    """A key as it is, and in the forms in which it hides."""
    shifted = (base64.b64encode(b"x" * shift + key.encode()).decode() for shift in range(3))
    return (key, key.encode().hex(), quote(key, safe=""), key[::-1], *(text[4:-4] for text in shifted))


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """All that the engine logs, in full."""
    lines: list[str] = []
    logger.enable("explorer")
    sink = logger.add(lines.append, level="TRACE", backtrace=True, diagnose=True)
    yield lines
    logger.remove(sink)
    logger.disable("explorer")


def _check_no_key(folder: Path, *output: str) -> None:
    """Check that no file and no output holds the key, however written."""
    texts = [path.read_bytes().decode("utf-8", "replace") for path in folder.rglob("*") if path.is_file()]
    assert texts
    assert [form for form in spellings(KEY) for text in (*texts, *output) if form in text] == []


STUCK_S = 50.0
"""After so long without content a helper would be ended by itself."""


@pytest.mark.slow
@ON_EACH_WIRE
async def test_a_key_revoked_in_the_middle_stops_everyone_at_once(
    wire: str, tmp_path: Path, logged: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """A 401 to one helper ends all eight before any of them is given up as stuck, and shows the key nowhere."""
    script = Revoked()
    with WIRES[wire](script) as server:
        with pytest.raises(ModelError) as stopped:
            await start(QUESTION, settings_for(tmp_path, server), hooks(watch_s=STUCK_S))
        took_s = time.monotonic() - script.refused_at
        check_left_behind(only_run(tmp_path), server)
    assert took_s < STUCK_S / 2
    assert stopped.value.exit_code == 4
    assert script.waiting == 8
    assert asyncio.all_tasks() == {asyncio.current_task()}
    chain = "".join(f"{error} {error.__cause__} {error.__context__}" for error in (stopped.value,))
    output = capfd.readouterr()
    _check_no_key(tmp_path / "workspace", *logged, output.out, output.err, chain, stopped.value.hint)


def test_a_quoted_key_is_struck_out_however_it_is_written() -> None:
    """Plain, in hex, in a URL, or anywhere within a base64 text: nothing of the key is left in an error's words."""
    place = Endpoint("Someone", "http://127.0.0.1:9", "SOME_KEY", "SOME_URL", SecretStr(KEY))
    coded = [base64.b64encode(f"{name}:{KEY}".encode()).decode() for name in ("a", "bc", "def")]
    shown = redact(f"cannot pass on {' '.join([*spellings(KEY)[:3], *coded])}", place)
    assert [form for form in spellings(KEY) if form in shown] == []
    assert redact("cannot pass on", Endpoint("Someone", "u", "K", "U", SecretStr("a"))) == "c***nnot p***ss on"


def _quote_the_key(asked: Asked) -> Reply:
    """Fail as a proxy does that quotes the request it could not pass on."""
    if role_of(asked) == "orchestrator" and asked.results:
        coded = [base64.b64encode(f"{name}:{KEY}".encode()).decode() for name in ("a", "bc", "def")]
        quoted = " ".join([*spellings(KEY)[:3], *coded])
        return Reply(status=400, body=f'{{"error": {{"message": "cannot pass on {quoted}"}}}}')
    return steady(asked)


@pytest.mark.slow
def test_a_key_that_a_server_quotes_is_in_no_output(tmp_path: Path) -> None:
    """The command line at its most talkative shows a server's words without the key, coded or not."""
    (tmp_path / "notes.md").write_text("Solar output rose by 12 % in May.\n")
    with WIRES["anthropic"](_quote_the_key) as server:
        keys = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url, "EXPLORER_ALLOW_HOSTS": "127.0.0.1"}
        done = explorer(QUESTION, "--file", "notes.md", "-vv", cwd=tmp_path, settings=keys)
    assert "cannot pass on" in done.stdout + done.stderr
    _check_no_key(tmp_path, done.stdout, done.stderr)


class Overflow:
    """A lead that reads a long file again and again, until the window is full for some requests in a row."""

    def __init__(self, times: int) -> None:
        self._left = times
        self.overflows = 0

    def __call__(self, asked: Asked) -> Reply:
        """Read on, overflow, or finish."""
        is_lead = role_of(asked) == "orchestrator"
        if is_lead and self._left and (self.overflows or len(asked.results) == 6):
            self._left -= 1
            self.overflows += 1
            return Reply(status=400, error="too_long")
        if not is_lead or len(asked.results) > 6 or self.overflows:
            return steady(asked)
        first = len(asked.results) * 10 + 1
        return Reply(calls=[("read_file", {"filepath": "inputs/notes.md", "start_line": first})])


@pytest.mark.slow
@ON_EACH_WIRE
@pytest.mark.parametrize("times", [1, 2, 3])
async def test_a_full_window_is_emptied_twice_and_no_more(times: int, wire: str, tmp_path: Path) -> None:
    """Old results are cleared, then old exchanges are left out, and the run goes on; a third overflow ends it."""
    script = Overflow(times)
    with WIRES[wire](script) as server:
        settings = settings_for(tmp_path, server)
        settings.files[0].write_text(NOTES + "".join(f"Line {number}: {'word ' * 30}\n" for number in range(100)))
        result = await start(QUESTION, settings, hooks())
        check_left_behind(result.folder, server)
    assert script.overflows == times
    assert len(events_of(result.folder, Compacted)) == 1
    assert len(events_of(result.folder, Summarised)) == (times > 1)
    assert result.status is (Status.COMPLETE if times < 3 else Status.PARTIAL)
    assert ("window" in result.reason) == (times == 3)


@pytest.mark.slow
@ON_EACH_WIRE
@pytest.mark.parametrize("is_taken", [True, False])
async def test_a_cut_reply_is_given_more_room_once(wire: str, tmp_path: Path, *, is_taken: bool) -> None:
    """Right after a cut reply twice as much may come, once; a model that does not take that loses nothing."""
    cut = 2
    limit = "max_output_tokens" if wire == "openai-responses" else "max_tokens"

    def script(asked: Asked) -> Reply:
        nonlocal cut
        if role_of(asked) == "writer" and not is_taken and asked.body[limit] > 16_000:
            return Reply(status=400, body='{"error": {"message": "max_tokens: 32000 > 16384"}}')
        if role_of(asked) == "writer" and cut:
            cut -= 1
            return Reply(calls=[("write_file", CUT)], stop="max_tokens")
        return steady(asked)

    with WIRES[wire](script) as server:
        result = await start(QUESTION, settings_for(tmp_path, server), hooks())
        check_left_behind(result.folder, server)
        asked = [server.read(body) for body in server.requests]
    assert result.status is Status.COMPLETE, result.reason
    asked_for = [one.body[limit] for one in asked if role_of(one) == "writer"]
    assert asked_for == [16_000, 32_000, *[16_000] * (2 if is_taken else 3)]
    assert not (result.folder / "cut").exists()
    shown = [result for one in asked for _, _, result in pairs(one)]
    assert any("cut at its length limit, so none of its calls was run" in words for words in shown)


FLOOD = HOSTILE * (10_000_000 // len(HOSTILE))


@tool
async def dump_everything() -> ToolResult:
    """Return ten megabytes of text hostile to encoders."""
    return ToolResult(success=True, content=FLOOD)


@tool
async def fail_badly() -> str:
    """Fail with an error that cannot be encoded."""
    raise ValueError(HOSTILE)


@tool
async def promise_files() -> ToolResult:
    """Hand back what the engine does not understand."""
    return ToolResult(success=True, content="ok", metadata={"files": [{"path": float("nan")}]})


def _hostile_team(asked: Asked) -> Reply:
    role, done = role_of(asked), [name for name, _, _ in pairs(asked)]
    if role == "searcher" and "dump_everything" not in done:
        return Reply(calls=[("dump_everything", {}), ("fail_badly", {}), ("promise_files", {})], text=HOSTILE)
    if role == "writer" and not done:
        report = {"filepath": "report.md", "content": f"{REPORT}\n{HOSTILE}\n", "mode": "overwrite"}
        return Reply(text=HOSTILE, calls=[("write_file", report)])
    return steady(asked, 1)


@pytest.mark.slow
@ON_EACH_WIRE
async def test_text_hostile_to_encoders_leaves_everything_valid(wire: str, tmp_path: Path) -> None:
    """Half pairs, NUL and ten megabytes from question, model and tools: requests, journal and files stay valid."""
    roles = tmp_path / "roles"
    roles.mkdir()
    names = ("read_file", "write_file", "dump_everything", "fail_badly", "promise_files")
    head = f"---\nname: searcher\ndescription: Looks.\ntools: [{', '.join(names)}]\nmodel: fast\n---\n"
    (roles / "searcher.md").write_text(f"{head}You find things out, with tools that overdo it.\n")
    given = replace(hooks(watch_s=10), tools=(dump_everything, fail_badly, promise_files))
    with WIRES[wire](_hostile_team) as server:
        settings = settings_for(tmp_path, server).model_copy(update={"roles_dir": roles})
        result = await start(f"{QUESTION} {HOSTILE}", settings, given)
        check_left_behind(result.folder, server)
        assert max(len(str(body)) for body in server.requests) < 200_000
    assert result.status is Status.COMPLETE, result.reason
    assert "A good May" in result.report_text
    (flood,) = [e for e in events_of(result.folder, ToolFinished) if getattr(e, "name", "") == "dump_everything"]
    assert len(getattr(flood, "content", "")) < 20_000
    kept = sorted((result.folder / ".explorer" / "outputs").iterdir())
    # All that can be seen of it, in its fence: what no reader sees reaches no model and no file for one.
    assert sum(len(path.read_text()) for path in kept) == len(block(repair_text(FLOOD)))
    assert "failed: <<ValueError" in str(events_of(result.folder, ToolFinished))


def test_the_checks_bite(tmp_path: Path) -> None:
    """The judges of these tests see each flaw: a call without its result, half a pair, NaN, a key in base64."""
    call: JsonObject = {"type": "tool_use", "id": "c1", "name": "x", "input": {}}
    output = {"role": "user", "content": [{"type": "text", "text": "Go on."}]}
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]}
    asked: JsonObject = {"role": "assistant", "content": [call]}
    assert request_problems("/v1/messages", {"messages": [output, asked, answer]}) == []
    assert request_problems("/v1/messages", {"messages": [output, asked, output]}) != []
    assert request_problems("/v1/messages", {"messages": [output, output]}) != []
    chat_call = {"id": "c1", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    chat = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": None, "tool_calls": [chat_call]}]
    route = "/v1/chat/completions"
    assert request_problems(route, {"messages": [*chat, {"role": "tool", "tool_call_id": "c1", "content": ""}]}) == []
    assert request_problems(route, {"messages": [*chat, {"role": "user", "content": "And?"}]}) != []
    assert "not encodable" in request_problems(route, {"messages": [{"role": "user", "content": "\ud83d"}]})[0]
    assert "not encodable" in request_problems(route, {"messages": [{"role": "user", "content": float("nan")}]})[0]
    (tmp_path / "log").write_text(base64.b64encode(f"Bearer {KEY}".encode()).decode())
    with pytest.raises(AssertionError):
        _check_no_key(tmp_path)


async def test_without_a_shared_gate_the_storm_is_a_stampede() -> None:
    """The measure of the storm has teeth: 64 clients with a gate each ask far more often than two times a second."""
    clock = 0.0
    asked: list[float] = []

    async def sleep(seconds: float) -> None:
        nonlocal clock
        until = clock + seconds
        await asyncio.sleep(0)
        clock = max(clock, until)

    class Throttled:
        async def generate(self, request: Request) -> Turn:  # noqa: ARG002 - the port's own name
            asked.append(clock)
            raise ModelError(ModelFault.RATE_LIMITED, "no", retry_after_s=1.0)

    async def note(_failed: FailedAttempt) -> None:
        return None

    request = Request(agent="a", role="r", model="m", system="", tools=(), history=(), max_output_tokens=1)
    timing = Timing(clock=lambda: clock, sleep=sleep, random=lambda: 0.0)

    async def ask(gate: RateGate) -> None:
        with pytest.raises(ModelError):
            await RetryingClient(Throttled(), gate, note, timing=timing).generate(request)

    async def rate(gates: list[RateGate]) -> float:
        nonlocal clock
        clock = 0.0
        asked.clear()
        async with asyncio.TaskGroup() as group:
            for gate in gates:
                group.create_task(ask(gate))
        return sum(at > 0 for at in asked) / clock

    alone = [RateGate(AGENTS, timing) for _ in range(AGENTS)]
    assert await rate(alone) > 10
    assert await rate([RateGate(AGENTS, timing)] * AGENTS) < 2
