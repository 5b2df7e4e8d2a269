"""What agents do, in a few words for people."""

import re

from explorer.cli.screens.number_format import counted
from explorer.cli.screens.sanitize import one_line
from explorer.schema.events import ToolFinished, ToolStarted
from explorer.schema.messages import ToolCall

DOING_CHARS = 60
FENCE = re.compile(r"<<(untrusted|end) [0-9a-f]{16}>>")
COUNTS = re.compile(r"(\d[\d,]*) (?:of [\d,]+ )?(shown|hit|result)s?\b")
STORIES = re.compile(r"stories, (\d+)-(\d+) of")
READ = re.compile(r"^(characters|.*, lines) (\d+-\d+ of \d+)", re.MULTILINE)


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
    return _counted(event) or one_line(FENCE.sub("", event.content).partition("\n")[0], DOING_CHARS)


def _counted(event: ToolFinished) -> str:
    head = event.content[:500]
    if event.name in {"read_webpage", "read_file"}:
        match = READ.search(head)
        return f"{match[1].rpartition(' ')[2]} {match[2]}" if match else ""
    if event.name == "get_hn_stories" and (match := STORIES.search(head)):
        return f"{int(match[2]) - int(match[1]) + 1} stories"
    # The last one: a title or a query before it may hold figures of its own.
    counts = COUNTS.findall(head.partition("\n")[0])
    if not counts:
        return ""
    number, word = counts[-1]
    is_thread = event.name in {"get_hn_comments", "get_comments"}
    return counted(int(number.replace(",", "")), "comment" if is_thread else word)
