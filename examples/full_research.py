"""The whole main job from a program of your own: a question in, a cited report out.

    uv run python examples/full_research.py

It reads the bundled, invented sample day, and the offline stand-in takes the model's place, so it needs neither key
nor network. Drop `is_sample` and `model`, hand in your key, and the same lines explore the real thing.
"""

import asyncio
import tempfile
from pathlib import Path

from explorer.run.run import RunHooks, RunResult, start
from explorer.schema.events import AgentFinished, AgentStarted, JournalRecord
from explorer.schema.settings import Limits, Settings

QUESTION = "What was notable on Hacker News on the sample day, and what did people argue about?"
HEAD_LINES = 30


def follow(record: JournalRecord) -> None:
    """Print what happens while it happens; each record is on disk already when it arrives here."""
    match record.event:
        case AgentStarted(agent=agent, task=task):
            print(f"{record.seq:>4}  {agent} begins: {task.splitlines()[0][:90]}")
        case AgentFinished(agent=agent, status=status):
            print(f"{record.seq:>4}  {agent} ends: {status}")
        case _:
            pass


async def explore(workspace: Path) -> RunResult:
    """Run the exploration."""
    settings = Settings(
        workspace=workspace,
        model="offline",
        is_sample=True,
        # Every ending leaves a report, also one that a limit brought about.
        limits=Limits(max_steps=100, max_time_s=120),
    )
    return await start(QUESTION, settings, RunHooks(observe=follow))


def main() -> None:
    """Explore in a temporary folder and tell how it went."""
    with tempfile.TemporaryDirectory() as place:
        result = asyncio.run(explore(Path(place)))
        print("\n".join(["", *result.report_text.splitlines()[:HEAD_LINES], "..."]))
        files = sorted(
            path.relative_to(result.folder).as_posix()
            for path in result.folder.rglob("*.md")
            if ".explorer" not in path.parts
        )
    print(f"\n{result.status} in {result.seconds:.1f} s, {result.steps} steps of {result.agents} agents, ", end="")
    print(f"{result.sources} sources, {result.citations} citations, cost ${result.cost_usd or 0:.2f}")
    print(f"files: {', '.join(files)}")


if __name__ == "__main__":
    main()
