"""`explorer mcp serve` as a process: what clients see on stdin, stdout and HTTP, and what is left when it ends."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from cli.conftest import STORY
from cli.stage import SCRIPT, Explorer, Hold, begin_explorer, begin_with_input, clean_environment, end_of
from explorer.journal.control import Inbox
from explorer.journal.journal import Journal
from explorer.journal.listing import is_running, read_records
from explorer.journal.run_state import RunState
from explorer.schema.events import ORCHESTRATOR, AgentContinued, RunStarted
from team_script import only_run

FLAGS = ("mcp", "serve", "--model", "offline", "--no-shell")
QUESTION = "What is notable on Hacker News today?"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
TOKEN = "a-token-of-this-test-0123"


def services(hold: Hold) -> dict[str, str]:
    """Hacker News as a service that holds every request."""
    return {
        "EXPLORER_HN_API_URL": f"{hold.url}/v0",
        "EXPLORER_HN_SEARCH_URL": f"{hold.url}/api/v1",
        "EXPLORER_ALLOW_HOSTS": "127.0.0.1",
        "EXPLORER_TAVILY_URL": hold.url,
    }


class Served:
    """A server over stdio, and the messages to and from it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[str] = []
        self.send("initialize", HELLO)
        self.read()
        self.send("notifications/initialized", is_request=False)

    def send(self, method: str, params: dict[str, Any] | None = None, *, is_request: bool = True) -> None:
        """Write one message."""
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}} | ({"id": 1} if is_request else {})
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """Read the next message."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.lines.append(line)
        return json.loads(line)

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool, and return its result."""
        self.send("tools/call", {"name": tool, "arguments": arguments})
        return self.read()["result"]

    def end(self) -> tuple[int, str, str]:
        """Wait for its end; return the exit code, what is left of stdout, and stderr."""
        return end_of(self.process)


@contextmanager
def served(folder: Path, *flags: str, **variables: str) -> Generator[Served]:
    """A server in this folder."""
    with begin_with_input(*FLAGS, *flags, cwd=folder, **variables) as process:
        try:
            yield Served(process)
        finally:
            process.kill()


def close_input(server: Served) -> None:
    """Go away, as a client does that ends."""
    assert server.process.stdin is not None
    server.process.stdin.close()


def close_output(server: Served) -> None:
    """Go away without a word: the next answer finds nobody."""
    assert server.process.stdout is not None
    server.process.stdout.close()
    server.send("tools/list")


def terminate(server: Served) -> None:
    """Send SIGTERM."""
    server.process.send_signal(signal.SIGTERM)


def interrupt(server: Served) -> None:
    """Send SIGINT."""
    server.process.send_signal(signal.SIGINT)


def kill(server: Served) -> None:
    """Send SIGKILL."""
    server.process.kill()


ENDINGS: dict[str, tuple[Callable[[Served], None], int]] = {
    "closed stdin": (close_input, 0),
    "closed stdout": (close_output, 0),
    "SIGTERM": (terminate, 143),
    "SIGINT": (interrupt, 130),
    "SIGKILL": (kill, -9),
}


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_run_survives_the_end_of_the_server(ending: str, hold: Hold, tmp_path: Path, explorer: Explorer) -> None:
    """However the server ends in the middle of a run, the question that it acknowledged is answered by `resume`."""
    end, expected = ENDINGS[ending]
    with served(tmp_path, **services(hold)) as server:
        run = server.call("start_exploration", question=QUESTION)["structuredContent"]["run_id"]
        assert hold.asked.wait(100)
        end(server)
        assert server.process.wait(100) == expected
    folder = tmp_path / "workspace" / run
    started = read_records(folder)[0].event
    assert isinstance(started, RunStarted)
    assert started.question == QUESTION
    assert not is_running(folder)
    hold.let_go.set()
    # Its services hang up now: it ends by itself, and says that no source could be reached.
    assert explorer("resume", run, "--model", "offline", **services(hold)).returncode == 6
    assert RunState.of_records(read_records(folder)).finished is not None


@pytest.mark.slow
def test_an_acknowledged_follow_up_is_not_lost(kept_run: Path, tmp_path: Path) -> None:
    """When the server is killed right after it took a follow-up, the follow-up is in the journal."""
    words = "And who disagreed?"
    with served(tmp_path) as server:
        assert not server.call("follow_up", run_id=kept_run.name, message=words)["isError"]
        server.process.kill()
        server.process.wait(100)
    events = [record.event for record in read_records(kept_run)]
    asked = [event for event in events if isinstance(event, AgentContinued) and event.agent == ORCHESTRATOR]
    assert [event.task for event in asked] == [words]


@pytest.mark.slow
def test_runs_at_work_are_bounded_steered_and_stopped(hold: Hold, tmp_path: Path) -> None:
    """One run too many is refused; a message is queued for the run at work; an order to stop ends it with a report."""
    with served(tmp_path, "--max-runs", "1", "-vv", **services(hold)) as server:
        run = server.call("start_exploration", question=QUESTION)["structuredContent"]["run_id"]
        assert hold.asked.wait(100)
        refused = server.call("start_exploration", question="Another question?")
        assert refused["isError"]
        assert run in refused["content"][0]["text"]
        waited = server.call("wait_for_report", run_id=run, timeout_s=0)["structuredContent"]
        assert (waited["status"], waited["text"]) == ("running", "")
        steered = server.call("steer", run_id=run, message="Leave out jobs")["structuredContent"]
        assert steered["state"] in {"queued", "applied"}
        assert server.call("stop", run_id=run)["structuredContent"]["state"] in {"queued", "applied"}
        hold.let_go.set()
        ended = server.call("wait_for_report", run_id=run, timeout_s=300)["structuredContent"]
        assert ended["status"] in {"partial", "sources_unavailable"}
        assert ended["report_uri"]
        close_input(server)
        code, rest, error = server.end()
    assert code == 0
    assert "MCP server on stdin and stdout" in error
    # With the log at its loudest, stdout has messages of the protocol and nothing else.
    assert rest == ""
    assert {json.loads(line)["jsonrpc"] for line in server.lines} == {"2.0"}


@pytest.mark.slow
def test_the_cost_of_all_runs_together_is_bounded(tmp_path: Path) -> None:
    """A start for which nothing is left is refused with the flag that sets the limit."""
    with served(tmp_path, "--max-total-cost", "0.005") as server:
        refused = server.call("start_exploration", question=QUESTION)
        assert refused["isError"]
        assert "with a higher --max-total-cost" in refused["content"][0]["text"]
        close_input(server)
        assert "at most $0.01 a day for all of them, $0.00 spent today" in server.end()[2]
    assert not list((tmp_path / "workspace").glob("2*"))


@pytest.mark.slow
def test_a_run_of_another_process_is_steered(kept_run: Path, tmp_path: Path) -> None:
    """A message to a run that another process works on is left in its inbox, and a follow-up to it is refused."""
    journal = Journal.open(kept_run / ".explorer", lambda: read_records(kept_run)[-1].at)
    try:
        with served(tmp_path) as server:
            refused = server.call("follow_up", run_id=kept_run.name, message="More?")
            assert "is at work; steer sends it a message" in refused["content"][0]["text"]
            assert (
                server.call("steer", run_id=kept_run.name, message="First words")["structuredContent"]["state"]
                == "queued"
            )
    finally:
        journal.close()
    assert [order.text for order in Inbox(kept_run / ".explorer").waiting()] == ["First words"]


@pytest.mark.slow
async def test_the_official_client_over_stdio(kept_run: Path, tmp_path: Path) -> None:
    """The official client starts the server, reads a report and its sources, and ends it."""
    environment = clean_environment(tmp_path)
    parameters = StdioServerParameters(command=str(SCRIPT), args=list(FLAGS), cwd=tmp_path, env=environment)
    async with Client(stdio_client(parameters)) as client:
        (resource,) = (await client.list_resources()).resources
        assert resource.name == kept_run.name
        report = await client.call_tool("wait_for_report", {"run_id": kept_run.name})
        assert STORY in report.structured_content["question"]
        assert (await client.call_tool("read_source", {"run_id": kept_run.name, "source_id": "S1"})).structured_content


@contextmanager
def served_over_http(folder: Path, *flags: str, **variables: str) -> Generator[tuple[str, "subprocess.Popen[str]"]]:
    """A server over HTTP in this folder, and its address."""
    with begin_explorer(*FLAGS, "--http", "--port", "0", *flags, cwd=folder, **variables) as process:
        try:
            assert process.stderr is not None
            yield process.stderr.readline().split()[3].rstrip(","), process
        finally:
            process.kill()


REFUSED: dict[str, tuple[dict[str, str], int]] = {
    "no token": ({}, 401),
    "a wrong token": ({"Authorization": f"Bearer {TOKEN}x"}, 401),
    "another scheme": ({"Authorization": f"Basic {TOKEN}"}, 401),
    "letters beyond ASCII": ({"Authorization": "Bearer tök"}, 401),
    "a page that gave this address its own name": ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, 421),
    "a page of another site": ({"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example"}, 403),
}


@pytest.mark.slow
async def test_http_takes_the_token_alone_and_only_from_this_machine(kept_run: Path, tmp_path: Path) -> None:
    """Requests without the token, and of pages in a browser, are refused; the official client works; no log has it."""
    ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    accept = {"Accept": "application/json, text/event-stream"}
    with served_over_http(tmp_path, "-vv", EXPLORER_MCP_TOKEN=TOKEN) as (url, process):
        async with httpx2.AsyncClient() as http:
            for name, (headers, status) in REFUSED.items():
                encoded = {key.encode(): value.encode("latin-1") for key, value in (headers | accept).items()}
                answer = await http.post(url, json=ask, headers=encoded)
                assert answer.status_code == status, name
                assert TOKEN not in answer.text
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            report = await client.call_tool("wait_for_report", {"run_id": kept_run.name})
            assert report.structured_content["status"] == "complete"
        process.send_signal(signal.SIGTERM)
        code, shown, error = end_of(process)
    assert code == 143
    assert shown == ""
    assert TOKEN not in error


@pytest.mark.slow
def test_a_run_outlives_its_client_over_http_and_survives_sigterm(hold: Hold, tmp_path: Path) -> None:
    """A run goes on when the HTTP client that started it has gone; SIGTERM saves it."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}
    ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    call = {"name": "start_exploration", "arguments": {"question": QUESTION}}
    with served_over_http(tmp_path, EXPLORER_MCP_TOKEN=TOKEN, **services(hold)) as (url, process):
        with httpx2.Client(headers=headers, timeout=100) as http:
            session = {"Mcp-Session-Id": http.post(url, json=ask).headers["mcp-session-id"]}
            http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session)
            http.post(url, json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}, headers=session)
        assert hold.asked.wait(100)
        folder = only_run(tmp_path / "workspace")
        assert is_running(folder)
        process.send_signal(signal.SIGTERM)
        assert process.wait(100) == 143
    assert not is_running(folder)
    assert RunState.of_records(read_records(folder)).finished is None


def test_wrong_words_are_refused_before_anything_is_served(here: Explorer) -> None:
    """A missing package, too many runs and a short token are one line each, with what helps; the token stays."""
    assert "give a number from 1 to" in here("mcp", "serve", "--max-runs", "0").stderr
    for flag in ("--max-total-cost", "--approval-wait"):
        assert f"{flag} 'much' is not allowed" in here("mcp", "serve", flag, "much").stderr
    short = here("mcp", "serve", "--http", "--model", "offline", EXPLORER_MCP_TOKEN="short")
    assert short.returncode == 2
    assert "fewer than 16 characters" in short.stderr
    first, second = here("mcp", "token").stdout, here("mcp", "token").stdout
    assert first == second
    assert len(first.strip()) == 32
    given = here("mcp", "token", EXPLORER_MCP_TOKEN=TOKEN)
    assert given.stdout == ""
    assert TOKEN not in given.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "mcp", None)
        missing = here("mcp", "serve", "--model", "offline")
    assert missing.returncode == 2
    assert "pip install 'explorer[mcp]'" in missing.stderr
