"""A run's folder and the file tools: what agents write, read, edit and find, and what they cannot get out of.

    uv run python examples/file_tools_usage.py

The model is a script, so this runs without a key.
"""

import asyncio
import tempfile
from pathlib import Path

from explorer import Agent, Settings
from explorer.testing import ScriptedClient, says

NOTES = "# Lanterns\n\nThe small one weighs 90 g [S1].\n"
CALLS: tuple[tuple[str, dict[str, str]], ...] = (
    # No fixed layout: folders are made as they are needed.
    ("write_file", {"filepath": "topics/lanterns.md", "content": NOTES}),
    ("edit_file", {"filepath": "topics/lanterns.md", "old_string": "90 g", "new_string": "95 g"}),
    ("read_file", {"filepath": "topics/lanterns.md"}),
    ("list_files", {}),
    ("search_files", {"pattern": r"\d+ g"}),
    # Every path is opened folder by folder, so neither `..` nor a link leads out of the run's folder.
    ("read_file", {"filepath": "../outside.md"}),
    ("read_file", {"filepath": "/etc/hostname"}),
    ("read_file", {"filepath": "way-out/hostname"}),
    # Agents may read the engine's own folder, to check sources, but never write in it.
    ("write_file", {"filepath": ".explorer/journal.jsonl", "content": "{}"}),
)


async def main(workspace: Path) -> None:
    """Use every file tool, then try to leave the folder; print what a model would read."""
    agent = Agent(
        run_tools=[*dict.fromkeys(name for name, _ in CALLS)],
        client=ScriptedClient({"orchestrator": [*(says("", call) for call in CALLS), says("That is all.")]}),
        settings=Settings(workspace=workspace, shell="off"),
    )
    run, calls = agent.run("Try the file tools."), iter(CALLS)
    async for record in run.events():
        if record.event.type == "run_started":
            (run.folder / "way-out").symlink_to("/etc")
        if record.event.type == "tool_finished":
            name, arguments = next(calls)
            print(f"> {name} {', '.join(arguments.values())!r}")
            print(f"{'' if record.event.success else 'refused: '}{record.event.content}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
