"""The command `verify`: which cited sentences of a run's report their stored sources carry.

The words that answered the latest follow-up are checked as a report is.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.runs_at_hand import RunName, run_at_hand
from explorer.cli.screens.output import emit_json, emit_page, say
from explorer.cli.settings.configuration import configured, passed_over
from explorer.cli.settings.options import COMMON, MODELS, CommonOptions
from explorer.journal.listing import LATEST, read_records
from explorer.journal.run_state import JUDGE, RunState
from explorer.llm.clients import Clients
from explorer.llm.retry import FailedAttempt, RetryingClient
from explorer.observe.formatting import counted, money, one_line, tokens
from explorer.observe.run_origin import run_origin
from explorer.reports.verify.check import check
from explorer.reports.verify.claims import Claim, Judgements, TextOf, Verdict, Verification, judge, without_uncited
from explorer.reports.verify.results import claim_rows, draft_of, text_reader, write_results
from explorer.reports.verify.soundness import Flaw, FlawKind, flaws
from explorer.run.finish import written_report
from explorer.run.settings_parts import model_setup
from explorer.run.team import choose_judge, with_servers
from explorer.schema.errors import StorageError, ToolError
from explorer.schema.events import Status
from explorer.schema.messages import JsonObject, LLMClient
from explorer.schema.settings import Settings
from explorer.workspace.workspace import Workspace

SUBJECT = "the answer"


@dataclass(frozen=True)
class AnswerCheck:
    """What was found out about an answer in words."""

    verification: Verification
    flaws: tuple[Flaw, ...]

    @property
    def is_wrong(self) -> bool:
        """Whether it may not be relied on."""
        return bool(self.verification.faults or self.flaws)

    @property
    def facts(self) -> JsonObject:
        """Return the check as JSON for programs."""
        shown = [{"kind": str(flaw.kind), "reason": flaw.reason(SUBJECT)} for flaw in self.flaws]
        return {"counts": self.verification.counts, "uncited": len(self.verification.uncited), "flaws": shown}

    @property
    def page(self) -> str:
        """Return the page for people: the verdicts in one line, then what is wrong."""
        counts = self.verification.counts
        verdicts = [
            f"{number} {name.replace('_', ' ')}" for name, number in counts.items() if name != "total" and number
        ]
        words = ", ".join(verdicts) or "none"
        lines = [f"The latest answer, given as text: {counted(counts['total'], 'cited sentence')} ({words})"]
        lines += [f"  {one_line(claim.sentence, 300)}" for claim in self.verification.faults]
        return "\n".join([*lines, *(f"Wrong: {one_line(flaw.reason(SUBJECT), 300)}" for flaw in self.flaws)])


def check_answer(run_state: RunState, text_of: TextOf) -> AnswerCheck | None:
    """Check the words that ended the run's latest session; None where its report is the answer."""
    lead = run_state.lead
    if run_state.finished is None or not run_state.finished.answer or lead is None or lead.finished is None:
        return None
    words = lead.finished.summary
    verification = check(words, run_state.sources, text_of)
    return AnswerCheck(verification, flaws(words, run_state.sources, text_of, verification, run_state.asked))


WRONG = 1
SAY_NOTHING = frozenset({Status.NOTHING_FOUND, Status.SOURCES_UNAVAILABLE, Status.FAILED})
"""Ends of runs whose report has no answer in it."""
LABELS = {
    Verdict.SUPPORTED: "every quote and figure is in a cited source",
    Verdict.NOT_FOUND: "something is in no cited source",
    Verdict.ELSEWHERE: "a source has it, but says it of something else or the other way round",
    Verdict.SOURCE_MISSING: "no stored text to look in",
    Verdict.UNCHECKED: "nothing that could be looked up",
}


def verify(
    run: RunName = LATEST,
    /,
    *,
    is_all: Annotated[bool, Parameter(name="--all", help="Show every cited sentence, not only what is wrong.")] = False,
    judge_model: Annotated[
        str | None,
        Parameter(
            name="--judge", group=MODELS, help="A model that also judges whether the sources support each sentence."
        ),
    ] = None,
    options: CommonOptions = COMMON,
) -> int:
    """Look the quotes and figures of a report up in the stored texts of the sources it cites, without any model.

    A program cannot decide whether a text means what the sentence says; `--judge` asks a model for its opinion.

    The answer to the latest follow-up is checked too, where it was given as text.

    Exit code 0: nothing wrong was found; 1: something was not found, a source is missing, or references lead nowhere.

    Example: `explorer verify latest --all`
    """
    settings = configured(options, passed_over).settings
    with run_at_hand(settings, run) as folder:
        return _verify(folder, settings, judge_model, options, is_all=is_all)


def _verify(folder: Path, settings: Settings, judge_model: str | None, options: CommonOptions, *, is_all: bool) -> int:
    run_state = RunState.of_records(read_records(folder))
    workspace = Workspace(folder)
    draft, text_of = draft_of(workspace), text_reader(workspace)
    verification, found = _checked(run_state, draft.text, workspace)
    model = settings.judge if judge_model is None else judge_model
    judged = asyncio.run(_judged(verification.claims, text_of, settings, model)) if model else None
    try:
        write_results(workspace, draft, run_state.sources, verification, judged)
    except (StorageError, ToolError, OSError) as error:
        say(f"the results could not be kept in the run's folder: {error}")
    answer = check_answer(run_state, text_of)
    origin = run_origin(folder, settings.state_dir)
    if options.output_format == "text":
        page = _page(folder, draft.path, verification, judged, is_all=is_all)
        emit_page("\n\n".join(filter(None, [page, *map(_flaw_line, found), answer.page if answer else "", origin])))
        if not is_all and not options.quiet and verification.claims:
            say(f"  → every cited sentence: explorer verify {folder.name} --all")
    else:
        flaws_found = [{"kind": str(flaw.kind), "reason": flaw.reason()} for flaw in found]
        more = {"flaws": flaws_found, "answer": answer.facts if answer else None, "carried": bool(origin)}
        emit_json(_facts(folder, draft.path, verification, judged) | more)
    return WRONG if verification.faults or found or (answer is not None and answer.is_wrong) else 0


def _checked(run_state: RunState, draft: str, workspace: Workspace) -> tuple[Verification, list[Flaw]]:
    """Check a report; one that the engine wrote in the place of a missing one needs no citations."""
    text_of = text_reader(workspace)
    verification = check(draft, run_state.sources, text_of)
    is_unfinished = not written_report(run_state, workspace)
    if is_unfinished:
        verification = without_uncited(verification)
    found = _flaws(run_state, draft, text_of, verification)
    return verification, [flaw for flaw in found if not (is_unfinished and flaw.kind is FlawKind.UNCITED)]


def _flaws(run_state: RunState, draft: str, text_of: TextOf, verification: Verification) -> list[Flaw]:
    """Return what is wrong with the report as a whole; a report on finding nothing needs no citation."""
    is_empty = run_state.finished is not None and run_state.finished.status in SAY_NOTHING
    found = flaws(draft, run_state.sources, text_of, verification, run_state.asked)
    return [flaw for flaw in found if not (is_empty and flaw.kind is FlawKind.UNCITED)]


def _flaw_line(flaw: Flaw) -> str:
    return f"Wrong: {one_line(flaw.reason(), 300)}"


async def _judged(claims: Sequence[Claim], text_of: TextOf, settings: Settings, model: str) -> Judgements:
    async with open_judge(settings, model) as (client, name):
        return await judge(claims, text_of, client, name)


@asynccontextmanager
async def open_judge(settings: Settings, model: str) -> AsyncGenerator[tuple[LLMClient, str]]:
    """Open the client of a model that is to judge, with its retries, and yield it with the model's own name.

    Raises:
        ConfigError: The model cannot be used.
        CredentialsError: Its key is missing.
    """
    choice = await choose_judge(settings.model_copy(update={"judge": model}))
    ref = choice.models[JUDGE]
    async with Clients(model_setup(with_servers(settings, choice.found))) as clients:
        await clients.open([ref])
        yield (
            RetryingClient(clients.client_for(ref), clients.gate_for(ref), _say_failure, timing=clients.timing),
            ref.name,
        )


async def _say_failure(failed: FailedAttempt) -> None:
    if failed.waits_s is not None:
        words = f"the judge did not answer ({one_line(failed.error.message)})"
        say(f"{words}; attempt {failed.number + 1} in {failed.waits_s:.0f}s")


def _facts(folder: Path, path: str, verification: Verification, judged: Judgements | None) -> JsonObject:
    rows = claim_rows(verification, judged)
    cited = len(verification.claims)
    opinions: JsonObject | None = None
    if judged is not None:
        opinions = {"model": judged.model, **judged.counts, "problem": judged.problem, "cost_usd": judged.cost_usd}
        opinions["agreement"] = dict(judged.agreement(verification.claims))
    return {
        "run_id": folder.name,
        "file": path,
        "counts": verification.counts,
        "judged": opinions,
        "claims": rows[:cited],
        "uncited": rows[cited:],
    }


def _page(folder: Path, path: str, verification: Verification, judged: Judgements | None, *, is_all: bool) -> str:
    counts = verification.counts
    blocks = [f"{path} of {folder.name}: {counted(counts['total'], 'cited sentence')}, of which", _table(verification)]
    if judged is not None:
        blocks.append(_opinions(judged, verification.claims))
    shown = list(zip(verification.claims, _answers(verification, judged), strict=True))
    if not is_all:
        shown = [(claim, answer) for claim, answer in shown if claim in verification.faults]
    blocks += [_entry(claim, answer) for claim, answer in shown]
    if is_all:
        blocks += [_entry(claim, "") for claim in verification.uncited]
    return "\n\n".join(blocks)


def _answers(verification: Verification, judged: Judgements | None) -> list[str]:
    if judged is None:
        return [""] * len(verification.claims)
    return ["not asked" if answer is None else str(answer).replace("_", " ") for answer in judged.answers]


def _table(verification: Verification) -> str:
    counts = verification.counts
    rows = [(str(verdict).replace("_", " "), counts[str(verdict)], words) for verdict, words in LABELS.items()]
    rows.append(("uncited", len(verification.uncited), "a quote or a figure, and no citation; not counted above"))
    return "\n".join(f"  {name:<15}{number:>4}  {words}" for name, number, words in rows)


def _opinions(judged: Judgements, claims: Sequence[Claim]) -> str:
    counts = judged.counts
    counts_line = f"  carried {counts['carried']}, not carried {counts['not_carried']}, unclear {counts['unclear']}"
    spent = f"{money(judged.cost_usd)}, {tokens(judged.usage.total_tokens)} tokens"
    ended = f"\n  ended early: {one_line(judged.problem)}" if judged.problem else ""
    agreed = judged.agreement(claims)
    same = f"\n  agrees with the rules in {agreed['agreed']} of {agreed['compared']} sentences that both decide"
    return f"What {one_line(judged.model)} says, which is an opinion ({spent}):\n{counts_line}{same}{ended}"


def _entry(claim: Claim, answer: str) -> str:
    ids = ", ".join(claim.ids) or "no source"
    verdict = "uncited" if not claim.ids else str(claim.verdict).replace("_", " ")
    lines = [f"line {claim.line}, {ids}: {verdict}", f"  {one_line(claim.sentence, 300)}"]
    finding_lines = [
        f"  {one.verdict.replace('_', ' ')}: “{one_line(one.text, 120)}”, {one.reason}" for one in claim.findings
    ]
    lines += [one_line_kept(line) for line in finding_lines]
    if not claim.findings and claim.ids:
        lines.append(f"  {one_line(claim.reason)}")
    elif claim.verdict is Verdict.SOURCE_MISSING:
        lines.append(f"  {one_line(claim.reason, 300)}")
    if answer:
        lines.append(f"  judged: {answer}")
    return "\n".join(lines)


def one_line_kept(line: str) -> str:
    """Return a line as one line, with its indentation."""
    return f"  {one_line(line)}"
