"""How a run ended: its status, what it hands over besides the report, and what the engine itself writes at the end."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import Field

from explorer.journal.agent_state import AgentState
from explorer.journal.run_state import LookupRecord, RunState
from explorer.reports.verify.soundness import Flaw, FlawKind
from explorer.schema.events import ORCHESTRATOR, AgentFinished, Frozen, JournalRecord, Lookup, RunStarted, Status
from explorer.schema.limits import Limits, claimed_limits
from explorer.schema.messages import JsonObject
from explorer.schema.reasons import EndCause, EndReason, NoteReason
from explorer.text.rendering import without_marks
from explorer.text.sanitize import single_line
from explorer.text.urls import page_key, with_hosts_only
from explorer.text.words import sentences
from explorer.workspace.access import REPORT
from explorer.workspace.workspace import Workspace


@dataclass(frozen=True)
class TriedWords:
    """The phrases of one language."""

    title: str
    outcomes: Mapping[Lookup, str]
    more: str
    failed: str
    """With `{failed}`, `{total}` and `{tools}`."""
    nothing: str
    """With `{total}`, `{found}`, `{empty}` and `{failed}`; empty where the reason of the end says it."""
    unreached: str
    """With `{failed}`, `{tool}` and `{cause}`."""


ENGLISH = TriedWords(
    title="What was tried",
    outcomes={Lookup.FOUND: "found something", Lookup.EMPTY: "nothing found", Lookup.FAILED: "failed"},
    more="and {count} more",
    failed="{failed} of {total} lookups failed ({tools}); what they would have found is missing here",
    nothing="",
    unreached="no lookup reached a source ({failed} failed; {tool}: {cause})",
)
CHINESE = TriedWords(
    title="做过的检索",
    outcomes={Lookup.FOUND: "有结果", Lookup.EMPTY: "没有结果", Lookup.FAILED: "失败"},
    more="另有 {count} 次",
    failed="{total} 次检索中有 {failed} 次失败（{tools}），本应查到的内容这里没有",
    nothing="没有找到相关内容（共 {total} 次检索：{found} 次有结果，{empty} 次没有结果，{failed} 次失败）",
    unreached="没有一次检索能访问来源（{failed} 次失败；{tool}：{cause}）",
)
GERMAN = TriedWords(
    title="Was versucht wurde",
    outcomes={Lookup.FOUND: "etwas gefunden", Lookup.EMPTY: "nichts gefunden", Lookup.FAILED: "fehlgeschlagen"},
    more="und {count} weitere",
    failed="{failed} von {total} Abfragen schlugen fehl ({tools}); was sie gefunden hätten, fehlt hier",
    nothing=(
        "nichts Passendes wurde gefunden (Abfragen: {total}; mit Ergebnis: {found}, ohne: {empty}, fehlgeschlagen:"
        " {failed})"
    ),
    unreached="keine Abfrage erreichte eine Quelle (fehlgeschlagen: {failed}; {tool}: {cause})",
)


def tried_words(language: str) -> TriedWords:
    """Return the phrases of a language: `zh`, `de`, or English for any other."""
    return {"zh": CHINESE, "de": GERMAN}.get(language, ENGLISH)


MAX_SAID_CHARS = 120
MAX_CAUSE_CHARS = 200
OF_THE_USER = "file"
"""What files of the user's come through: nobody found them."""
MAX_LISTED = 40
"""Lookups in the list of what was tried."""


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
    first_failed: tuple[str, str] = ("", "")
    """The tool of the first one that failed, and why it did, for people."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.found + self.empty + self.failed


def count_lookups(run_state: RunState) -> LookupCounts:
    """Count the lookups of a run by what came of them."""
    by_outcome = Counter(one.outcome for one in run_state.lookups.values())
    failed = [one for one in run_state.lookups.values() if one.outcome is Lookup.FAILED]
    first = (failed[0].tool, _cause(failed[0].answer)) if failed else ("", "")
    by_tool = Counter(one.tool for one in failed)
    return LookupCounts(by_outcome[Lookup.FOUND], by_outcome[Lookup.EMPTY], by_outcome[Lookup.FAILED], by_tool, first)


def outcome_of(
    run_state: RunState,
    ended: AgentFinished | None,
    cut: EndReason,
    flaws: Sequence[Flaw] | None,
    subject: str = "the report",
) -> Outcome:
    """Return the outcome of a run or of a follow-up.

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
        return Outcome(Status.SOURCES_UNAVAILABLE, f"{_none_reached(lookups)}{more}")
    if ended.status is not Status.COMPLETE:
        reason = EndReason(ended.reason, ended.cause)
        return _early(run_state, ended.status, reason, has_report=flaws is not None)
    if flaws is None and ended.cause is EndCause.FOUND_NOTHING:
        return Outcome(Status.NOTHING_FOUND, ended.reason, ended.cause)
    if flaws is None:
        # Whatever the model says: without a report it has failed, and is not merely early.
        nothing = "" if run_state.files or run_state.sources else "; nothing was found"
        return Outcome(Status.FAILED, f"no report was written{nothing}")
    return _of_text(run_state, ended, flaws, subject)


def _of_text(run_state: RunState, ended: AgentFinished, flaws: Sequence[Flaw], subject: str) -> Outcome:
    """Return the outcome of a run whose orchestrator says that it is done, and that has a report or an answer."""
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
    """Return the outcome of a run that was stopped, or whose orchestrator did not reach its end."""
    if has_report:
        return Outcome(status, reason.words, reason.cause)
    if reason.cause is EndCause.PLAN_REJECTED:
        return Outcome(status, reason.words, reason.cause)
    if not run_state.files and not run_state.sources:
        return Outcome(Status.FAILED, f"{reason.words}; nothing was found", reason.cause)
    has_findings = bool(run_state.files) or any(source.via != OF_THE_USER for source in run_state.sources.values())
    if status is Status.FAILED and has_findings and not _was_asked_to_act(run_state):
        return Outcome(Status.PARTIAL, reason.words, reason.cause)
    return Outcome(status, reason.words, reason.cause)


def _was_asked_to_act(run_state: RunState) -> bool:
    """Return whether the orchestrator replied in words where it had to act."""
    lead = run_state.lead
    return lead is not None and NoteReason.ACT in lead.notes


def _none_reached(lookups: LookupCounts, language: str = "en") -> str:
    tool, cause = lookups.first_failed
    return tried_words(language).unreached.format(failed=lookups.failed, tool=tool, cause=cause)


def lookup_words(lookups: LookupCounts) -> str:
    """Return what came of the lookups, in numbers that add up."""
    parts = [
        f"{lookups.found} found something" if lookups.found else "",
        f"{lookups.empty} found nothing" if lookups.empty else "",
        f"{lookups.failed} failed" if lookups.failed else "",
    ]
    total = "1 lookup" if lookups.total == 1 else f"{lookups.total} lookups"
    return f"{total}: {', '.join(part for part in parts if part)}" if lookups.total else "no lookups"


def failed_words(lookups: LookupCounts, language: str) -> str:
    """Return what a report's reader has to know of lookups that failed; empty when none did."""
    if not lookups.failed:
        return ""
    tools = ", ".join(f"{tool} {count}" for tool, count in sorted(lookups.failed_by_tool.items()))
    return tried_words(language).failed.format(failed=lookups.failed, total=lookups.total, tools=tools)


def reason_words(outcome: Outcome, lookups: LookupCounts, language: str) -> str:
    """Return the reason of an end for the readers of a report; of one that found nothing, in their language."""
    words = tried_words(language)
    if outcome.status is Status.SOURCES_UNAVAILABLE:
        return outcome.reason.replace(_none_reached(lookups), _none_reached(lookups, language), 1)
    if outcome.status is not Status.NOTHING_FOUND or not words.nothing or not lookups.total:
        return outcome.reason
    return words.nothing.format(total=lookups.total, found=lookups.found, empty=lookups.empty, failed=lookups.failed)


def tried(run_state: RunState, language: str) -> list[str]:
    """Return what was looked up and what came of it, a line of markdown each."""
    words, made = tried_words(language), list(run_state.lookups.values())
    lines = [f"- `{_asked(one)}`: {words.outcomes[one.outcome]}{_why(one)}" for one in made[:MAX_LISTED]]
    more = words.more.format(count=len(made) - MAX_LISTED)
    return lines if len(made) <= MAX_LISTED else [*lines, f"- {more}"]


def _why(one: LookupRecord) -> str:
    """Return the reason of a failure as code, since an error may look like markdown."""
    cause_text = _cause(one.answer).replace("`", "'")
    return f" (`{cause_text}`)" if one.outcome is Lookup.FAILED else ""


def _asked(one: LookupRecord) -> str:
    words = " ".join([one.tool, *_values(one.asked)])
    return single_line(words.replace("`", "'"), MAX_SAID_CHARS)


def _values(arguments: JsonObject) -> list[str]:
    """Return the arguments that say what was looked for."""
    return [str(value) for value in arguments.values() if isinstance(value, str) and value.strip()]


def _cause(cause_text: str) -> str:
    """Return why a lookup failed, for people: without advice for models and without long addresses."""
    line = with_hosts_only(single_line(cause_text))
    return single_line(" ".join(sentences(line)[:1]).rstrip("."), MAX_CAUSE_CHARS)


CENT_USD = 0.01
STOPPED = "This run stopped before its report was written."
MAX_SUMMARY_CHARS = 3_000
"""Limit for each helper's summary in the report of a run that stopped before its report."""
MAX_WORDS_CHARS = 20_000
"""Limit for the orchestrator's last words there: a model that writes megabytes has said nothing."""
WITH_TRIED = frozenset({Status.NOTHING_FOUND, Status.SOURCES_UNAVAILABLE})
"""Ends whose report lists what was looked up."""


def unfinished_report(
    run_state: RunState, workspace: Workspace, ended: AgentFinished | None, outcome: Outcome, way_on: str = ""
) -> str:
    """Return what there is to say about a run without a report: the reason, all that was said and found, the way on."""
    is_empty = outcome.status is Status.NOTHING_FOUND
    opening = f"Nothing of interest was found: {outcome.reason}." if is_empty else STOPPED
    lines = [f"# {_first_line(run_state.question)}", "", opening]
    words = ended.summary.strip() if ended is not None else ""
    if words:
        lines += ["", "## What the model said instead", "", words[:MAX_WORDS_CHARS]]
    helpers = [state for state in run_state.agents.values() if state.agent != ORCHESTRATOR]
    if helpers:
        lines += ["", "## What was found", *[_said(state) for state in helpers]]
    files = [written for written in run_state.files.values() if written.path != REPORT]
    if files:
        lines += ["", "## Files", ""]
        lines += [f"- `{written.path}` ({written.lines} lines): {written.title}" for written in files]
    lines += ["", "What was read is stored in `.explorer/sources/`.", ""] if run_state.sources else [""]
    command = way_on or resume_command(run_state, workspace.folder.name, outcome.cause)
    lines += ["To continue:", "", f"    {command}"]
    return "\n".join([*lines, *what_was_tried(run_state, outcome.status, "en")])


def what_was_tried(run_state: RunState, status: Status, language: str) -> list[str]:
    """Return the end of a report on a run that found nothing: each lookup with what came of it."""
    lines = tried(run_state, language) if status in WITH_TRIED else []
    return ["", f"## {tried_words(language).title}", "", *lines] if lines else []


def resume_command(run_state: RunState, run_id: str, cause: EndCause) -> str:
    """Return the command that goes on with a run; after a limit, with twice as much of what ran out."""
    command = f"explorer resume {run_id}"
    limits = _limits(run_state)
    before = run_state.paid_before
    # A later session may have had a larger limit than the recorded one: then about so much of it is used.
    match cause:
        case EndCause.STEP_LIMIT:
            return f"{command} --max-steps {2 * max(limits.max_steps or 0, run_state.steps - before.steps)}"
        case EndCause.COST_LIMIT:
            usd = 2 * max(limits.max_cost_usd or 0.0, run_state.known_cost_usd - before.cost_usd)
            return f"{command} --max-cost {usd:.2f}" if usd >= CENT_USD else f"{command} --max-cost {usd:.6f}"
        case EndCause.TOKEN_LIMIT:
            tokens = 2 * max(limits.max_tokens or 0, run_state.usage.total_tokens - before.tokens)
            return f"{command} --max-tokens {tokens}"
        case EndCause.CALL_LIMIT:
            return f"{command} --max-tool-calls {2 * max(limits.max_tool_calls or 0, run_state.calls - before.calls)}"
        case EndCause.TIME_LIMIT:
            seconds = 2 * (limits.max_time_s or 0)
            return f"{command} --max-time {seconds:g}s" if seconds else command
        case _:
            return command


def _limits(run_state: RunState) -> Limits:
    """Return the limits of the latest session; in older journals, those the run was started with."""
    if run_state.session is not None:
        return claimed_limits({name: limit.value for name, limit in run_state.session.limits.items()})
    return claimed_limits(run_state.started.settings.get("limits") if run_state.started is not None else None)


def _said(state: AgentState) -> str:
    if state.finished is None:
        return f"\n**{state.agent}** was still at work on: {_first_line(without_marks(state.task))}"
    words = (state.finished.summary or state.finished.reason)[:MAX_SUMMARY_CHARS]
    return f"\n**{state.agent}** ({state.finished.status}): {words}"


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:160]


LINKS = "interesting_links"
"""The key under which `finish_exploration` hands links over."""
MAX_LINKS = 20


class FurtherLink(Frozen):
    """A stored source that the orchestrator recommends."""

    url: str
    title: str
    source: str
    """Id of the source."""


class HelperResult(Frozen):
    """What one helper did."""

    agent: str
    """Id of the agent, such as `searcher-2`."""
    role: str
    status: str
    """How its latest task ended; empty while it works."""
    reason: str
    steps: int
    """Model turns."""
    output_files: tuple[str, ...]
    """Paths in the run's folder."""
    summary: str
    """All that it said at the end, whether or not the orchestrator was shown all of it."""
    result: JsonObject = Field(default={})
    """Its result in the form that its role declares."""


def further_links(run_state: RunState) -> tuple[FurtherLink, ...]:
    """Return the links that the orchestrator named at its end, best first, each once.

    An address that no source of the run has is left out: a model may have made it up.
    """
    known = {page_key(source.url): source for source in reversed(run_state.sources.values()) if "://" in source.url}
    named = cast("Sequence[object]", run_state.structured_results.get(LINKS) or ())
    keys = dict.fromkeys(page_key(url) for url in named if isinstance(url, str))
    found = [known[key] for key in keys if key in known]
    return tuple(FurtherLink(url=one.url, title=one.title, source=one.id) for one in found[:MAX_LINKS])


def helper_results(run_state: RunState) -> tuple[HelperResult, ...]:
    """Return what each helper did, in the order in which they were started."""
    return tuple(
        HelperResult(
            agent=state.agent,
            role=state.role,
            status=str(state.finished.status) if state.finished is not None else "",
            reason=state.finished.reason if state.finished is not None else "",
            steps=state.steps,
            output_files=tuple(state.files),
            summary=state.finished.summary if state.finished is not None else "",
            result=run_state.results.get(state.agent, {}),
        )
        for state in run_state.agents.values()
        if state.agent != ORCHESTRATOR
    )


def agent_answer(records: Iterable[JournalRecord]) -> str:
    """Return the last words of a run of one agent; empty for every other run, and while there are none."""
    answer, is_agent = "", False
    for record in records:
        if isinstance(record.event, RunStarted):
            is_agent = record.event.single_agent is not None
        elif isinstance(record.event, AgentFinished) and record.event.agent == ORCHESTRATOR:
            answer = record.event.summary.strip()
    return answer if is_agent else ""
