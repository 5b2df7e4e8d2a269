"""What a run used up, for people and for programs: tokens, money, time, and what was waited for."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from explorer.observe.costs import AgentShare, Spending, UsageTotals
from explorer.observe.formatting import cached, cost, counted, money, one_line, percent, short_time, tokens
from explorer.observe.timeline import PathSegment, longest

NAME_COLUMNS = 9
"""Columns of the names before the rows of a page's head."""
LINKS = 5
"""Number of links of the critical path in a line."""
SHOWN_NAME = 16
LEAST_COLUMNS = 30
WRAPPED = frozenset({"spent", "tokens", "saved", "paid", "slowest", "path", "time", "at once"})
"""Rows that are wrapped on a narrow page; in the others stands what one may want to copy."""
Row = tuple[str, str]


@dataclass(frozen=True)
class Column:
    """One column of a table; the least important ones are left out where the page is narrow."""

    name: str
    cells: Sequence[str]
    rank: int

    @property
    def width(self) -> int:
        """Width of the widest cell."""
        return max(len(self.name), *(len(cell) for cell in self.cells), 0)


def head_rows(spending: Spending) -> list[Row]:
    """Return the rows with the figures of the whole run."""
    rows = [("tokens", _tokens(spending.total))]
    if spending.total.usage.cache_read_tokens or spending.total.usage.cache_write_tokens:
        rows.append(("saved", _saved(spending.total)))
    if spending.inherited is not None:
        totals = spending.inherited.totals
        words = (
            f"{money(totals.cost_usd)}, {tokens(totals.usage.total_tokens)} tokens of it by {spending.inherited.run}"
        )
        rows.append(("paid", words))
    rows += [("slowest", _slowest(spending)), ("path", _path(spending))]
    return rows


def _tokens(totals: UsageTotals) -> str:
    usage = totals.usage
    share = cached(usage.cache_read_tokens, usage.input_tokens)
    return f"{tokens(usage.input_tokens)} in{share}, {tokens(usage.output_tokens)} out"


def _saved(totals: UsageTotals) -> str:
    if totals.saved_usd is None:
        return "not known: a model that used its cache is not in the price list"
    if totals.saved_usd < 0:
        return f"nothing yet: filling the cache cost {money(-totals.saved_usd)} more than reading it saved"
    return f"{money(totals.saved_usd)} by caching"


def _slowest(spending: Spending) -> str:
    agent = spending.slowest
    return f"{agent.id}, {short_time(agent.seconds - agent.waited_s)}" if agent else "-"


def _path(spending: Spending) -> str:
    """Return the longest links of the chain of waiting, in order, and how long the others were together."""
    links = longest(spending.path, LINKS)
    words = " → ".join(f"{link.agent} {short_time(link.seconds)}" for link in links)
    rest_s = spending.seconds - sum(link.seconds for link in links)
    return f"{words}, and {short_time(rest_s)} in shorter ones" if len(links) < len(spending.path) else words or "-"


def head(rows: Sequence[Row], columns: int) -> str:
    """Return rows as lines with a name and words; words that are figures of ours are wrapped, the others are not."""
    lines: list[str] = []
    for name, words in rows:
        line = one_line(words)
        wrapped = textwrap.wrap(line, max(LEAST_COLUMNS, columns) - NAME_COLUMNS) if name in WRAPPED else [line]
        lines += [
            f"{lead:<{NAME_COLUMNS}}{part}" for lead, part in zip((name, *[""] * len(wrapped)), wrapped, strict=False)
        ]
    return "\n".join(lines)


def role_table(spending: Spending, columns: int) -> str:
    """Return a table with a row for each role."""
    roles = spending.roles
    return _table(
        [
            Column("role", [one_line(role.role, SHOWN_NAME) for role in roles], 0),
            Column("agents", [str(role.agents) for role in roles], 7),
            Column("turns", [str(role.totals.turns) for role in roles], 6),
            *_usage_columns([role.totals for role in roles]),
            Column("time", [short_time(role.seconds) for role in roles], 5),
        ],
        columns,
    )


def _usage_columns(totals: Sequence[UsageTotals]) -> list[Column]:
    return [
        Column("in", [tokens(one.usage.input_tokens) for one in totals], 1),
        Column("cached", [percent(one.cache_share) for one in totals], 4),
        Column("out", [tokens(one.usage.output_tokens) for one in totals], 2),
        Column("cost", [cost(one.cost_usd) for one in totals], 3),
    ]


def costs_page(spending: Spending, columns: int) -> str:
    """Return the page of costs: the run, roles, agents in tokens and time, the chain of waiting, the sessions."""
    at_once = "-" if spending.parallelism is None else f"{spending.parallelism:.1f} agents at work on average"
    rows = [
        *head_rows(spending),
        ("spent", f"{money(spending.total.cost_usd)} in {counted(spending.total.turns, 'turn')}"),
        ("time", f"{short_time(spending.seconds)} in {_sessions(spending)}"),
        ("at once", at_once),
    ]
    blocks = [
        head(rows, columns),
        "Roles\n" + role_table(spending, columns),
        "Agents, what they used\n" + _agents_usage(spending.agents, columns),
        "Agents, what their time went into\n" + _agents_time(spending.agents, columns),
        "What the run waited for, from start to end\n" + _links(spending.path, columns),
    ]
    return "\n\n".join(blocks)


def _sessions(spending: Spending) -> str:
    number = len(spending.sessions)
    return (
        "1 session"
        if number == 1
        else f"{number} sessions: {', '.join(short_time(interval.seconds) for interval in spending.sessions)}"
    )


def _agents_usage(agents: Sequence[AgentShare], columns: int) -> str:
    saved = ["?" if one.totals.saved_usd is None else money(one.totals.saved_usd) for one in agents]
    return _table(
        [
            Column("agent", [one_line(one.id, SHOWN_NAME) for one in agents], 0),
            Column("turns", [str(one.totals.turns) for one in agents], 6),
            *_usage_columns([one.totals for one in agents]),
            Column("saved", saved, 5),
        ],
        columns,
    )


def _agents_time(agents: Sequence[AgentShare], columns: int) -> str:
    return _table(
        [
            Column("agent", [one_line(one.id, SHOWN_NAME) for one in agents], 0),
            Column("all", [short_time(one.seconds) for one in agents], 1),
            Column("model", [short_time(one.model_s) for one in agents], 2),
            Column("tools", [short_time(one.tools_s) for one in agents], 2),
            Column("helpers", [short_time(one.helpers_s) for one in agents], 3),
            Column("waiting", [short_time(one.waited_s) for one in agents], 4),
        ],
        columns,
    )


def _links(links: Sequence[PathSegment], columns: int) -> str:
    return _table(
        [
            Column("agent", [one_line(link.agent, SHOWN_NAME) for link in links], 0),
            Column("from", [short_time(link.start_s) for link in links], 3),
            Column("all", [short_time(link.seconds) for link in links], 1),
            Column("model", [short_time(link.model_s) for link in links], 2),
            Column("tools", [short_time(link.tools_s) for link in links], 2),
            Column("other", [short_time(link.other_s) for link in links], 4),
        ],
        columns,
    )


def _table(columns: Sequence[Column], width: int) -> str:
    """Return a table: names to the left, figures to the right, as many columns as fit."""
    if not columns[0].cells:
        return "  none"
    kept = list(columns)
    while sum(column.width + 2 for column in kept) > width and len(kept) > 2:  # noqa: PLR2004 - a name and a figure
        kept.remove(max(kept, key=lambda column: column.rank))
    first, *rest = kept
    rows = zip([first.name, *first.cells], *([column.name, *column.cells] for column in rest), strict=True)
    lines: list[str] = []
    for name, *figures in rows:
        cells = [f"{figure:>{column.width}}" for figure, column in zip(figures, rest, strict=True)]
        lines.append("  " + "  ".join([f"{name:<{first.width}}", *cells]))
    return "\n".join(lines)
