"""An analysis that shows: a helper computes with Python in the sandbox, makes a chart, and the report shows it.

    uv run python examples/analysis_with_charts.py

The model is a script, so this runs without a key. The sandbox is real: commands have no network, and of all files only
the run's can be written. On a machine without one there is no shell, and the analyzer is told so.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from explorer import JournalRecord, Settings, Turn, explore
from explorer.testing import Script, ScriptedClient, says

HARVEST = "month,kilos\nJune,14\nJuly,31\nAugust,27\nSeptember,12\n"

# What the analyzer writes and runs. With matplotlib in the engine's Python it would have that, too.
DRAW = """\
import csv

rows = [(row["month"], int(row["kilos"])) for row in csv.DictReader(open("inputs/harvest.csv", encoding="utf-8"))]
most = max(kilos for _, kilos in rows)
print(f"{sum(kilos for _, kilos in rows)} kilos in all, most in {max(rows, key=lambda row: row[1])[0]}")
bars = "".join(
    f'<rect x="90" y="{30 * n + 10}" width="{300 * kilos // most}" height="20" fill="seagreen"/>'
    f'<text x="80" y="{30 * n + 25}" text-anchor="end">{month}</text>'
    for n, (month, kilos) in enumerate(rows)
)
with open("scratch/harvest.svg", "w", encoding="utf-8") as file:
    file.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 140"><title>Kilos by month</title>')
    file.write(f"{bars}</svg>\\n")
"""

REPORT = """\
# The harvest

July was the best month: the table has 31 for it [S1]. The chart shows all months beside each other, in kilos.

![Kilos by month](scratch/harvest.svg)
"""

SCRIPT: dict[str, Sequence[Turn] | Script] = {
    "orchestrator": (
        says(
            "Compute.",
            ("call_agent", {"agent_type": "analyzer", "task_description": "Sum and draw inputs/harvest.csv."}),
        ),
        says("Now the report.", ("write_file", {"filepath": "report.md", "content": REPORT})),
        says("Done.", ("finish_exploration", {"summary": "84 kilos, most of them in July."})),
    ),
    "analyzer": (
        says("A script.", ("write_file", {"filepath": "draw.py", "content": DRAW})),
        says("Run it.", ("execute_shell", {"command": "mkdir -p scratch; python draw.py"})),
        says("84 kilos, most in July; scratch/harvest.svg shows it. Not known: what was sown."),
    ),
}


def follow(record: JournalRecord) -> None:
    """Print what the shell answered and what it put into the index of findings."""
    event = record.event
    if event.type == "tool_finished" and event.name == "execute_shell":
        print(event.content)
        for file in event.files:
            print(f"In the index: {file.path}, {file.title}")


async def main(place: Path) -> None:
    """Run it, and show what came of it."""
    table = place / "harvest.csv"
    table.write_text(HARVEST, encoding="utf-8")
    settings = Settings(workspace=place / "workspace", files=(table,))
    run = explore("How was the harvest?", settings=settings, client=ScriptedClient(SCRIPT))
    async for record in run.events():
        follow(record)
    result = await run
    print(f"\n{result.report_text}")
    is_drawn = (result.folder / "scratch" / "harvest.svg").is_file()
    print(f"{result.status}; the chart is {'there' if is_drawn else 'not there: see explorer doctor'}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
