"""A run's folder and the file tools: what agents write, read, edit and find, and what they cannot get out of.

uv run python examples/file_tools_usage.py
"""

import asyncio
import tempfile
from pathlib import Path

from explorer.schema.errors import ToolError
from explorer.schema.tool import Tool
from explorer.schema.tool_context import ToolContext
from explorer.tools.files import file_tools
from explorer.workspace.workspace import Workspace


async def say(tool: Tool, context: ToolContext, **arguments: object) -> None:
    """Call a tool and print what a model would read."""
    # The toolbox does this for a run: it fills in the defaults and refuses what the schema does not allow.
    checked = tool.arguments.model_validate(arguments)
    print(f"> {tool.name} {', '.join(str(value) for value in arguments.values())!r}")
    try:
        print((await tool.execute(checked, context)).text, end="\n\n")
    except ToolError as error:
        # Text for the model: it says what would be right instead.
        print(f"refused: {error.message}", end="\n\n")


async def main() -> None:
    """Use every file tool, then try to leave the folder."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        workspace = Workspace(folder)
        context = ToolContext(workspace)
        tools = {tool.name: tool for tool in file_tools(workspace)}
        read, write, edit = tools["read_file"], tools["write_file"], tools["edit_file"]

        # No fixed layout: folders are made as they are needed.
        await say(
            write, context, filepath="topics/lanterns.md", content="# Lanterns\n\nThe small one weighs 90 g [S1].\n"
        )
        await say(edit, context, filepath="topics/lanterns.md", old_string="90 g", new_string="95 g")
        await say(read, context, filepath="topics/lanterns.md")
        await say(tools["list_files"], context)
        await say(tools["search_files"], context, pattern=r"\d+ g")

        # Every path is walked beneath the folder, so neither `..` nor a link leads out of it.
        (folder / "way-out").symlink_to("/etc")
        for path in ("../outside.md", "/etc/hostname", "way-out/hostname"):
            await say(read, context, filepath=path)
        # The engine's own folder can be read by agents, so that they can check sources, but never written.
        await say(write, context, filepath=".explorer/journal.jsonl", content="{}")


if __name__ == "__main__":
    asyncio.run(main())
