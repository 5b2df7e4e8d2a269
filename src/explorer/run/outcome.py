"""How a run ended, read off its recorded state: `complete` means answered from sources; every other end says why."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from explorer.journal.run_state import LookupRecord, RunState
from explorer.reports.render import with_hosts_only
from explorer.reports.verify.soundness import Flaw, FlawKind
from explorer.schema.events import ORCHESTRATOR, AgentFinished, Lookup, Status
from explorer.schema.messages import JsonObject
from explorer.schema.reasons import EndCause, EndReason, NoteReason
from explorer.text.sanitize import single_line
from explorer.text.words import sentences

MAX_SAID_CHARS = 120
MAX_CAUSE_CHARS = 200
OF_THE_USER = "file"
"""What files of the user's come through: nobody found them."""
MAX_LISTED = 40
"""Lookups in the list of what was tried."""
OUTCOME_WORDS = {Lookup.FOUND: "found something", Lookup.EMPTY: "nothing found", Lookup.FAILED: "failed"}


@dataclass(frozen=True)
class Outcome:
    """A status and its reason; the reason of `complete` is empty."""

    status: Status
    reason: str
    cause: EndCause = EndCause.OTHER


@dataclass(frozen=True)
class LookupCounts:
    """What came of all lookups of a run: each counts as what it brought when it was last made."""

    found: int
    empty: int
    failed: int
    failed_by_tool: Mapping[str, int]

    @property
    def total(self) -> int:
        """All of them."""
        return self.found + self.empty + self.failed


def count_lookups(run_state: RunState) -> LookupCounts:
    """Count the lookups of a run by what came of them."""
    by_outcome = Counter(one.outcome for one in run_state.lookups.values())
    by_tool = Counter(one.tool for one in run_state.lookups.values() if one.outcome is Lookup.FAILED)
    return LookupCounts(by_outcome[Lookup.FOUND], by_outcome[Lookup.EMPTY], by_outcome[Lookup.FAILED], by_tool)


def outcome_of(
    run_state: RunState,
    ended: AgentFinished | None,
    cut: EndReason,
    flaws: Sequence[Flaw] | None,
    subject: str = "the report",
) -> Outcome:
    """How a run, or a follow-up to it, ended.

    Args:
        run_state: The run.
        ended: The orchestrator's end; None when it was cut off.
        cut: Why it was cut off, or is known to be incomplete; false otherwise.
        flaws: Of its report, or of the words that answer; None when there is neither.
        subject: Which of the two it is.
    """
    if ended is None or cut:
        reason = cut or EndReason("the run was cut off")
        return _early(run_state, Status.PARTIAL, reason, has_report=flaws is not None)
    lookups = count_lookups(run_state)
    if not run_state.sources and lookups.total and lookups.failed == lookups.total:
        more = "" if ended.status is Status.COMPLETE else f"; {ended.reason}"
        return Outcome(Status.SOURCES_UNAVAILABLE, f"{_none_reached(run_state, lookups)}{more}")
    if ended.status is not Status.COMPLETE:
        reason = EndReason(ended.reason, ended.cause)
        return _early(run_state, ended.status, reason, has_report=flaws is not None)
    if flaws is None:
        # Whatever the model says: without a report it has failed, and is not merely early.
        nothing = "" if run_state.files or run_state.sources else "; nothing was found"
        return Outcome(Status.FAILED, f"no report was written{nothing}")
    return _of_text(run_state, ended, flaws, subject)


def _of_text(run_state: RunState, ended: AgentFinished, flaws: Sequence[Flaw], subject: str) -> Outcome:
    """Of a run whose orchestrator says that it is done, and has a report or an answer."""
    lookups = count_lookups(run_state)
    has_looked = bool(run_state.sources or lookups.total)
    is_empty = has_looked and (ended.cause is EndCause.FOUND_NOTHING or not run_state.sources)
    is_bare = not run_state.sources and not is_empty
    serious = [flaw.reason(subject) for flaw in flaws if flaw.kind is not FlawKind.UNCITED or not (is_empty or is_bare)]
    if is_bare:
        return Outcome(Status.PARTIAL, "; ".join(["answered without sources", *serious]))
    if serious:
        return Outcome(Status.PARTIAL, "; ".join(serious))
    if is_empty:
        return Outcome(Status.NOTHING_FOUND, f"nothing relevant was found ({_searched(run_state, lookups)})")
    return Outcome(Status.COMPLETE, "")


def _searched(run_state: RunState, lookups: LookupCounts) -> str:
    count = len(run_state.sources)
    return lookup_words(lookups) if lookups.total else f"in {count} source{'s' * (count != 1)}"


def _early(run_state: RunState, status: Status, reason: EndReason, *, has_report: bool) -> Outcome:
    """Of a run that was stopped, or whose orchestrator did not get to its end."""
    if has_report:
        return Outcome(status, reason.words, reason.cause)
    if not run_state.files and not run_state.sources:
        return Outcome(Status.FAILED, f"{reason.words}; nothing was found", reason.cause)
    has_findings = bool(run_state.files) or any(source.via != OF_THE_USER for source in run_state.sources.values())
    if status is Status.FAILED and has_findings and not _was_asked_to_act(run_state):
        return Outcome(Status.PARTIAL, reason.words, reason.cause)
    return Outcome(status, reason.words, reason.cause)


def _was_asked_to_act(run_state: RunState) -> bool:
    """Whether the orchestrator replied in words where it had to act."""
    lead = run_state.agents.get(ORCHESTRATOR)
    return lead is not None and NoteReason.ACT in lead.notes


def _none_reached(run_state: RunState, lookups: LookupCounts) -> str:
    first = next(one for one in run_state.lookups.values() if one.outcome is Lookup.FAILED)
    return f"no lookup reached a source ({lookups.failed} failed; {first.tool}: {_cause(first.answer)})"


def lookup_words(lookups: LookupCounts) -> str:
    """What came of the lookups, in numbers that add up."""
    parts = [
        f"{lookups.found} found something" if lookups.found else "",
        f"{lookups.empty} found nothing" if lookups.empty else "",
        f"{lookups.failed} failed" if lookups.failed else "",
    ]
    total = "1 lookup" if lookups.total == 1 else f"{lookups.total} lookups"
    return f"{total}: {', '.join(part for part in parts if part)}" if lookups.total else "no lookups"


def failed_words(lookups: LookupCounts) -> str:
    """What a report's reader has to know of lookups that failed; empty when none did."""
    if not lookups.failed:
        return ""
    tools = ", ".join(f"{tool} {count}" for tool, count in sorted(lookups.failed_by_tool.items()))
    return f"{lookups.failed} of {lookups.total} lookups failed ({tools}); what they would have found is missing here"


def tried(run_state: RunState) -> list[str]:
    """What was looked up and what came of it, a line of markdown each."""
    made = list(run_state.lookups.values())
    lines = [f"- `{_asked(one)}`: {OUTCOME_WORDS[one.outcome]}{_why(one)}" for one in made[:MAX_LISTED]]
    return lines if len(made) <= MAX_LISTED else [*lines, f"- and {len(made) - MAX_LISTED} more"]


def _why(one: LookupRecord) -> str:
    """As code: an error may look like markdown."""
    cause_text = _cause(one.answer).replace("`", "'")
    return f" (`{cause_text}`)" if one.outcome is Lookup.FAILED else ""


def _asked(one: LookupRecord) -> str:
    words = " ".join([one.tool, *_values(one.asked)])
    return single_line(words.replace("`", "'"), MAX_SAID_CHARS)


def _values(arguments: JsonObject) -> list[str]:
    """Of the arguments, those that say what was looked for."""
    return [str(value) for value in arguments.values() if isinstance(value, str) and value.strip()]


def _cause(cause_text: str) -> str:
    """Why a lookup failed, for people: without the advice for the model behind it, and without long addresses."""
    line = with_hosts_only(single_line(cause_text))
    return single_line(" ".join(sentences(line)[:1]).rstrip("."), MAX_CAUSE_CHARS)
