"""The scripted server, used by the real client over HTTP, in this process and from the command line."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from command import explorer, explorer_here
from explorer import Agent, Services, Settings, Status, tool
from explorer.testing import ScriptedServer, says


@tool
async def double(number: int) -> str:
    """Double a number."""
    return str(2 * number)


async def test_an_agent_over_http(tmp_path: Path) -> None:
    """Text and calls arrive as the script has them, with its usage; a request beyond it is refused."""
    script = [says("I count.", ("double", {"number": 4}), ("double", {"number": 5})), says("8 and 10.")]
    with ScriptedServer(script) as server:
        settings = Settings(workspace=tmp_path, services=Services(openai_url=server.url), shell="off")
        agent = Agent(model="openai:scripted", tools=[double], settings=settings)
        result = await agent.run("Double 4 and 5.")
        assert result.words == "8 and 10."
        assert (result.usage.input_tokens, result.usage.output_tokens) == (200, 40)
        results = [message for message in server.requests[1]["messages"] if message["role"] == "tool"]
        assert [message["content"] for message in results] == ["<<8>>", "<<10>>"]
        again = await agent.run("Once more.")
        assert again.status is Status.FAILED
        assert "no further reply" in again.reason


@pytest.mark.parametrize("command", [explorer_here, pytest.param(explorer, marks=pytest.mark.slow)])
def test_the_command_line_asks_it(command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    """A test of a program around the command line needs no model and no key."""
    report = "# Boots\n\nNothing is known of boots here, for nobody has written about them yet.\n"
    script = [
        says("", ("write_file", {"filepath": "report.md", "content": report})),
        *[says("", ("finish_exploration", {"summary": "Nothing.", "nothing_found": True}))] * 3,
    ]
    with ScriptedServer(script) as server:
        settings = {"OPENAI_BASE_URL": server.url, "EXPLORER_MODEL": "scripted"}
        done = command("What boots?", "-q", cwd=tmp_path, settings=settings)
    assert "Nothing is known of boots" in done.stdout, done.stderr
    assert {body["model"] for body in server.requests} == {"scripted"}
