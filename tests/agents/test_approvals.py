"""Calls under approval rules: asked before they begin, asked once, and never begun without an answer."""

import asyncio
from pathlib import Path

import pytest
from pydantic import ConfigDict

from engine_stage import Doing, Recorder, call_room, external, started
from explorer.agents.approvals import Approvals
from explorer.agents.tool_calls import execute_calls
from explorer.agents.user_stop import StopEvent
from explorer.journal.run_state import RunState
from explorer.schema.approvals import Approval, ApprovalRequest, ApprovalRules
from explorer.schema.errors import RefusedCallError
from explorer.schema.events import (
    ApprovalAnswer,
    ApprovalDecided,
    CarriedRun,
    RunForked,
    RunStarted,
    SessionConfigured,
    ToolFinished,
    ToolStarted,
    TurnTaken,
)
from explorer.schema.reasons import ErrorCode
from explorer.schema.tool import Arguments, Tool, ToolContext
from explorer.testing import says
from explorer.workspace.workspace import Workspace

YES = Approval(is_allowed=True)


class User:
    """Answers requests, and keeps them."""

    def __init__(self, *answers: Approval | bool | None) -> None:
        self.answers = [*answers]
        self.asked: list[ApprovalRequest] = []

    async def __call__(self, request: ApprovalRequest) -> Approval | bool | None:
        """Give the next answer."""
        self.asked.append(request)
        return self.answers.pop(0)


def calls_of(*words: str) -> Recorder:
    """An agent whose turn calls `doing` with these words."""
    turn = says("", *[("doing", {"words": one}) for one in words])
    return Recorder([started(), TurnTaken(agent="searcher-1", turn=turn, seconds=0.0)])


async def work(
    recorder: Recorder, tool: Tool, user: User | None, folder: Path, *rules: str, stop: StopEvent | None = None
) -> None:
    """Answer the calls of the turn under rules."""
    approvals = Approvals(ApprovalRules.of(rules, ()), recorder.run_state, recorder.record, stop or StopEvent(), user)
    await execute_calls(recorder.state(), call_room(recorder, [approvals.guard(tool)], Workspace(folder)))


async def test_a_call_begins_after_its_answer(tmp_path: Path) -> None:
    """Yes runs it, no tells the agent why; the answer is on record before the call begins."""
    recorder, tool = calls_of("a", "b", "c"), external("doing")
    user = User(YES, Approval(is_allowed=False, words="use the archive"))
    await work(recorder, tool, user, tmp_path, "allow doing(c)", "ask doing")
    assert tool.runs == ["a", "c"]
    assert [(one.arguments, one.rule, one.agent) for one in user.asked] == [
        ({"words": "a"}, "ask doing", "searcher-1"),
        ({"words": "b"}, "ask doing", "searcher-1"),
    ]
    kinds = [type(event) for event in recorder.events[2:] if getattr(event, "call", "") == "searcher-1.t1.1"]
    assert kinds == [ApprovalDecided, ToolStarted, ToolFinished]
    refused = next(one for one in recorder.of_type(ToolFinished) if one.call == "searcher-1.t1.2")
    assert (refused.success, refused.data) == (False, {"code": ErrorCode.DENIED})
    assert "the user refused it. The user says: use the archive" in refused.content


async def test_always_holds_for_the_tool_and_the_rule(tmp_path: Path) -> None:
    """Calls that wait for their turn to be asked about take the answer too; another rule asks again."""
    recorder, tool = calls_of("a", "b", "odd"), Doing()
    user = User(Approval(is_allowed=True, for_run=True), Approval(is_allowed=False))
    await work(recorder, tool, user, tmp_path, "ask doing(odd)", "ask doing")
    assert [one.arguments["words"] for one in user.asked] == ["a", "odd"]
    assert sorted(tool.runs) == ["a", "b"]


async def test_without_anybody_to_ask_the_answer_is_no(tmp_path: Path) -> None:
    """The agent reads why, and what to do; the record says that nobody was asked."""
    recorder, tool = calls_of("a"), Doing()
    await work(recorder, tool, None, tmp_path, "ask doing")
    (decided,) = recorder.of_type(ApprovalDecided)
    assert (tool.runs, decided.answer) == ([], ApprovalAnswer.UNASKED)
    assert "the user's rule ask doing asks for approval, and no one is here" in recorder.results()[0]


async def test_a_killed_question_is_asked_again_and_an_answer_is_not(tmp_path: Path) -> None:
    """At whatever record the process ends, a resumed run asks only what has no answer, and runs the call once."""
    whole, tool = calls_of("a"), external("doing")
    await work(whole, tool, User(YES), tmp_path, "ask doing")
    for kept, asked, runs in ((2, 1, 1), (3, 0, 1), (4, 0, 0), (5, 0, 0)):
        again, tool, user = Recorder(whole.events[:kept]), external("doing"), User(YES)
        if kept < len(whole.events):
            await work(again, tool, user, tmp_path, "ask doing")
        assert (len(user.asked), len(tool.runs)) == (asked, runs), kept


async def test_an_end_while_asking_leaves_the_question_open(tmp_path: Path) -> None:
    """A cancelled run has no answer on record, and a stopped one tells the agent so."""
    hangs = asyncio.Event()

    class Silent(User):
        async def __call__(self, request: ApprovalRequest) -> bool:
            hangs.set()
            await asyncio.Event().wait()
            raise AssertionError(request)

    recorder, tool, stop = calls_of("a"), Doing(), StopEvent()
    task = asyncio.ensure_future(work(recorder, tool, Silent(), tmp_path, "ask doing"))
    await hangs.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(recorder.events) == 2
    hangs.clear()
    task = asyncio.ensure_future(work(recorder, tool, Silent(), tmp_path, "ask doing", stop=stop))
    await hangs.wait()
    stop.ask()
    await task
    assert (tool.runs, recorder.of_type(ApprovalDecided)) == ([], [])
    assert "the run is being stopped" in recorder.results()[0]


async def test_a_question_may_take_longer_than_the_tool(tmp_path: Path) -> None:
    """The time limit of a tool begins with its call."""

    class Slow(User):
        async def __call__(self, request: ApprovalRequest) -> bool:
            await asyncio.sleep(0.05)
            return bool(request)

    recorder, tool = calls_of("a"), Doing(timeout_s=0.03)
    await work(recorder, tool, Slow(), tmp_path, "ask doing")
    assert tool.runs == ["a"]


def test_answers_of_another_run_do_not_count() -> None:
    """What a carried journal says was always allowed is asked about again, and in a fork of a run, too."""
    decided = ApprovalDecided(agent="x", call="x.t1.1", name="doing", rule="ask doing", answer=ApprovalAnswer.RUN)
    carried = SessionConfigured(
        models={}, search=(), search_why="", shell="", shell_why="", limits={}, carried=CarriedRun(not_taken={})
    )
    run = calls_of("a")
    for event in (decided, carried):
        run.run_state.apply(event)
    assert run.run_state.approval_of("x.t2.1", "doing", "ask doing") is None
    begun = RunStarted(run_id="a", question="q", engine="0", settings={})
    own = RunState.of([begun, *run.events, decided])
    assert own.approval_of("x.t2.1", "doing", "ask doing") == decided
    assert own.approval_of("x.t2.1", "other", "ask doing") is None
    own.apply(RunForked(run_id="b", of="a", shared=4))
    assert own.approval_of("x.t2.1", "doing", "ask doing") is None


def test_a_guarded_tool_is_the_tool_in_all_else() -> None:
    """Schema and properties are the same, and a tool that no rule can refuse is not wrapped."""
    tool = Doing(effect="checked", is_for_report=True, timeout_s=7.0)
    recorder = calls_of("a")
    rules = ApprovalRules.of(("ask doing", "allow other"), ())
    approvals = Approvals(rules, recorder.run_state, recorder.record, StopEvent())
    guarded, other = approvals.guard(tool), Doing("other")
    assert guarded is not tool
    assert approvals.guard(other) is other
    assert guarded.schema() == tool.schema()
    ready = guarded.with_defaults({"words": "x"})
    assert ready.schema() == tool.with_defaults({"words": "x"}).schema()
    assert vars(ready.parse({})) == {"words": "x"}
    assert type(ready) is type(guarded)
    for name in Tool.__annotations__:
        assert getattr(guarded, name) == getattr(tool, name)


async def test_a_model_does_not_choose_which_argument_is_the_first(tmp_path: Path) -> None:
    """A pattern without a name is for the first argument of the schema, in whatever order a call gives them."""

    class Open(Arguments):
        model_config = ConfigDict(extra="allow")

    remote = Doing()
    remote.arguments = Open
    properties = {"words": {"type": "string"}, "more": {"type": "string"}}
    remote.parameters = {"type": "object", "properties": properties}
    approvals = Approvals(ApprovalRules.of(("deny doing(secret)",), ()), RunState(), Recorder().record, StopEvent())
    context = ToolContext(Workspace(tmp_path))
    with pytest.raises(RefusedCallError):
        await approvals.permit(remote, Open.model_validate({"more": "x", "words": "secret"}), context)
    await approvals.permit(remote, Open.model_validate({"more": "secret", "words": "x"}), context)
    await approvals.permit(remote, Open.model_validate({"more": "secret"}), context)
