"""An agent of the Python API, resumed from the command line; and how often a journal is read for it."""

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from command import explorer_here
from explorer import Agent, Run, Services, Settings, tool
from explorer.testing import ScriptedServer, says

COUNT_STOCK = '''"""Tools of a shop."""

from explorer import tool


@tool
async def count_stock(item: str) -> str:
    """Count what is in stock of an item."""
    return f"12 {item}"
'''


@tool
async def count_stock(item: str) -> str:
    """Count what is in stock of an item."""
    return f"12 {item}"


class Opened:
    """Counts how often this process opens a run's journal for reading."""

    def __init__(self) -> None:
        self.count = 0
        self.is_counting = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.is_counting and event == "open" and str(arguments[0]).endswith("journal.jsonl"):
            self.count += "r" in str(arguments[1])


async def cut_off(run: Run) -> None:
    """Cancel a run after its first result."""
    async with aclosing(run.events()) as events:
        async for record in events:
            if record.event.type == "tool_finished":
                break


@pytest.mark.slow
def test_an_agent_is_resumed_from_the_command_line(tmp_path: Path) -> None:
    """Its answer is printed, no report is demanded or written, and a tool that is missing is named with the flag."""
    (tmp_path / "shop.py").write_text(COUNT_STOCK)
    script = [says("", ("count_stock", {"item": "ropes"})), says("There are 12 ropes."), says("There are 12 ropes.")]
    with ScriptedServer(script) as server:
        settings = Settings(workspace=tmp_path / "workspace", services=Services(openai_url=server.url), shell="off")
        run = Agent(model="openai:scripted", tools=[count_stock], settings=settings).run("How many ropes?")
        asyncio.run(cut_off(run))
        taken = {"OPENAI_BASE_URL": server.url}
        without = explorer_here("resume", "latest", cwd=tmp_path, settings=taken)
        assert (without.returncode, "--tools FILE.py" in without.stderr) == (2, True), without.stderr
        done = explorer_here("resume", "latest", "--tools", "shop.py", cwd=tmp_path, settings=taken)
    assert (done.returncode, done.stdout.strip()) == (0, "There are 12 ropes."), done.stderr
    assert "report" not in "".join(str(message) for message in server.requests[-1]["messages"])
    assert not (run.folder / "report.md").exists()
    shown = explorer_here("report", "latest", cwd=tmp_path)
    assert (shown.returncode, shown.stdout.strip()) == (0, "There are 12 ropes."), shown.stderr


def test_a_journal_is_read_once_when_a_run_is_resumed(tmp_path: Path) -> None:
    """For its state, the screen and the limits together; only then it is written."""
    with ScriptedServer([says("One."), says("Two.")]) as server:
        settings = Settings(workspace=tmp_path / "workspace", services=Services(openai_url=server.url), shell="off")
        folder = Agent(model="openai:scripted", settings=settings).run_sync("Count.").folder
        opened = Opened()
        opened.is_counting = True
        done = explorer_here("resume", folder.name, "Next?", cwd=tmp_path, settings={"OPENAI_BASE_URL": server.url})
        opened.is_counting = False
    assert done.stdout.strip() == "Two.", done.stderr
    assert opened.count == 1
