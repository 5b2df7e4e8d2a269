"""What agents do, in a few words for people."""

from explorer.cli.screens.number_format import counted
from explorer.cli.screens.sanitize import one_line
from explorer.schema.events import ToolFinished, ToolStarted
from explorer.schema.messages import ToolCall
from explorer.text.sanitize import FENCE_START

DOING_CHARS = 60


def doing(call: ToolCall, started: ToolStarted | None) -> str:
    """What a call does: `reading lantern-db.example`; its name, where its tool says no more."""
    return one_line((started.activity if started else "") or call.name, DOING_CHARS)


def asked(call: ToolCall) -> str:
    """A call as it was asked: its name and its first argument, `get_hn_comments 123`."""
    first = next(iter(call.arguments.values()), "") if call.arguments else ""
    return one_line(f"{call.name} {first if isinstance(first, str | int | float) else ''}", DOING_CHARS)


def outcome(event: ToolFinished) -> str:
    """What a call brought: `50 comments`, `12 lines`, or why it failed."""
    if not event.success:
        return one_line(f"failed: {event.content}", DOING_CHARS * 2)
    if event.files:
        return ", ".join(counted(file.lines, "line") for file in event.files)
    return _counted(event) or one_line(FENCE_START.sub("", event.content).partition("\n")[0], DOING_CHARS)


def _counted(event: ToolFinished) -> str:
    """Return how much a call showed, by its data; empty where that does not say."""
    shown, unit = event.data.get("shown"), event.data.get("unit", "")
    if isinstance(shown, int):
        return f"{shown:,} {unit}".rstrip()
    if "last" in event.data:
        return f"{unit} {event.data.get('first')}-{event.data['last']} of {event.data.get('total')}"
    return ""
