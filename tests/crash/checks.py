"""What must hold after every life of a run and at its end; each breach is one line."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lives import Place, fingerprint, stage_of
from scenarios import Scenario

from explorer.journal.run_state import RunState
from explorer.schema.events import (
    AgentFinished,
    AnyEvent,
    Compacted,
    JournalRecord,
    RequestSent,
    SessionConfigured,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnTaken,
)

COMPLETE = 0
EXIT_CODES = {"KILL": -9, "POWER": -9, "INT": 130, "TERM": 143}
"""Of a life that is ended, by how."""


TOKENS = re.compile(r"^(estimated:\n  tokens: )(\d+)(\n.*\n)(tokens:\n  input: )(\d+)(\n  output: )(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Undisturbed:
    """A run that nothing happened to: what all others are measured by."""

    reports: tuple[str, ...]
    """By stage."""
    files: dict[str, str]
    requests: Counter[str]
    calls: frozenset[str]
    points: tuple[dict[str, int], ...]
    """By life: how often each point was reached."""


@dataclass(frozen=True)
class Before:
    """What there was before a life."""

    records: tuple[JournalRecord, ...]
    requests: int

    @classmethod
    def of(cls, place: Place) -> "Before":
        """As it stands now."""
        return cls(place.records(), len(place.notes("requests")))


def files_of(run: Path) -> dict[str, str]:
    """All files of a run but the engine's own, sources and long results among them."""
    found: dict[str, str] = {}
    for path in sorted(run.rglob("*")):
        name = path.relative_to(run).as_posix()
        if path.is_file() and (not name.startswith(".explorer/") or name.startswith((".explorer/s", ".explorer/o"))):
            found[name] = path.read_text()
    return found


def after_life(place: Place, before: Before, exit_code: int, expected: str) -> Iterator[str]:
    """Breaches of one life: `expected` is how it was to end, empty for by itself."""
    allowed = {COMPLETE, EXIT_CODES[expected]} if expected else {COMPLETE}
    if exit_code not in allowed:
        yield f"ending: the life ended with {exit_code}, not {sorted(allowed)}"
    output = [line for line in place.notes("stderr") if line.strip()]
    if output:
        yield f"ending: the life said {output[-1]!r}"
    records = place.records()
    kept = records[: len(before.records)]
    # An earlier life may have ended on a record that nobody waits for; a loss of power takes it along.
    gone = before.records[len(kept) :] if expected == "POWER" else ()
    if kept + gone != before.records or any(record.event.is_barrier for record in gone):
        yield "journal: what was there before the life has changed"
    there = {fingerprint(record) for record in records}
    lost = [line for line in place.notes("acknowledged") if line not in there]
    if lost:
        yield f"journal: {len(lost)} acknowledged records are lost, from record {lost[0].split()[0]} on"
    for agent, repeated in unrecorded(place, before).items():
        if repeated > (exit_code != COMPLETE):
            yield f"requests: {repeated} of {agent} left nothing behind in one life"


def with_paid(report: str, events: Sequence[AnyEvent]) -> str:
    """The report of an undisturbed run, with what this run paid beyond it: requests that were cut off, in full."""
    paid = [(sent.input_tokens, sent.output_tokens) for sent in cut_off(events)]
    more_in, more_out = sum(tokens for tokens, _ in paid), sum(tokens for _, tokens in paid)

    def add(found: re.Match[str]) -> str:
        estimated, given, taken = int(found[2]), int(found[5]), int(found[7])
        return (
            f"{found[1]}{estimated + more_in + more_out}{found[3]}"
            f"{found[4]}{given + more_in}{found[6]}{taken + more_out}"
        )

    text, found = TOKENS.subn(add, report)
    assert found == 1, "the report's head does not have the tokens where they are looked for"
    return text


def cut_off(events: Sequence[AnyEvent]) -> Iterator[RequestSent]:
    """Requests that no reply and no free failure of their agent follows before its next one, or the next session."""
    under_way: dict[str, RequestSent] = {}
    for event in events:
        if isinstance(event, SessionConfigured):
            yield from under_way.values()
            under_way.clear()
        elif isinstance(event, RequestSent):
            if event.agent in under_way:
                yield under_way.pop(event.agent)
            under_way[event.agent] = event
        elif isinstance(event, TurnFailed) and event.is_billed and event.agent in under_way:
            yield under_way.pop(event.agent)
        elif isinstance(event, TurnTaken | TurnFailed | Compacted):
            under_way.pop(event.agent, None)
    yield from under_way.values()


def of_complete(place: Place, scenario: Scenario, whole: Undisturbed) -> Iterator[str]:
    """Breaches of a run that may be cut off in its follow-up: what the journal calls complete has its report."""
    events = [record.event for record in place.records()]
    report = place.run / "report.md"
    if RunState.of(events).finished is None:
        return
    if not report.is_file() or report.read_text() != with_paid(whole.reports[stage_of(events, scenario)], events):
        yield "report: not that of the complete run"


def unrecorded(place: Place, before: Before) -> Counter[str]:
    """By agent: requests of the life since `before` that no record tells of, and that are made again."""
    asked = Counter(line.split()[0] for line in place.notes("requests")[before.requests :])
    fresh = [record.event for record in place.records()[len(before.records) :]]
    shown = Counter(event.agent for event in fresh if isinstance(event, TurnTaken | Compacted))
    return asked - shown


def at_the_end(place: Place, scenario: Scenario, whole: Undisturbed) -> Iterator[str]:
    """Breaches of a run that has come to its end, however many lives that took."""
    events = [record.event for record in place.records()]
    started = Counter(event.call for event in events if isinstance(event, ToolStarted))
    finished = Counter(event.call for event in events if isinstance(event, ToolFinished))
    yield from (f"calls: {call} was started {n} times" for call, n in started.items() if n > 1)
    yield from (f"calls: {call} was finished {n} times" for call, n in finished.items() if n > 1)
    others = finished.keys() ^ whole.calls
    if others:
        yield f"calls: not those of an undisturbed run: {sorted(others)}"
    ends = Counter(event.agent for event in events if isinstance(event, AgentFinished))
    yield from (f"agents: {agent} has no end" for agent in RunState.of(events).agents if agent not in ends)
    yield from (f"effects: {call} posted {n} times" for call, n in Counter(place.notes("posted")).items() if n > 1)
    strange = Counter(place.notes("requests")).keys() - whole.requests.keys()
    if strange and scenario.is_word_for_word:
        yield f"requests: {len(strange)} are not those of an undisturbed run: {min(strange)}"
    files = files_of(place.run)
    expected = whole.files | {"report.md": with_paid(whole.reports[-1], events)}
    for name in sorted(files.keys() | expected.keys()):
        if files.get(name) != expected.get(name):
            yield f"files: {name} is {'changed' if name in files and name in expected else 'one too many or few'}"
    if files.get("report.md") != expected["report.md"]:
        yield "report: not byte-equal to that of an undisturbed run"
