"""What the bench plays: conversations as pure functions of who asks and how many turns it has taken.

A conversation's first words carry a marker, `bench:<scenario>:<role>:<number>`, by which the model server knows whom it
answers; so it needs no state, and the engine and the bare loops hear the same.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]

MARKER = re.compile(rb"bench:([a-z0-9-]+):([a-z]+):(\d+)")
LEAD = "orchestrator"
HELPER = "worker"
READ_CHARS = 1_000
LONG_READ_CHARS = 2_000
HITS, HIT_CHARS = 8, 600
PAGE_CHARS = 12_000
FILE_CHARS = 6_000
HELPER_TURNS = 9
"""Turns of a fan-out's helper that read; one more answers."""
RESEARCH_TURNS = 6
"""Of each helper of `research-small`."""
SENTENCE = "the plant fed more into the grid in May than in any month before and its log says when and how much"


@dataclass(frozen=True)
class Reply:
    """What the model says in one turn."""

    text: str
    calls: tuple[tuple[str, JsonObject], ...] = ()


@dataclass(frozen=True)
class Scenario:
    """One conversation or a team's."""

    name: str
    latency_s: float
    """From a request's last byte to the reply's first."""
    agents: tuple[tuple[str, int], ...]
    """Role and number of each helper; the orchestrator's own conversation is not among them."""
    groups: tuple[int, ...]
    """How many helpers the orchestrator starts in each of its first turns."""
    lead_turns: int
    helper_turns: int

    @property
    def turns(self) -> int:
        """Model turns of all agents together."""
        return self.lead_turns + len(self.agents) * self.helper_turns

    @property
    def ideal_s(self) -> float:
        """The critical path's wall time if nothing but the model took time."""
        return self.latency_s * (self.lead_turns + len(self.groups) * self.helper_turns)

    def opening(self, role: str, number: int) -> str:
        """The first words to an agent."""
        return f"bench:{self.name}:{role}:{number} {prose(number, 300)}"

    def reply(self, role: str, number: int, turn: int) -> Reply:
        """What the model answers to an agent that has taken so many turns."""
        if role == LEAD:
            return self._lead(turn)
        return _research(role, number, turn) if self.name.startswith("research") else _read_on(number, turn, self)

    def _lead(self, turn: int) -> Reply:
        if not self.groups:
            return _read_on(0, turn, self) if turn < self.lead_turns - 2 else _close(turn == self.lead_turns - 2)
        if turn < len(self.groups):
            first = sum(self.groups[:turn])
            return Reply("Helpers look into it.", tuple(self._call(index) for index in self._group(first, turn)))
        if self.name.startswith("research") and turn == len(self.groups):
            return Reply("", (("read_file", {"filepath": "report.md"}),))
        return _close(turn < self.lead_turns - 1)

    def _group(self, first: int, turn: int) -> range:
        return range(first, first + self.groups[turn])

    def _call(self, index: int) -> tuple[str, JsonObject]:
        role, number = self.agents[index]
        return "call_agent", {"agent_type": role, "task_description": self.opening(role, number)}


REPORT = "# What the plant did\n\nOutput rose in May [S1].\n"
"""Rests on the one source that each run has."""


def prose(seed: int, chars: int) -> str:
    """So many characters of words, different for each seed."""
    start = seed % len(SENTENCE)
    words = f"{seed} {SENTENCE[start:]} {SENTENCE[:start]}. "
    return (words * (chars // len(words) + 1))[: chars - 1] + "."


def tool_text(name: str, arguments: JsonObject) -> str:
    """What the bench's own tools bring; a pure function, so that every contestant reads the same."""
    seed = int(arguments.get("number", 0))
    if name == "web_search":
        return "\n".join(f"{hit}. {prose(seed + hit, HIT_CHARS)}" for hit in range(1, HITS + 1))
    if name == "read_webpage":
        return prose(seed, PAGE_CHARS)
    return prose(seed, int(arguments.get("chars", READ_CHARS)))


def _read_on(number: int, turn: int, scenario: Scenario) -> Reply:
    if scenario.groups and turn >= scenario.helper_turns - 1:
        return Reply(f"It rose in May. {prose(number, 380)}")
    chars = READ_CHARS if scenario.groups else LONG_READ_CHARS
    return Reply(prose(turn, 90), (("bench_read", {"number": number * 1000 + turn, "chars": chars}),))


def _close(is_report_missing: bool) -> Reply:  # noqa: FBT001 - two lines, one caller
    if is_report_missing:
        return Reply("", (("write_file", {"filepath": "report.md", "content": REPORT, "mode": "overwrite"}),))
    return Reply("", (("finish_exploration", {"summary": "It rose in May."}),))


def _research(role: str, number: int, turn: int) -> Reply:
    """One search, two pages, two files, and a summary."""
    seed = number * 100 + turn
    first, second = (f"{role}-{number}-{part}.md" for part in ("findings", "details"))
    steps: Sequence[tuple[str, JsonObject]] = (
        ("web_search", {"query": f"output in May {seed}", "number": seed}),
        ("read_webpage", {"url": f"https://plant.example/{seed}", "number": seed}),
        ("read_webpage", {"url": f"https://plant.example/{seed}", "number": seed}),
        ("write_file", _file(first, seed)),
        ("write_file", _report() if role == "writer" else _file(second, seed)),
    )
    if turn >= len(steps):
        return Reply(f"Output rose in May. {prose(seed, 700)}\nNot known: why.")
    return Reply(prose(seed, 120), (steps[turn],))


def _report() -> JsonObject:
    return {"filepath": "report.md", "content": REPORT, "mode": "overwrite"}


def _file(path: str, seed: int) -> JsonObject:
    return {"filepath": path, "content": f"# What the plant did\n\n{prose(seed, FILE_CHARS)}\n"}


def _fan_out(helpers: int, latency_s: float) -> Scenario:
    agents = tuple((HELPER, number) for number in range(1, helpers + 1))
    return Scenario(f"fan-out-{helpers}", latency_s, agents, (helpers,), 3, HELPER_TURNS + 1)


def _long_run(steps: int) -> Scenario:
    return Scenario(f"long-run-{steps}", 0.0, (), (), steps, 0)


def scenario_named(name: str) -> Scenario:
    """A scenario by name: `research-small`, `fan-out-N` with any N, `long-run-N`."""
    kind, _, count = name.rpartition("-")
    if name == "research-small":
        helpers = (("searcher", 1), ("searcher", 2), ("analyzer", 3), ("writer", 4))
        return Scenario(name, 0.02, helpers, (2, 1, 1), 5, RESEARCH_TURNS)
    if kind == "fan-out":
        return _fan_out(int(count), 0.05)
    if kind == "long-run":
        return _long_run(int(count))
    raise ValueError(f"there is no scenario {name!r}")
