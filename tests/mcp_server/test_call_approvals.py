"""Calls that wait for approval in a run of the MCP server: what its clients learn, and who can answer."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp.client.client import Client
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent

from cli.stage import SCRIPT, clean_environment
from explorer.journal.listing import read_records
from explorer.mcp_server.server import ExplorationServer
from explorer.run.hooks import RunHooks
from explorer.run.served import ServedRuns, ServerPlan
from explorer.schema.events import ApprovalAnswer, ApprovalDecided
from explorer.schema.messages import Turn
from explorer.schema.settings import Settings
from explorer.testing import ScriptedClient, ScriptedServer, says

RULE = "ask write_file(*.md)"
KEY = "tvly-0123456789abcdef0123"
REPORT = "# Ropes\n\nNothing was looked up.\n"


def writing(name: str) -> Turn:
    return says("I write.", ("write_file", {"filepath": name, "content": f"{REPORT}\u202ekey {KEY}\n"}))


DONE = says("Done.", ("finish_exploration", {"summary": "Written."}))
TWO_FILES = [writing("notes.md"), writing("report.md"), DONE]


def served(folder: Path, script: list[Turn], wait_s: float = 60.0) -> ServedRuns:
    """Runs of a scripted model under a rule that asks."""
    chosen = Settings(workspace=folder / "workspace", model="offline", shell="off", approval_rules=(RULE,))
    client = ScriptedClient({"orchestrator": script})
    plan = ServerPlan(chosen, lambda: RunHooks(client=client), lambda _: chosen, approval_wait_s=wait_s)
    return ServedRuns(plan)


@asynccontextmanager
async def connected(runs: ServedRuns, **options: Any) -> AsyncGenerator[Client]:
    """A client of a server over these runs, which are closed at the end."""
    try:
        async with Client(ExplorationServer(runs).protocol(), **options) as client:
            yield client
    finally:
        await runs.close()


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def asked(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    """The data of a call that succeeds."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return result.structured_content


async def waited(client: Client, run: str) -> dict[str, Any]:
    return await asked(client, "wait_for_report", run_id=run, timeout_s=60)


async def started(client: Client) -> str:
    return (await asked(client, "start_exploration", question="What do the ropes cost?"))["run_id"]


def answers(folder: Path, run: str) -> list[ApprovalDecided]:
    records = read_records(folder / "workspace" / run)
    return [record.event for record in records if isinstance(record.event, ApprovalDecided)]


async def test_a_client_learns_of_a_call_and_passes_the_users_decision_on(tmp_path: Path) -> None:
    """The status says what waits and why, each decision counts for its call alone, and is on disk when it is taken."""
    async with connected(served(tmp_path, TWO_FILES)) as client:
        run = await started(client)
        first = await waited(client, run)
        assert (first["status"], first["text"]) == ("needs_approval", "")
        assert f"write_file (your rule: {RULE})" in first["approval"]
        assert "content: # Ropes" in first["approval"]
        assert "\\u202ekey" in first["approval"], "what cannot be seen is shown as an escape"
        assert "decide_call" in first["next"]
        (listed,) = (await asked(client, "exploration_status", run_id=run))["runs"]
        assert listed["waiting_call"] == first["waiting_call"]
        denied = {"run_id": run, "call": first["waiting_call"], "decision": "deny", "reason": "Write no notes."}
        await asked(client, "decide_call", **denied)
        assert [(one.answer, one.words) for one in answers(tmp_path, run)] == [(ApprovalAnswer.NO, "Write no notes.")]
        late = await client.call_tool("decide_call", denied | {"decision": "approve"})
        assert late.is_error
        assert "waits for approval" in text_of(late)

        second = await waited(client, run)
        await asked(client, "decide_call", run_id=run, call=second["waiting_call"], decision="approve_for_run")
        ended = await waited(client, run)
        assert ended["waiting_call"] == ended["approval"] == ""
        assert "Nothing was looked up." in ended["text"]
    assert answers(tmp_path, run)[-1].answer is ApprovalAnswer.RUN
    assert not (tmp_path / "workspace" / run / "notes.md").exists()


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])
async def test_the_user_of_a_client_is_asked(tmp_path: Path, mode: str) -> None:
    """By elicitation, over both forms of the protocol; a client that can ask its user cannot approve by itself."""
    questions: list[str] = []
    replies = iter(
        [
            ElicitResult(action="cancel"),
            ElicitResult(action="accept", content={"decision": "deny", "reason": "No notes."}),
            ElicitResult(action="accept", content={"decision": "approve"}),
        ]
    )

    async def answer(_context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        return next(replies)

    async with connected(served(tmp_path, TWO_FILES), mode=mode, elicitation_callback=answer) as client:
        run = await started(client)
        dismissed = await waited(client, run)
        assert dismissed["status"] == "needs_approval"
        decision = {"run_id": run, "call": dismissed["waiting_call"], "decision": "approve"}
        assert "your client asks the user itself" in text_of(await client.call_tool("decide_call", decision))
        ended = await waited(client, run)
    assert "Nothing was looked up." in ended["text"]
    assert [one.answer for one in answers(tmp_path, run)] == [ApprovalAnswer.NO, ApprovalAnswer.ONCE]
    assert answers(tmp_path, run)[0].words == "No notes."
    assert len(questions) == 3
    assert f"{run}: orchestrator needs your approval: write_file" in questions[0]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_user_who_does_not_answer_stops_no_run(tmp_path: Path, mode: str) -> None:
    """A question that stays open on the user's screen is given up with its call."""

    async def answer(_context: ClientRequestContext, _params: ElicitRequestParams) -> ElicitResult:
        await asyncio.sleep(5)
        return ElicitResult(action="accept", content={"decision": "approve"})

    script = [writing("notes.md"), DONE]
    async with connected(served(tmp_path, script, 0.5), mode=mode, elicitation_callback=answer) as client:
        run = await started(client)
        assert (await waited(client, run))["status"] != "needs_approval"
    assert [one.answer for one in answers(tmp_path, run)] == [ApprovalAnswer.UNASKED]


@pytest.mark.parametrize("wait_s", [0.0, 0.05])
async def test_a_call_that_no_one_decides_about_is_refused(tmp_path: Path, wait_s: float) -> None:
    """At once where the server asks no one, and after the time that a call waits; the run continues."""
    async with connected(served(tmp_path, [writing("notes.md"), DONE], wait_s)) as client:
        run = await started(client)
        while (await waited(client, run))["status"] == "needs_approval":
            pass
    assert [one.answer for one in answers(tmp_path, run)] == [ApprovalAnswer.UNASKED]


@pytest.mark.parametrize("message", ["", pytest.param("Be short.", marks=pytest.mark.slow)])
async def test_the_end_of_the_server_leaves_the_question_open(tmp_path: Path, message: str) -> None:
    """Nothing is on record of a call that waited; a resumed run asks again, and whoever resumes it need not wait."""
    async with connected(served(tmp_path, [writing("notes.md"), DONE])) as client:
        run = await started(client)
        assert (await waited(client, run))["waiting_call"]
    assert answers(tmp_path, run) == []
    async with connected(served(tmp_path, [DONE])) as client:
        await asked(client, "follow_up", run_id=run, message=message)
        again = await waited(client, run)
        await asked(client, "decide_call", run_id=run, call=again["waiting_call"], decision="approve")
        await waited(client, run)
    assert (tmp_path / "workspace" / run / "notes.md").exists()


@pytest.mark.slow
async def test_the_official_client_over_stdio_decides(tmp_path: Path) -> None:
    """A real server process: a call waits, is approved through the client, and the report is written."""
    with ScriptedServer(TWO_FILES[1:]) as model:
        variables = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-loopback-1", "OPENAI_MODEL": "scripted"}
        parameters = StdioServerParameters(
            command=str(SCRIPT),
            args=["mcp", "serve", "--no-shell", "--approval", RULE, "--approval-wait", "2m"],
            cwd=tmp_path,
            env=clean_environment(tmp_path) | variables | {"TAVILY_API_KEY": KEY},
        )
        async with Client(stdio_client(parameters)) as client:
            run = await started(client)
            waiting = await waited(client, run)
            assert waiting["status"] == "needs_approval"
            assert KEY not in json.dumps(waiting)
            await asked(client, "decide_call", run_id=run, call=waiting["waiting_call"], decision="approve")
            assert "Nothing was looked up." in (await waited(client, run))["text"]
    assert [one.answer for one in answers(tmp_path, run)] == [ApprovalAnswer.ONCE]
