"""Plans, rounds and assessments as data: what waits, what is refused, what is on record, and how runs end by them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from explorer.journal.listing import list_runs, read_records
from explorer.journal.run_state import RunState
from explorer.run.hooks import RunHooks
from explorer.run.run import RunResult, resume, start
from explorer.schema.errors import ConfigError
from explorer.schema.events import AgentStarted, PlanDecided, RoleLoaded, RoundAssessed, ToolFinished
from explorer.schema.messages import JsonObject, Turn
from explorer.schema.plan import Plan, PlanDecision, QuestionProgress, SubQuestion
from explorer.schema.reasons import EndCause
from explorer.schema.settings import Settings
from explorer.testing import ScriptedClient, says
from explorer.text.rendering import without_marks

LIST = ("get_hn_stories", {"story_type": "top", "limit": 30})
REPORT = says("", ("write_file", {"filepath": "report.md", "content": "# Boots\n\nIt boots again from tape [S30].\n"}))
FINISH = says("", ("finish_exploration", {"summary": "It boots."}))
SCOUT = [says("", LIST), says("Thirty stories.")]


def part(question: str = "What boots?", **fields: Any) -> JsonObject:
    """A sub-question as a model plans it."""
    return {"question": question, "sources": ["Hacker News"], "helper": "searcher", "lookups": 3, **fields}


def plans(*questions: JsonObject) -> Turn:
    """A turn that proposes a plan."""
    asked = list(questions or (part(), part("Who says so?")))
    given = {"understanding": "Which machine?", "questions": asked, "enough_when": "Two sources agree."}
    return says("", ("propose_plan", given))


def asks(*ids: str, role: str = "searcher", **more: Any) -> Turn:
    """A turn that calls a helper for each sub-question."""
    return says(
        "",
        *[
            ("call_agent", {"agent_type": role, "task_description": f"Look for {one}.", "question_id": one, **more})
            for one in ids
        ],
    )


def assesses(states: dict[str, str], *, is_interesting: bool = True, further: Sequence[JsonObject] = ()) -> Turn:
    """A turn that assesses a round."""
    questions = [
        {"id": name, "state": state, "finding": "It boots [S30].", "would_settle": f"A photo of {name}."}
        for name, state in states.items()
    ]
    given = {"questions": questions, "is_interesting": is_interesting, "further": list(further)}
    return says("", ("assess_round", given))


def settings_of(folder: Path, **fields: Any) -> Settings:
    """Of a run on the sample day."""
    return Settings(workspace=folder, state_dir=folder / ".state", is_sample=True, shell="off", **fields)


def hooks(lead: Sequence[Turn], **more: Any) -> RunHooks:
    """A scripted orchestrator, and searchers that list stories."""
    return RunHooks(client=ScriptedClient({"orchestrator": lead, "searcher": SCOUT}), run_id="run", **more)


async def ran(folder: Path, lead: Sequence[Turn], **fields: Any) -> RunResult:
    """One session of a run."""
    return await start("What boots?", settings_of(folder, **fields), hooks(lead))


def results(run: RunResult, name: str) -> list[str]:
    """What a model read of each call of a tool, failures with an exclamation mark."""
    events = (record.event for record in read_records(run.folder))
    found = [event for event in events if isinstance(event, ToolFinished) and event.name == name]
    return [("" if event.success else "!") + without_marks(event.content) for event in found]


def events_of(run: RunResult, kind: type) -> list[Any]:
    """The events of one kind."""
    return [record.event for record in read_records(run.folder) if isinstance(record.event, kind)]


async def test_a_plan_waits_before_any_helper_and_the_run_goes_on_with_its_approval(tmp_path: Path) -> None:
    """Waiting is a result and no end: nothing is finished, no report is written, and the time does not count."""
    lead = [plans(), asks("q1", "q2"), REPORT, FINISH]
    waiting = await ran(tmp_path, lead, plan="ask")
    assert (waiting.status, waiting.report, waiting.agents) == ("waiting", None, 1)
    assert waiting.plan is not None
    assert [(one.question.id, one.question.question, one.progress) for one in waiting.plan.questions] == [
        ("q1", "What boots?", QuestionProgress.PLANNED),
        ("q2", "Who says so?", QuestionProgress.PLANNED),
    ]
    assert [one.status for one in list_runs(tmp_path)] == ["waiting"]
    again = await resume(waiting.folder, settings_of(tmp_path), "", hooks(lead))
    assert (again.status, again.agents) == ("waiting", 1)
    done = await resume(waiting.folder, settings_of(tmp_path), "", hooks(lead, plan_decision=PlanDecision.approve()))
    assert (done.status, done.reason) == ("complete", "")
    assert [event.question for event in events_of(done, AgentStarted)] == ["", "q1", "q2"]
    assert done.plan is not None
    assert done.plan.state == "approved"
    assert {one.progress for one in done.plan.questions} == {QuestionProgress.LOOKED_UP}
    assert len(results(done, "propose_plan")) == 1
    assert "What stayed open" not in done.report_text


@pytest.mark.slow
async def test_a_plan_that_waits_is_not_approved_by_other_settings(tmp_path: Path) -> None:
    """Neither where the run was carried to somebody else, whose settings ask for no plan; `auto` approves it."""
    lead = [plans(), asks("q1", "q2"), REPORT, FINISH]
    waiting = await ran(tmp_path, lead, plan="ask")
    elsewhere = Settings(workspace=tmp_path, is_sample=True, shell="off")
    assert (await resume(waiting.folder, elsewhere, "", hooks(lead))).status == "waiting"
    automatic = elsewhere.model_copy(update={"plan": "auto"})
    assert (await resume(waiting.folder, automatic, "", hooks(lead))).status == "complete"


@pytest.mark.slow
async def test_an_edited_plan_is_followed_and_words_ask_for_another_one(tmp_path: Path) -> None:
    """The user's questions get ids; a message to a run that waits is a wish, and a second plan waits again."""
    lead = [plans(), plans(part("How old is it?")), asks("q1"), REPORT, FINISH]
    waiting = await ran(tmp_path, lead, plan="ask")
    second = await resume(waiting.folder, settings_of(tmp_path), "Ask for its age", hooks(lead))
    assert second.status == "waiting"
    assert results(second, "propose_plan")[0].startswith("The user wants another plan: Ask for its age")
    assert second.plan is not None
    old = second.plan.questions[0].question
    edited = Plan(questions=(old, SubQuestion(question="Who owns it?", helper="searcher")))
    decision = PlanDecision.edit(edited)
    wrong = PlanDecision.edit(Plan(questions=(SubQuestion(question="Who?", helper="nobody"),)))
    with pytest.raises(ConfigError, match="names the helper 'nobody'"):
        await resume(waiting.folder, settings_of(tmp_path), "", hooks(lead, plan_decision=wrong))
    done = await resume(waiting.folder, settings_of(tmp_path), "", hooks(lead, plan_decision=decision))
    assert done.status == "complete"
    assert "q2 (searcher): Who owns it?" in results(done, "propose_plan")[1]
    assert [event.verdict for event in events_of(done, PlanDecided)] == ["rejected", "edited"]
    assert "- Who owns it? (not looked up)" in done.report_text.partition("## What stayed open")[2]
    with pytest.raises(ConfigError, match="no plan of this run waits"):
        await resume(waiting.folder, settings_of(tmp_path), "And now?", hooks(lead, plan_decision=decision))


async def test_a_rejected_plan_ends_the_run_without_a_request(tmp_path: Path) -> None:
    """It is partial, the report says why, and a follow-up plans anew."""
    waiting = await ran(tmp_path, [plans()], plan="ask")
    rejected = hooks([plans()], plan_decision=PlanDecision.reject())
    ended = await resume(waiting.folder, settings_of(tmp_path), "", rejected)
    assert (ended.status, ended.cause) == ("partial", EndCause.PLAN_REJECTED)
    assert (ended.reason, ended.steps) == ("the plan was rejected", 1)
    assert "The plan was rejected." in ended.report_text
    further = hooks([plans(), plans(part("How old?")), says("never")])
    again = await resume(waiting.folder, settings_of(tmp_path), "Only its age", further)
    assert again.status == "waiting"
    assert again.plan is not None
    assert [one.question.question for one in again.plan.questions] == ["How old?"]


@pytest.mark.slow
async def test_helpers_wait_for_the_plan_and_name_its_questions(tmp_path: Path) -> None:
    """Each refusal says what to do; `auto` approves at once; the first round takes all sub-questions together."""
    lead = [
        asks("q1"),
        plans(part()),
        plans(part(helper="writer"), part()),
        plans(),
        plans(),
        asks(""),
        asks("q1"),
        asks("q1", "q2"),
        asks("q2"),
        asks("q2"),
        REPORT,
        FINISH,
    ]
    run = await ran(tmp_path, lead, plan="auto", initial_queries=2, max_rounds=2)
    assert run.status == "complete"
    assert [one.partition("\n")[0] for one in results(run, "propose_plan")] == [
        "!this run wants 2 sub-questions, and the plan has 1",
        "!sub-question 1 names the helper 'writer'; there are: analyzer, searcher",
        "The plan is approved. Its sub-questions:",
        "!the plan is approved; continue with it",
    ]
    refused = [one for one in results(run, "call_agent") if one.startswith("!")]
    assert refused == [
        "!no plan is approved yet: call propose_plan first",
        "!say in `question_id` which sub-question it works on: q1, q2",
        "!the first round looks up all sub-questions at the same time: call helpers for q2 in the same turn, too",
        "!refused: no further round, 2 were made; have the report written from what there is, then finish",
    ]
    assert [event.question for event in events_of(run, AgentStarted)] == ["", "q1", "q2", "q2"]
    assert [event.is_automatic for event in events_of(run, PlanDecided)] == [True]


@pytest.mark.slow
async def test_each_round_is_assessed_and_the_report_ends_with_what_stayed_open(tmp_path: Path) -> None:
    """An assessment has each open sub-question and what would settle it; what the journal knows is added to it."""
    lead = [
        plans(),
        asks("q1"),
        asks("q2"),
        assesses({"q1": "answered"}),
        assesses({"q1": "answered", "q9": "open"}),
        assesses({"q1": "answered", "q2": "contradicted"}, further=[part("How old is it [S1]?")]),
        asks("q2", "q3"),
        REPORT,
        FINISH,
        assesses({"q2": "answered", "q3": "open"}),
        FINISH,
    ]
    run = await ran(tmp_path, lead, reflect="on")
    assert run.status == "complete"
    assert [one for one in results(run, "assess_round") if one.startswith("!")] == [
        "!assess these sub-questions, too: q2",
        "!no sub-question has the id q9; there are: q1, q2",
    ]
    assert [one for one in results(run, "call_agent") if one.startswith("!")] == [
        "!assess the round before you continue: call assess_round"
    ]
    assert results(run, "finish_exploration")[0] == "!assess the round before you continue: call assess_round"
    first, second = events_of(run, RoundAssessed)
    assert (first.number, second.number, len(first.new_sources), second.new_sources) == (1, 2, 30, ())
    assert run.plan is not None
    facts = {one.question.id: (one.progress, one.helpers) for one in run.plan.questions}
    assert facts == {
        "q1": (QuestionProgress.ANSWERED, ("searcher-1",)),
        "q2": (QuestionProgress.ANSWERED, ("searcher-2",)),
        "q3": (QuestionProgress.OPEN, ("searcher-3",)),
    }
    body, _, last = run.report_text.partition("## References")
    assert body.rstrip().endswith(
        "## What stayed open\n\n- How old is it ? (open). What would settle it: A photo of q3."
    )
    assert "S30" in last


@pytest.mark.slow
async def test_rounds_without_anything_of_interest_end_the_run_normally(tmp_path: Path) -> None:
    """It is `nothing_found`, without a writer and without a further request; after a finding, a report is asked for."""
    dull = assesses({"q1": "open"}, is_interesting=False)
    lead = [plans(part()), asks("q1"), dull, asks("q1"), dull]
    run = await ran(tmp_path / "a", lead, max_empty_rounds=2)
    assert (run.status, run.reason) == ("nothing_found", "2 rounds in a row found nothing of interest")
    assert run.steps == 9
    assert "Nothing of interest was found: 2 rounds in a row found nothing of interest." in run.report_text
    assert "## What stayed open\n\n- What boots? (open)" in run.report_text
    found = assesses({"q1": "open"})
    lead = [plans(part()), asks("q1"), found, asks("q1"), dull, asks("q1"), REPORT, FINISH]
    run = await ran(tmp_path / "b", lead, max_empty_rounds=1)
    assert run.status == "complete"
    assert results(run, "call_agent")[-1].startswith("!refused: no further round, 2 were made")


async def test_nothing_changes_where_nothing_is_asked_for(tmp_path: Path) -> None:
    """Neither tool is offered, no task names a sub-question, and no event of a plan is recorded."""
    ask = ("call_agent", {"agent_type": "searcher", "task_description": "Look."})
    run = await ran(tmp_path, [says("", ask), REPORT, FINISH])
    assert (run.status, run.plan) == ("complete", None)
    (lead, _) = events_of(run, RoleLoaded)
    names = {tool.name: tool for tool in lead.tools}
    assert names.keys().isdisjoint({"propose_plan", "assess_round"})
    assert "question_id" not in names["call_agent"].parameters["properties"]
    state = RunState.of_records(read_records(run.folder))
    assert state.plan.summary() is None


async def test_more_questions_at_once_than_helpers_are_refused_before_the_run(tmp_path: Path) -> None:
    """The error says how many there are."""
    limits = settings_of(tmp_path).limits.model_copy(update={"max_agents": 3})
    with pytest.raises(ConfigError, match="3 sub-questions at the same time need 3 helpers, and 2 are allowed"):
        await ran(tmp_path, [], initial_queries=3, limits=limits)
    assert list_runs(tmp_path) == []
