"""The whole main job from a program of your own: a question in, a cited report out.

    uv run python examples/full_research.py

It reads the bundled, invented sample day, and the offline stand-in takes the model's place, so it needs neither key
nor network. Drop `is_sample` and `model`, hand in your key, and the same lines explore the real thing.
"""

import asyncio
import tempfile
from pathlib import Path

from explorer import JournalRecord, Limits, Run, Settings, explore

QUESTION = "What was notable on Hacker News on the sample day, and what did people argue about?"
HEAD_LINES = 30


def follow(record: JournalRecord) -> None:
    """Print what happens while it happens; each record is on disk already when it arrives here."""
    event = record.event
    if event.type == "agent_started":
        print(f"{record.seq:>4}  {event.agent} begins: {event.task.splitlines()[0][:90]}")
    elif event.type == "agent_finished":
        print(f"{record.seq:>4}  {event.agent} ends: {event.status}")


def prepared(workspace: Path) -> Run:
    """Return the exploration, ready to be run."""
    settings = Settings(
        workspace=workspace,
        model="offline",
        is_sample=True,
        # Every ending leaves a report, also one that a limit brought about.
        limits=Limits(max_steps=100, max_time_s=120),
    )
    return explore(QUESTION, settings=settings)


async def main() -> None:
    """Explore in a temporary folder and report how it went."""
    with tempfile.TemporaryDirectory() as place:
        run = prepared(Path(place))
        async for record in run.events():
            follow(record)
        result = await run
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
    asyncio.run(main())
