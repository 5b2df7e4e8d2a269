"""The live view: a run's agents, figures, files and sources, redrawn in place on stderr."""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from explorer.cli.screens.session_lines import approval_line, cut_line, models_words, session_lines, short_model
from explorer.observe.formatting import counted, duration, money, one_line, result_words, tokens, without_controls
from explorer.observe.run_view import WORKING, AgentView, RunView, outage_words
from explorer.schema.events import ApprovalDecided, JournalRecord, SessionConfigured, TurnTaken
from explorer.text.urls import host_of

REFRESH_S = 0.125
MOST_QUESTIONS = 8
"""Sub-questions of the plan that are shown."""
NEWEST = 3
"""Files and sources shown."""
OTHER_ROWS = 13
"""Rows of the view that are not agents."""
OWN_RUN_KEYS = "Ctrl-C: stop, report in 30 s; twice: stop now"
LEAST_AGENT_ROWS = 4
NAME_CHARS = 16
"""Cells of an agent's place in the tree, its state and its id."""
QUEUED, DONE = "queued", "done"
FIGURES_FROM = 70
"""Columns from which on an agent's steps, tokens and money are shown; below, only its time."""
MODEL_COLUMN_FROM = 100
"""Columns from which on each agent's model is shown; below, one line names all."""
MODEL_CHARS = 18
LIMIT_FORMS: Mapping[str, Callable[[float], str]] = {
    "max_cost_usd": money,
    "max_steps": lambda limit: f"{limit:.0f} steps",
    "max_tokens": lambda limit: f"{tokens(int(limit))} tokens",
    "max_time_s": duration,
}
UNITS = {"max_steps": " steps", "max_tokens": " tokens"}
TASK_START = re.compile(r"^(Question|Task): ")
GLYPHS = {WORKING: ("●", "*"), QUEUED: ("○", "o"), "complete": ("✔", "+"), "partial": ("◐", "~"), "failed": ("✘", "x")}
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
        self._question = ""
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def shown(self, view: RunView) -> AbstractContextManager[object]:
        """Show the view on the terminal while inside; afterwards it is gone without a trace."""
        self._view = view
        return self._live

    def observe(self, record: JournalRecord, view: RunView) -> None:
        """Write above the view, where it stays, what a session works with and what the user has to correct."""
        if isinstance(record.event, SessionConfigured):
            self.say("\n".join(session_lines(record.event, self._console.width)))
        elif isinstance(record.event, TurnTaken) and (line := cut_line(record.event, view)):
            self.say(line)
        elif isinstance(record.event, ApprovalDecided):
            self.say(approval_line(record.event))

    def ask(self, question: str) -> None:
        """Show a question in the view's last line, in place of what keys do."""
        self._question = question

    def say(self, text: str) -> None:
        """Write a line above the view."""
        self._console.print(Text(without_controls(text)))

    def drawn(self, console: Console) -> Group:
        """Return the view as it is now, for a console; its last line is the question, if there is one."""
        keys = Text(self._question, style="bold yellow") if self._question else Text(self._keys, style="dim")
        return drawing(self._view, self._now(), console, keys)

    async def keep_fresh(self) -> None:
        """Redraw until cancelled; on the loop's own thread, so that no state is read half changed."""
        while True:
            self._live.update(self.drawn(self._console), refresh=True)
            await asyncio.sleep(REFRESH_S)


def drawing(view: RunView, now: datetime, console: Console, keys: Text | None = None) -> Group:
    """Return the whole view, every line cut to the console's width; its last line is what keys do."""
    questions = view.plan.facts()[:MOST_QUESTIONS]
    rows = max(LEAST_AGENT_ROWS, console.height - OTHER_ROWS - len(questions))
    lines = [
        _titled("explorer", view.question or "starting", console),
        _titled("spent", _spending(view, now), console),
        _titled("so far", _progress(view), console),
        *[_titled(one.question.id, f"{one.progress.value}: {one.question.question}", console) for one in questions],
        *([_titled("models", _models(view), console)] if console.width < MODEL_COLUMN_FROM and view.models else []),
        *[Text(outage_words(outage, now), style="yellow") for outage in view.outages.values()],
        *_agent_lines(view, rows, console, now),
        *[
            _titled("file", f"{file.path} ({counted(file.lines, 'line')})", console)
            for file in list(view.files.values())[-NEWEST:]
        ],
        *[_titled(name, _source_words(view, name), console) for name in list(view.sources)[-NEWEST:]],
        keys or Text(OWN_RUN_KEYS, style="dim"),
    ]
    for line in lines:
        # Names, too, are what a journal from elsewhere says.
        line.plain = without_controls(line.plain)
        line.no_wrap = True
        line.overflow = "ellipsis"
        line.truncate(console.width - 1, overflow="ellipsis")
    return Group(*lines)


def _titled(title: str, words: str, console: Console) -> Text:
    return Text.assemble((f"{title:<9}", "bold"), one_line(words, max(20, console.width)))


def _spending(view: RunView, now: datetime) -> str:
    """Return money, steps, tokens and time of the latest question or follow-up, each with its limit."""
    before, began = view.used_before, view.session_began or view.started
    cost = None if view.cost_usd is None or before.cost_usd is None else view.cost_usd - before.cost_usd
    limits = view.session.limits if view.session is not None else {}
    used = {
        "max_cost_usd": money(cost),
        "max_steps": f"{view.steps - before.steps}",
        "max_tokens": tokens(view.usage.total_tokens - before.tokens),
        "max_time_s": duration((now - began).total_seconds() if began else 0.0),
    }
    parts: list[str] = []
    for name, words in used.items():
        limit = limits.get(name)
        if limit is not None and limit.value is not None:
            parts.append(f"{words} of {LIMIT_FORMS[name](limit.value)}")
        else:
            parts.append(words + UNITS.get(name, ""))
    return " · ".join(parts)


def _progress(view: RunView) -> str:
    """Return how many agents are at work, wait or are done, and what was found."""
    states = [_state(agent) for agent in view.agents.values()]
    counts = ", ".join(f"{states.count(state)} {state}" for state in (WORKING, QUEUED, DONE) if state in states)
    agents = counted(len(states), "agent") + (f" ({counts})" if states else "")
    return " · ".join([agents, counted(len(view.sources), "source"), counted(len(view.files), "file")])


def _state(agent: AgentView) -> str:
    if agent.status != WORKING:
        return DONE
    return QUEUED if agent.is_queued else WORKING


def _models(view: RunView) -> str:
    """Return the models, each with its roles."""
    if view.session is not None and view.session.models:
        return models_words(view.session.models)
    return ", ".join(f"{short_model(model)} ({role})" for role, model in view.models.items())


def _source_words(view: RunView, name: str) -> str:
    source = view.sources[name]
    host = host_of(source.url)
    return f"{source.title} ({host})" if host else source.title


def tree(view: RunView) -> Iterator[tuple[AgentView, int, bool]]:
    """Return agents with their depth, and whether each is the last of its parent."""
    waiting = [(agent, 0, True) for agent in reversed(view.children(""))]
    while waiting:
        agent, depth, is_last = waiting.pop()
        yield agent, depth, is_last
        children = view.children(agent.id)
        waiting += [(child, depth + 1, child is children[-1]) for child in reversed(children)]


def _agent_lines(view: RunView, rows: int, console: Console, now: datetime) -> list[Text]:
    """Return a line for each agent, and one more for what it does now, where there are rows for that."""
    nodes = list(tree(view))
    at_work = [node for node in nodes if _state(node[0]) == WORKING]
    is_roomy = len(nodes) + len(at_work) <= rows
    hidden = 0
    if len(nodes) > rows:
        # Those at work are what people wait for; of the finished ones the latest.
        working = [node for node in nodes if node[0].status == WORKING or node[1] == 0][: rows - 1]
        finished = [node for node in nodes if node not in working]
        kept = working + finished[len(finished) - (rows - 1 - len(working)) :]
        hidden = len(nodes) - len(kept)
        nodes = [node for node in nodes if node in kept]
    lines: list[Text] = []
    for agent, depth, is_last in nodes:
        head = _head(agent, depth, is_last=is_last, ascii_only=console.options.ascii_only)
        lines.append(_agent_line(view, agent, head, console.width, now, says_task=is_roomy))
        if is_roomy and _state(agent) == WORKING:
            lines.append(Text(" " * (2 * depth + 2) + one_line(agent.doing), style="dim"))
    return [*lines, Text(f"... and {counted(hidden, 'agent')} more", style="dim")] if hidden else lines


def _head(agent: AgentView, depth: int, *, is_last: bool, ascii_only: bool) -> Text:
    """Return the beginning of an agent's line: place in the tree, state and id."""
    branch = (ASCII_BRANCHES if ascii_only else BRANCHES)[is_last] if depth else ""
    state = _state(agent)
    shown = agent.status if state == DONE else state
    glyph = GLYPHS.get(shown, GLYPHS[WORKING])[ascii_only]
    lead = Text.assemble(("  " * (depth - 1)) + branch, (f"{glyph} ", STYLES.get(shown, "")))
    return Text.assemble(lead, (f"{agent.id:<{NAME_CHARS - lead.cell_len}}", "bold"), " ")


def _agent_line(view: RunView, agent: AgentView, head: Text, width: int, now: datetime, *, says_task: bool) -> Text:  # noqa: PLR0913
    state = _state(agent)
    words = one_line(TASK_START.sub("", agent.task)) if says_task or state == QUEUED else agent.doing
    if state == DONE:
        if agent.status != "complete" and agent.reason:
            words = f"{agent.status}: {agent.reason}"
        elif agent.result:
            words = result_words(agent.result)
        words = words or agent.status
    elif state == QUEUED:
        words = f"queued: {words}"
    figures = f" {duration(agent.seconds(now)):>6}"
    if width >= FIGURES_FROM:
        usd = "?" if agent.cost_usd is None else money(agent.cost_usd)
        figures = f" {agent.steps:>3}/{agent.max_steps:<3}{figures} {tokens(agent.usage.total_tokens):>6} {usd:>8}"
    if width >= MODEL_COLUMN_FROM:
        model = short_model(view.models.get(agent.role, ""))
        figures = f" {model[:MODEL_CHARS]:<{MODEL_CHARS}}{figures}"
    body = Text(one_line(words))
    body.truncate(max(8, width - 1 - head.cell_len - len(figures)), overflow="ellipsis", pad=True)
    return Text.assemble(head, body, (figures, "dim"))
