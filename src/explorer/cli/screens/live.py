"""The live view: a run's agents, figures, files and sources, redrawn in place on stderr."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from urllib.parse import urlsplit

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from explorer.cli.screens.cut_line import cut_line
from explorer.cli.screens.number_format import counted, duration, money, tokens
from explorer.cli.screens.outages import outage_words
from explorer.cli.screens.run_view import WORKING, AgentView, RunView
from explorer.cli.screens.sanitize import one_line
from explorer.cli.screens.session_lines import session_lines
from explorer.schema.events import JournalRecord, SessionConfigured, TurnTaken

REFRESH_S = 0.125
NEWEST = 3
"""Files and sources shown."""
OTHER_ROWS = 12
"""Rows of the view that are not agents."""
OWN_RUN_KEYS = "Ctrl-C: stop, report in 30 s; twice: stop now"
LEAST_AGENT_ROWS = 4
NAME_CHARS = 16
GLYPHS = {WORKING: ("●", "*"), "complete": ("✔", "+"), "partial": ("◐", "~"), "failed": ("✘", "x")}
STYLES = {WORKING: "cyan", "complete": "green", "partial": "yellow", "failed": "red"}
BRANCHES = ("├ ", "└ ")
ASCII_BRANCHES = ("|-", "`-")


class LiveView:
    """A screen that redraws itself a few times a second."""

    def __init__(self, console: Console, keys: str = OWN_RUN_KEYS, now: Callable[[], datetime] | None = None) -> None:
        """Take the terminal, what its keys do, and the clock by which the run's age is told."""
        self._console = console
        self._keys = keys
        self._now = now or (lambda: datetime.now(UTC))
        self._view = RunView()
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def shown(self, view: RunView) -> AbstractContextManager[object]:
        """While inside, the view is on the terminal; afterwards it is gone without a trace."""
        self._view = view
        return self._live

    def observe(self, record: JournalRecord, view: RunView) -> None:
        """Write above the view, where it stays, what a session works with and what the user has to correct."""
        if isinstance(record.event, SessionConfigured):
            self.say("\n".join(session_lines(record.event, self._console.width)))
        elif isinstance(record.event, TurnTaken) and (line := cut_line(record.event, view)):
            self.say(line)

    def say(self, text: str) -> None:
        """Write a line above the view."""
        self._console.print(Text(text))

    async def keep_fresh(self) -> None:
        """Redraw until cancelled; on the loop's own thread, so that no state is read half changed."""
        while True:
            self._live.update(drawing(self._view, self._now(), self._console, self._keys), refresh=True)
            await asyncio.sleep(REFRESH_S)


def drawing(view: RunView, now: datetime, console: Console, keys: str = OWN_RUN_KEYS) -> Group:
    """The whole view, every line cut to the console's width."""
    ascii_only = console.options.ascii_only
    rows = max(LEAST_AGENT_ROWS, console.height - OTHER_ROWS)
    lines = [
        _titled("explorer", view.question or "starting", console),
        _figures(view, now),
        *[Text(outage_words(outage, now), style="yellow") for outage in view.outages.values()],
        *_agent_lines(view, rows, console, ascii_only=ascii_only),
        *[_titled("file", _file_words(view, path), console) for path in list(view.files)[-NEWEST:]],
        *[_titled(name, _source_words(view, name), console) for name in list(view.sources)[-NEWEST:]],
        Text(keys, style="dim"),
    ]
    for line in lines:
        line.no_wrap = True
        line.overflow = "ellipsis"
        line.truncate(console.width - 1, overflow="ellipsis")
    return Group(*lines)


def _titled(title: str, words: str, console: Console) -> Text:
    return Text.assemble((f"{title:<9}", "bold"), one_line(words, max(20, console.width)))


def _figures(view: RunView, now: datetime) -> Text:
    seconds = (now - view.started).total_seconds() if view.started else 0.0
    parts = [
        duration(seconds),
        money(view.cost_usd),
        f"{tokens(view.usage.total_tokens)} tokens",
        counted(len(view.agents), "agent"),
        counted(len(view.sources), "source"),
        counted(len(view.files), "file"),
    ]
    return Text(" · ".join(parts), style="dim")


def _file_words(view: RunView, path: str) -> str:
    return f"{path} ({counted(view.files[path].lines, 'line')})"


def _source_words(view: RunView, name: str) -> str:
    source = view.sources[name]
    try:
        host = urlsplit(source.url).hostname
    except ValueError:
        host = None
    return f"{source.title} ({host})" if host else source.title


def tree(view: RunView) -> Iterator[tuple[AgentView, int, bool]]:
    """Agents with their depth, and whether each is the last of its parent."""
    waiting = [(agent, 0, True) for agent in reversed(view.children(""))]
    while waiting:
        agent, depth, is_last = waiting.pop()
        yield agent, depth, is_last
        children = view.children(agent.id)
        waiting += [(child, depth + 1, child is children[-1]) for child in reversed(children)]


def _agent_lines(view: RunView, rows: int, console: Console, *, ascii_only: bool) -> list[Text]:
    nodes = list(tree(view))
    if len(nodes) > rows:
        # Those at work are what people wait for; of the finished ones the latest.
        working = [node for node in nodes if node[0].status == WORKING or node[1] == 0][: rows - 1]
        finished = [node for node in nodes if node not in working]
        kept = working + finished[len(finished) - (rows - 1 - len(working)) :]
        hidden = len(nodes) - len(kept)
        nodes = [node for node in nodes if node in kept]
    else:
        hidden = 0
    lines = [_agent_line(*node, width=console.width, ascii_only=ascii_only) for node in nodes]
    return [*lines, Text(f"... and {counted(hidden, 'agent')} more", style="dim")] if hidden else lines


def _agent_line(agent: AgentView, depth: int, is_last: bool, *, width: int, ascii_only: bool) -> Text:  # noqa: FBT001
    branch = (ASCII_BRANCHES if ascii_only else BRANCHES)[is_last] if depth else ""
    glyph = GLYPHS.get(agent.status, GLYPHS[WORKING])[ascii_only]
    style = STYLES.get(agent.status, "")
    steps = f" {agent.steps}/{agent.max_steps}"
    words = agent.doing if agent.status == WORKING else agent.reason or agent.status
    head = Text.assemble(("  " * (depth - 1)) + branch, (f"{glyph} ", style), (f"{agent.id:<{NAME_CHARS}}", "bold"))
    room = max(8, width - 1 - head.cell_len - len(steps))
    body = Text(one_line(words))
    body.truncate(room, overflow="ellipsis", pad=True)
    return Text.assemble(head, body, (steps, "dim"))
