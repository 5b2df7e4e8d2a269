"""A tool of your own and a role of your own: one function and one file. What the tool stores, the report cites.

    uv run python examples/custom_tool_and_role.py

The model is a script, so this runs without a key; with one, drop `client` and the orchestrator finds the new helper
by its description.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from explorer import Settings, SourceDraft, ToolContext, Turn, explore, tool
from explorer.testing import Script, ScriptedClient, says

# A role is a file. Its description is what the orchestrator chooses by, its tools are all that it may call.
ROLE = """\
---
name: gardener
description: Knows what grows in the garden. Use it for every question about beds.
tools: [look_at_bed, write_file]
model: fast
limits: {max_steps: 6}
---
You look after the garden. Look at the beds you are asked about, write what you find into a file,
and end with a short summary.
"""

BEDS = {1: "beans, in flower", 2: "chard, ready to cut"}


@tool(is_lookup=True, activity="looking at bed {number}")
async def look_at_bed(number: int, context: ToolContext) -> str:
    """Look at one bed of the garden, by its number."""
    seen = f"Bed {number}: {BEDS.get(number, 'bare earth')}."
    draft = SourceDraft(url=f"garden:bed/{number}", title=f"Bed {number}", kind="record", via="garden", text=seen)
    # On disk from here on, with an id that a report may cite and `explorer verify` looks up.
    (source,) = await context.store([draft])
    return f"[{source.id}] {seen}"


REPORT = """\
# The garden

Bed 2 can be harvested: its chard is “ready to cut” [S2]. Bed 1 is not there yet, for its beans are “in flower” [S1].
"""

NOTES = "# Beds\n\n1 beans [S1], 2 chard [S2]\n"

# By role, what its model says, turn by turn.
SCRIPT: dict[str, Sequence[Turn] | Script] = {
    "orchestrator": (
        says(
            "The gardener knows.",
            ("call_agent", {"agent_type": "gardener", "task_description": "Look at beds 1 and 2: what can be cut?"}),
        ),
        says("Now the report.", ("write_file", {"filepath": "report.md", "content": REPORT})),
        says("Done.", ("finish_exploration", {"summary": "Bed 2 can be harvested."})),
    ),
    "gardener": (
        says("I look.", ("look_at_bed", {"number": 1}), ("look_at_bed", {"number": 2})),
        says(
            "I note it.",
            ("write_file", {"filepath": "garden/beds.md", "content": NOTES}),
        ),
        says("Bed 2 is ready, bed 1 is in flower. Not known: when the beans will be ripe."),
    ),
}


async def main(place: Path) -> None:
    """Write the role, run the question, show what came of it."""
    roles = place / "roles"
    roles.mkdir()
    (roles / "gardener.md").write_text(ROLE, encoding="utf-8")
    client = ScriptedClient(SCRIPT)
    settings = Settings(workspace=place / "workspace", roles_dir=roles, shell="off")
    run = explore("What can be harvested?", settings=settings, tools=[look_at_bed], client=client)
    async for record in run.events():
        if record.event.type == "tool_finished" and record.event.name == "call_agent":
            # What the orchestrator got back: a summary and an index of files, made from what was really written.
            print(f"The helper's answer: {record.event.content}\n")
    result = await run
    print(run.report)
    print(f"{result.status}: {result.agents} agents, {result.steps} steps, citations {result.verdicts}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
