"""Two real servers in one workspace with one limit of money: what both start stays under it, also after a kill."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from cli.stage import SCRIPT, clean_environment
from explorer.journal.listing import read_records
from explorer.schema.events import RunStarted
from mcp_server.test_call_approvals import asked, text_of
from model_servers import Asked, OpenAIServer, Reply

pytestmark = pytest.mark.slow
TOTAL, EACH = 1.0, 0.3
REPORT = "# Ropes\n\nNothing was looked up.\n"


def answer(question: Asked) -> Reply:
    """A report, and the end; runs about harbours get no answer."""
    if "harbour" in question.task:
        return Reply(stalls="silent")
    if not question.results:
        return Reply(calls=[("write_file", {"filepath": "report.md", "content": REPORT})])
    return Reply(calls=[("finish_exploration", {"summary": "Done."})])


@asynccontextmanager
async def server(folder: Path, url: str) -> AsyncGenerator[Client]:
    """One process, as an editor's window starts it, and its client."""
    known = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-loopback-1", "EXPLORER_PRICE": "10/10"}
    flags = ["--model", "openai:model-a", "--no-shell", "--no-lean", "--max-cost", str(EACH), "--max-runs", "8"]
    parameters = StdioServerParameters(
        command=str(SCRIPT),
        args=["mcp", "serve", *flags, "--max-total-cost", str(TOTAL)],
        cwd=folder,
        env=clean_environment(folder) | known,
    )
    async with Client(stdio_client(parameters)) as client:
        yield client


async def start(client: Client, question: str) -> tuple[str, str]:
    """The run's id, or why it was refused."""
    result: Any = await client.call_tool("start_exploration", {"question": question})
    return ("", text_of(result)) if result.is_error else (result.structured_content["run_id"], "")


def limits_of(workspace: Path) -> list[float]:
    """What each run of a workspace may cost, as it was started."""
    started = [read_records(folder)[0].event for folder in workspace.iterdir() if folder.is_dir()]
    return [event.settings["limits"]["max_cost_usd"] for event in started if isinstance(event, RunStarted)]


async def test_what_two_servers_start_at_once_stays_under_one_limit(tmp_path: Path) -> None:
    """Asked at the same time, they reserve as much as there is, and say of the others what the rest is for."""
    with OpenAIServer(answer) as model:
        async with server(tmp_path, model.url) as one, server(tmp_path, model.url) as other:
            clients = [one, other] * 4
            found = await asyncio.gather(*(start(client, "What is new in the harbour?") for client in clients))
            ids, refusals = [run for run, _ in found if run], [words for _, words in found if words]
            assert len(ids) == 4, found
            assert sorted(limits_of(tmp_path / "workspace")) == pytest.approx([0.1, EACH, EACH, EACH])
            assert all("$1.00 is the limit of all runs together" in words for words in refusals)
            assert all(set(re.findall(r"\d{8}-\d{6}[\w-]+", words)) >= set(ids) for words in refusals)


async def test_what_a_killed_server_had_reserved_comes_back(tmp_path: Path) -> None:
    """Its run's journal says what was spent at most; the other server has the rest, and ends with what was paid."""
    with OpenAIServer(answer) as model:
        async with server(tmp_path, model.url) as other:
            async with server(tmp_path, model.url) as killed:
                runs = [await start(killed, "What is new in the harbour?") for _ in range(4)]
                assert [bool(run) for run, _ in runs] == [True] * 4
                assert "the rest, $1.00" in (await start(other, "What do the ropes cost?"))[1]
                os.kill(process_of(tmp_path / "workspace" / runs[0][0]), signal.SIGKILL)
            run, problem = await start(other, "What do the ropes cost?")
            assert run, problem
            ended = await asked(other, "wait_for_report", run_id=run, timeout_s=60)
            assert "Nothing was looked up." in ended["text"]


def process_of(folder: Path) -> int:
    """The process that works on a run."""
    return int((folder / ".explorer" / "holder").read_text().split()[0])
