"""The adapters and a whole run before a mock of someone else's making: aimock in its strict mode, run by node.

Strict means that a request no fixture was written for is an error, and each test compares aimock's own journal with
what had to be asked. So nothing passes because the mock answers anything.
"""

import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from explorer.llm.options import Timeouts
from explorer.run.run import start
from explorer.schema.errors import ModelError
from explorer.schema.messages import CallResult, Results, StopKind, UserText
from faults.stage import QUESTION, REPORT, hooks, settings_at
from llm.conversations import ANTHROPIC, BOTH, CHAT, RESPONSES
from llm.test_conversations import client_for, request_for
from model_servers import JsonObject
from sources.loopback import kept_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PACKAGE = "@copilotkit/aimock@1.43.0"
PATHS = {ANTHROPIC: "/v1/messages", CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses"}
PATIENCE = Timeouts(connect_s=10, first_content_s=30, idle_s=30, total_s=60)

FIXTURES: list[JsonObject] = [
    {"match": {"userMessage": "What is new?"}, "response": {"content": "Nothing is new, and that in many pieces."}},
    {
        "match": {"userMessage": "Read the notes.", "hasToolResult": False},
        "response": {"toolCalls": [{"name": "read_file", "arguments": {"filepath": "a/notes \u00e9.md"}}]},
    },
    {
        "match": {"userMessage": "Read the notes.", "toolResultContains": "forty-two"},
        "response": {"content": "The notes say forty-two."},
    },
    {
        "match": {"userMessage": QUESTION, "turnIndex": 0},
        "response": {
            "toolCalls": [
                {"name": "write_file", "arguments": {"filepath": "report.md", "content": REPORT, "mode": "overwrite"}}
            ]
        },
    },
    {
        "match": {"userMessage": QUESTION, "turnIndex": 1, "toolResultContains": "report.md"},
        "response": {"toolCalls": [{"name": "finish_exploration", "arguments": {"summary": "May was good."}}]},
    },
]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Install aimock into a temporary folder; the test is skipped where there is no node or npm, or no package."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("no node or npm: aimock cannot be started")
    folder = tmp_path_factory.mktemp("aimock")
    install = [npm, "install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE]
    done = subprocess.run(install, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode:
        pytest.skip(f"npm could not install {PACKAGE}: {done.stderr.strip()[-200:]}")
    return [node, str(folder / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js")]


@contextmanager
def aimock(command: Sequence[str], folder: Path) -> Generator[str]:
    """Run aimock with the fixtures; yield its address."""
    fixtures = folder / "fixtures.json"
    fixtures.write_text(json.dumps({"fixtures": FIXTURES}))
    log = folder / "aimock.log"
    with kept_port() as port, log.open("w") as output:
        arguments = [*command, "--port", str(port), "--fixtures", str(fixtures), "--strict", "--chunk-size", "7"]
        with subprocess.Popen(arguments, stdout=output, stderr=output) as process:
            try:
                _wait_for(log, process)
                yield f"http://127.0.0.1:{port}"
            finally:
                process.kill()


def _wait_for(log: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while "listening" not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.05)


def journal(url: str) -> list[tuple[str, int]]:
    """Return the path and the status of each request that aimock has seen."""
    with urllib.request.urlopen(f"{url}/__aimock/journal", timeout=10) as response:
        entries = json.load(response)
    return [(entry["path"], entry["response"]["status"]) for entry in entries]


def check(url: str, wire: str, requests: int) -> None:
    """Compare what aimock was asked with what it had to be asked: this many on this wire, each one foreseen."""
    assert journal(url) == [(PATHS[wire], 200)] * requests


def base_url(url: str, wire: str) -> str:
    return url if wire == ANTHROPIC else f"{url}/v1"


@pytest.mark.parametrize("wire", BOTH)
async def test_an_adapter_holds_a_conversation(wire: str, command: list[str], tmp_path: Path) -> None:
    """A text, a call with its arguments, and an answer to its result come through as aimock was told to say them."""
    task = UserText(text="Read the notes.")
    with aimock(command, tmp_path) as url:
        async with client_for(wire, base_url(url, wire), PATIENCE) as client:
            stated = await client.generate(request_for((UserText(text="What is new?"),)))
            asks = await client.generate(request_for((task,)))
            (call,) = asks.calls
            result = Results(results=(CallResult(id=call.id, name=call.name, content="It says forty-two."),))
            ends = await client.generate(request_for((task, asks, result)))
        check(url, wire, 3)
    assert (stated.text, stated.stop) == ("Nothing is new, and that in many pieces.", StopKind.END)
    assert (call.name, call.arguments, asks.stop) == ("read_file", {"filepath": "a/notes \u00e9.md"}, StopKind.TOOL_USE)
    assert ends.text == "The notes say forty-two."


@pytest.mark.parametrize("wire", BOTH)
async def test_a_run_writes_its_report(wire: str, command: list[str], tmp_path: Path) -> None:
    """The orchestrator writes the report and finishes, each request of it foreseen by a fixture."""
    with aimock(command, tmp_path) as url:
        settings = settings_at(base_url(url, wire), tmp_path, is_anthropic=wire == ANTHROPIC)
        if wire != ANTHROPIC:
            settings = settings.model_copy(update={"model": f"openai-{wire}:model-a"})
        result = await start(QUESTION, settings, hooks(20))
        check(url, wire, 2)
    assert "A good May" in result.report_text


@pytest.mark.parametrize("wire", BOTH)
async def test_what_nobody_foresaw_is_found_out(wire: str, command: list[str], tmp_path: Path) -> None:
    """Asked something else, aimock refuses, the adapter says so, and the comparison with its journal fails."""
    with aimock(command, tmp_path) as url:
        async with client_for(wire, base_url(url, wire), PATIENCE) as client:
            with pytest.raises(ModelError, match="no fixture matched"):
                await client.generate(request_for((UserText(text="What is old?"),)))
        with pytest.raises(AssertionError, match=re.escape(PATHS[wire])):
            check(url, wire, 1)
