import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine_stage import Doing, Recorder, agent_room, contents, external, started, tools_over
from explorer.agents.loop import run_agent
from explorer.agents.policies import _STOPS, MAX_PAUSES, REFUSE_REPEATS
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.events import (
    AgentContinued,
    AgentFinished,
    AnyEvent,
    Compacted,
    NoteAdded,
    Status,
    Steered,
    ToolFinished,
    ToolStarted,
    TurnTaken,
)
from explorer.schema.messages import JsonObject, LLMClient, Request, Results, StopKind, ToolCall, Turn, Usage, UserText
from explorer.schema.reasons import EndCause
from explorer.schema.settings import Limits
from explorer.schema.tool import INTERRUPTED, Tool
from explorer.testing import Script, ScriptedClient, says
from explorer.workspace.workspace import Workspace

Calls = tuple[tuple[str, JsonObject], ...]
NO_CALLS: Calls = ()
ONE_CALL: Calls = (("doing", {}),)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@dataclass
class Run:
    """One agent's run: what it was made of, and what came of it."""

    workspace: Workspace
    script: Sequence[Turn] | Script
    tools: list[Tool] = field(default_factory=list[Tool])
    limits: Limits = field(default_factory=Limits)
    recorder: Recorder = field(default_factory=lambda: Recorder([started()]))
    client: ScriptedClient | None = None

    async def finish(self) -> AgentFinished:
        """Take the agent to its end."""
        self.client = ScriptedClient({"searcher": self.script})
        tools = [*tools_over(self.workspace), *self.tools]
        context = agent_room(self.client, self.recorder, tools, self.workspace, self.limits)
        return await run_agent(self.recorder.state(), context)

    @property
    def notes(self) -> list[str]:
        """The kinds of notes given."""
        return [event.reason for event in self.recorder.of_type(NoteAdded)]

    @property
    def asked(self) -> int:
        """How many requests were made."""
        assert self.client is not None
        return len(self.client.requests)


def repeating(turn: Turn) -> Script:
    """A model that says the same for ever."""
    return lambda _request: turn


async def test_a_task_with_tools_from_start_to_end(workspace: Workspace) -> None:
    """Ask, run, tell, ask: the model sees its task, then its own turns and their results, and its last words count."""
    tool = Doing()
    run = Run(workspace, [says("I look.", ("doing", {"words": "it"})), says("Found it. "), says("too much")], [tool])
    ended = await run.finish()
    assert ended == AgentFinished(
        agent="searcher-1",
        status=Status.COMPLETE,
        reason="answered",
        summary="Found it.",
        cause=EndCause.ANSWERED,
    )
    assert run.client is not None
    first, second = run.client.requests
    assert first.history == (UserText(text="look"),)
    assert (first.system, first.agent, first.role, first.max_output_tokens) == (
        "Search.",
        "searcher-1",
        "searcher",
        4_096,
    )
    assert [type(message).__name__ for message in second.history] == ["UserText", "Turn", "Results"]
    assert second.history[:1] == first.history
    assert [type(event).__name__ for event in run.recorder.events] == [
        "AgentStarted", "TurnTaken", "ToolStarted", "ToolFinished", "TurnTaken", "AgentFinished",
    ]  # fmt: skip
    assert await run.finish() == ended
    assert run.asked == 0


def test_every_stop_has_a_consequence() -> None:
    """The table is total: a new kind of stop must be decided on."""
    assert set(_STOPS) == set(StopKind)


@pytest.mark.parametrize("stop", [StopKind.END, StopKind.TOOL_USE])
async def test_words_without_calls_are_the_answer(workspace: Workspace, stop: StopKind) -> None:
    """Whether the vendor calls it an end or a use of tools without tools."""
    ended = await Run(workspace, [says("All of it.", stop=stop)]).finish()
    assert (ended.status, ended.reason, ended.summary) == (Status.COMPLETE, "answered", "All of it.")


async def test_complete_calls_are_run_even_when_the_vendor_says_end(workspace: Workspace) -> None:
    """A call with `end` beside it is meant to be run."""
    tool = Doing()
    run = Run(workspace, [says("", ("doing", {}), stop=StopKind.END), says("Done.")], [tool])
    assert (await run.finish()).status is Status.COMPLETE
    assert tool.runs == [""]


async def test_a_cut_reply_runs_nothing_and_answers_its_calls(workspace: Workspace) -> None:
    """None of the calls of a reply cut at its length limit is run, the whole ones neither; the model is told."""
    tool = Doing()
    cut = says("I", ("doing", {"words": "whole"}), ("doing", {}), stop=StopKind.MAX_TOKENS)
    run = Run(workspace, [cut, says("", ("doing", {"words": "smaller"})), says("Done.")], [tool])
    assert (await run.finish()).status is Status.COMPLETE
    assert tool.runs == ["smaller"]
    results = run.recorder.state().messages[2]
    assert isinstance(results, Results)
    assert [result.is_error for result in results.results] == [True, True]
    assert all("cut at its length limit" in result.content for result in results.results)
    assert run.recorder.of_type(ToolStarted)[0].call == "searcher-1.t2.1"


async def test_replies_cut_again_and_again_end_the_agent(workspace: Workspace) -> None:
    """Two chances to be shorter, with or without calls, then what is there counts."""
    ended = await (run := Run(workspace, repeating(says("So long", stop=StopKind.MAX_TOKENS)))).finish()
    assert (ended.status, ended.summary, run.asked) == (Status.PARTIAL, "So long", 3)
    assert run.notes == ["cut_reply", "cut_reply"]
    calling = Run(workspace, repeating(says("", ("doing", {}), stop=StopKind.MAX_TOKENS)), [Doing()])
    calling.recorder = Recorder([started()])
    ended = await calling.finish()
    assert (ended.status, calling.asked) == (Status.PARTIAL, 6)


async def test_a_pause_is_sent_back_as_it_is_and_bounded(workspace: Workspace) -> None:
    """The paused turn goes back verbatim with nothing after it; a provider that pauses for ever is left."""
    pause = says("thinking", stop=StopKind.PAUSE)
    run = Run(workspace, [pause, pause, says("Answer.")])
    assert (await run.finish()).summary == "Answer."
    assert run.client is not None
    assert run.client.requests[2].history[1:] == (pause, pause)
    endless = Run(workspace, repeating(pause))
    ended = await endless.finish()
    assert (ended.status, endless.asked) == (Status.PARTIAL, MAX_PAUSES)
    assert "paused 5 times" in ended.reason


@pytest.mark.parametrize("calls", [NO_CALLS, ONE_CALL], ids=["words", "calls"])
async def test_a_refusal_is_asked_about_once(workspace: Workspace, calls: Calls) -> None:
    """With or without calls nothing of the turn is run; a second refusal ends the agent with the vendor's word."""
    tool = Doing()
    no = says("I cannot", *calls, stop=StopKind.REFUSAL).model_copy(update={"stop_detail": "policy"})
    run = Run(workspace, [no, says("But this.")], [tool])
    assert ((await run.finish()).summary, run.notes) == ("But this.", ["declined"])
    refusing = Run(workspace, repeating(no), [tool], recorder=Recorder([started()]))
    ended = await refusing.finish()
    assert (ended.status, ended.reason, ended.summary) == (Status.FAILED, "the model declined: policy", "I cannot")
    assert (refusing.asked, tool.runs) == (2, [])
    assert refusing.recorder.state().open_turn is None


@pytest.mark.parametrize("calls", [NO_CALLS, ONE_CALL], ids=["words", "calls"])
async def test_an_unknown_stop_ends_the_agent_loudly(workspace: Workspace, calls: Calls) -> None:
    """Nothing of the turn is run, nothing more is asked, and the vendor's word is shown; words there are are kept."""
    tool = Doing()
    for text, status in (("So far this", Status.PARTIAL), ("", Status.FAILED)):
        odd = says(text, *calls, stop=StopKind.UNKNOWN).model_copy(update={"stop_detail": "vanished"})
        ended = await (run := Run(workspace, [odd], [tool])).finish()
        assert (ended.status, ended.summary, run.asked, tool.runs) == (status, text, 1, [])
        assert ended.reason == "the model stopped for a reason unknown here: vanished"


async def test_an_empty_reply_is_nudged_once(workspace: Workspace) -> None:
    """One chance to say something; a second empty reply is a failure, as is blank text."""
    run = Run(workspace, [says(""), says("Found.")])
    assert ((await run.finish()).summary, run.notes) == ("Found.", ["empty_reply"])
    silent = Run(workspace, [says(""), says(" \n")])
    ended = await silent.finish()
    assert (ended.status, ended.reason) == (Status.FAILED, "the model twice replied with nothing")


async def test_steps_run_out_after_a_warning(workspace: Workspace) -> None:
    """Two turns before the end the agent is told; at the end its last words count, and no request is made beyond."""

    def go_on(request: Request) -> Turn:
        number = sum(isinstance(message, Turn) for message in request.history)
        return says(f"Turn {number}.", ("doing", {"words": str(number)}))

    run = Run(workspace, go_on, [Doing()], recorder=Recorder([started(max_steps=5)]))
    ended = await run.finish()
    assert (ended.status, ended.summary, run.asked) == (Status.PARTIAL, "Turn 4.", 5)
    assert ended.reason.startswith("step limit")
    assert run.notes == ["wrap_up"]
    assert run.client is not None
    assert "You have 2 turns left" in str(run.client.requests[3].history[-1])
    short = Run(workspace, [says("One.")], recorder=Recorder([started(max_steps=1)]))
    assert ((await short.finish()).status, short.notes) == (Status.COMPLETE, [])


KEPT_FAILING = "tool calls kept failing: no_such_tool: there is no tool called 'no_such_tool'"


async def test_errors_in_a_row_are_noted_then_end_it(workspace: Workspace) -> None:
    """Three turns of nothing but errors bring a note, six the end; one success starts the count anew."""
    wrong = says("I try.", ("no_such_tool", {}))
    run = Run(workspace, repeating(wrong))
    ended = await run.finish()
    assert (ended.status, ended.reason, ended.summary) == (Status.PARTIAL, KEPT_FAILING, "I try.")
    assert (run.asked, run.notes) == (6, ["errors", "repeating"])
    mixed = says("", ("no_such_tool", {}), ("doing", {}))
    recovered = Run(workspace, [wrong, wrong, mixed, wrong, wrong, says("Done.")], [Doing()])
    assert (await recovered.finish()).status is Status.COMPLETE
    assert "errors" not in recovered.notes


async def test_an_agent_that_kept_failing_can_be_given_a_further_task(workspace: Workspace) -> None:
    """Counts of errors and repetitions are of one task: the next one starts fresh."""
    run = Run(workspace, repeating(says("", ("no_such_tool", {}))))
    await run.finish()
    run.recorder = Recorder([*run.recorder.events, AgentContinued(agent="searcher-1", task="again", max_steps=5)])
    run.script = repeating(says("Now it works."))
    ended = await run.finish()
    assert (ended.status, ended.summary, run.asked) == (Status.COMPLETE, "Now it works.", 1)


async def test_the_same_call_with_the_same_result_is_noted_then_refused(workspace: Workspace) -> None:
    """Three times bring a note, after five the call is refused with the reason; other arguments are another call."""

    def stubborn(request: Request) -> Turn:
        taken = sum(isinstance(message, Turn) for message in request.history)
        return says("Enough.") if taken == 7 else says("", ("doing", {"words": "x"}), ("doing", {"words": f"{taken}"}))

    tool = Doing()
    run = Run(workspace, stubborn, [tool])
    await run.finish()
    assert tool.runs.count("x") == REFUSE_REPEATS
    assert len(tool.runs) == REFUSE_REPEATS + 7
    refused = [event.content for event in run.recorder.of_type(ToolFinished) if not event.success]
    assert len(refused) == 2
    assert all("brought the same result 5 times" in words for words in refused)
    assert run.notes == ["repeating"]


async def test_a_model_that_only_repeats_a_call_ends_for_that_reason(workspace: Workspace) -> None:
    """The reason is what the model did, not what the engine said to the model about it."""
    ended = await Run(workspace, repeating(says("", ("doing", {"words": "x"}))), [Doing()]).finish()
    assert (ended.status, ended.reason.partition(";")[0]) == (
        Status.PARTIAL,
        "the model kept making one call, doing, with the same result",
    )


async def test_a_call_whose_result_changes_is_not_repetition(workspace: Workspace) -> None:
    """Looking again at what changes is work, not a loop."""
    count = 0

    async def count_up(_words: str) -> str:
        nonlocal count
        count += 1
        return f"now {count}"

    def look(request: Request) -> Turn:
        taken = sum(isinstance(message, Turn) for message in request.history)
        return says("", ("doing", {})) if taken < 8 else says("Seen.")

    run = Run(workspace, look, [Doing("doing", count_up)])
    await run.finish()
    assert (count, run.notes) == (8, [])


async def test_no_room_in_the_budget_ends_the_agent(workspace: Workspace) -> None:
    """A request whose worst case does not fit is never sent."""
    run = Run(workspace, [says("never")], limits=Limits(max_tokens=1_000))
    ended = await run.finish()
    assert (ended.status, ended.reason, run.asked) == (Status.PARTIAL, "tokens limit", 0)
    steps = Run(workspace, repeating(says("", ("doing", {}))), [Doing()], limits=Limits(max_steps=4))
    steps.recorder = Recorder([started()])
    ended = await steps.finish()
    assert (ended.reason, steps.asked) == ("steps limit", 2)


class Failing:
    """A model that fails as told, then says what a script says."""

    def __init__(self, script: Sequence[Turn] | Script, *faults: ModelFault) -> None:
        self._scripted = ScriptedClient({"searcher": script})
        self._faults = list(faults)
        self.requests: list[Request] = []

    async def generate(self, request: Request) -> Turn:
        """Fail, or speak."""
        self.requests.append(request)
        if self._faults:
            raise ModelError(self._faults.pop(0), "as the provider put it")
        return await self._scripted.generate(request)


async def run_with(client: LLMClient, recorder: Recorder, workspace: Workspace, *tools: Tool) -> AgentFinished:
    """Run the one agent with any client."""
    context = agent_room(client, recorder, [*tools_over(workspace), *tools], workspace)
    return await run_agent(recorder.state(), context)


async def test_a_rejected_request_fails_the_agent(workspace: Workspace) -> None:
    """The same request would fail again; the provider's words are the reason."""
    ended = await run_with(Failing([], ModelFault.REJECTED), Recorder([started()]), workspace)
    assert (ended.status, ended.reason) == (Status.FAILED, "as the provider put it")


ANSWERED_FAULTS = {
    ModelFault.REJECTED,
    ModelFault.OVERSIZED,
    ModelFault.CONTEXT_EXCEEDED,
    ModelFault.STALE_REASONING,
}
"""What an agent itself can do something about, or ends with."""


@pytest.mark.parametrize("fault", [fault for fault in ModelFault if fault not in ANSWERED_FAULTS])
async def test_a_provider_that_is_down_leaves_the_agent_resumable(workspace: Workspace, fault: ModelFault) -> None:
    """The error passes through, nothing is on record of the attempt, and the next life asks the very same."""
    recorder = Recorder([started()])
    client = Failing([says("Answer.")], fault)
    with pytest.raises(ModelError, match="as the provider put it"):
        await run_with(client, recorder, workspace)
    assert len(recorder.events) == 1
    assert (await run_with(client, recorder, workspace)).summary == "Answer."
    assert client.requests[0] == client.requests[1]


async def test_a_full_window_is_made_room_in_once(workspace: Workspace) -> None:
    """Old long results are cleared, on record; the request fits and the agent goes on; words and calls all stay."""

    def long_work(request: Request) -> Turn:
        taken = sum(isinstance(message, Turn) for message in request.history)
        return says(f"Turn {taken}", ("doing", {"words": f"{taken}" * 500})) if taken < 4 else says("Answer.")

    recorder = Recorder([started()])
    scripted = ScriptedClient({"searcher": long_work})
    faults = [ModelFault.CONTEXT_EXCEEDED]

    class Full:
        async def generate(self, request: Request) -> Turn:
            if len(request.history) > 8 and faults:
                raise ModelError(faults.pop(), "too long")
            return await scripted.generate(request)

    async def repeat(words: str) -> str:
        return words * 4

    assert (await run_with(Full(), recorder, workspace, Doing(action=repeat))).summary == "Answer."
    assert len(recorder.of_type(Compacted)) == 1
    history = scripted.requests[-1].history
    sizes = [len(message.results[0].content) for message in history if isinstance(message, Results)]
    assert [size < 900 for size in sizes] == [True, True, False, False]
    assert "cleared to save space" in str(history[2])
    assert [message.text for message in history if isinstance(message, Turn)] == [f"Turn {n}" for n in range(4)]


async def test_a_window_too_small_for_anything_ends_the_agent(workspace: Workspace) -> None:
    """There is nothing to clear, or clearing did not help: no loop, an end with what is there."""
    always = Failing([], *[ModelFault.CONTEXT_EXCEEDED] * 9)
    ended = await run_with(always, Recorder([started()]), workspace)
    assert (ended.status, len(always.requests)) == (Status.PARTIAL, 1)
    run = Run(
        workspace, repeating(says("Full.", ("doing", {"words": "x" * 900}), stop=StopKind.CONTEXT_EXCEEDED)), [Doing()]
    )
    ended = await run.finish()
    assert ended.status is Status.PARTIAL
    assert ended.reason == "the conversation no longer fits the model's window"
    assert run.asked == 1


async def test_words_of_the_user_are_heard_in_their_place(workspace: Workspace) -> None:
    """Said while tools run, they stand after the results, and never between a turn and its results."""
    recorder = Recorder([started()])

    async def interrupted(_words: str) -> str:
        await recorder.record(Steered(agent="searcher-1", text="Also look at B."))
        return "did"

    client = ScriptedClient({"searcher": [says("", ("doing", {}), ("read_file", {"filepath": "a"})), says("Both.")]})
    await run_with(client, recorder, workspace, Doing("doing", interrupted))
    kinds = [type(message).__name__ for message in client.requests[1].history]
    assert kinds == ["UserText", "Turn", "Results", "UserText"]
    assert client.requests[1].history[-1] == UserText(text="Also look at B.")


async def test_usage_and_cost_are_added_up(workspace: Workspace) -> None:
    """What the turns used is in the state; one turn without a known price makes the sum unknown."""
    run = Run(workspace, [says("", ("doing", {}), cost_usd=0.5), says("Done.", cost_usd=0.25)], [Doing()])
    await run.finish()
    state = run.recorder.state()
    assert (state.usage, state.cost_usd, state.steps) == (Usage(input_tokens=200, output_tokens=40), 0.75, 2)
    assert run.recorder.run_state.cost_usd == 0.75
    unpriced = says("Done.").model_copy(update={"cost_usd": None})
    unknown = Run(workspace, [unpriced], recorder=Recorder([started()]))
    await unknown.finish()
    assert unknown.recorder.run_state.cost_usd is None


# From here on: a run cut off anywhere ends as if it had not been.

LONG_SCRIPT = [
    says(
        "I begin.",
        ("search", {"words": "a"}),
        ("search", {"words": "b"}),
        ("write_file", {"filepath": "notes/a.md", "content": "# A\none\n"}),
        ("list_files", {}),
    ),
    says(
        "",
        ("write_file", {"filepath": "notes/a.md", "content": "two\n", "mode": "append"}),
        ("edit_file", {"filepath": "notes/a.md", "old_string": "one", "new_string": "1"}),
        ("send", {"words": "letter"}),
        ("read_file", {"filepath": "notes/a.md"}),
    ),
    says(""),
    says("Hm.", ("write_flie", {}), ("write_file", {"filepath": "notes/a.md"}), ("crash", {})),
    says("", ("write_file", {"filepath": "lost.md", "content": "never"}), stop=StopKind.MAX_TOKENS),
    says("thinking", stop=StopKind.PAUSE),
    says(
        "",
        ("write_file", {"filepath": "b.md", "content": "b"}),
        ("edit_file", {"filepath": "b.md", "old_string": "b", "new_string": "B"}),
    ),
    says("Two files, one letter."),
]


class World:
    """A folder and a letter box: what the tools of the long script change."""

    def __init__(self, folder: Path, sent: Sequence[str] = ()) -> None:
        self.workspace = Workspace(folder)
        self.sent = list(sent)

    def tools(self) -> list[Tool]:
        """The file tools, a search, a letter box, and one that always crashes."""

        async def send(words: str) -> str:
            self.sent.append(words)
            return "sent"

        async def crash(_words: str) -> str:
            raise ValueError("as always")

        return [*tools_over(self.workspace), Doing("search"), external("send", send), Doing("crash", crash)]

    async def live(self, recorder: Recorder) -> tuple[AgentFinished, ScriptedClient]:
        """Take the agent to its end."""
        client = ScriptedClient({"searcher": LONG_SCRIPT})
        context = agent_room(client, recorder, self.tools(), self.workspace)
        return await run_agent(recorder.state(), context), client


@dataclass(frozen=True)
class Moment:
    """The world at one point of the uncut run."""

    events: tuple[AnyEvent, ...]
    """What is on disk."""
    files: Path
    """A copy of the folder."""
    sent: tuple[str, ...]


async def filmed(tmp_path: Path) -> tuple[Recorder, AgentFinished, list[Moment], World, list[Request]]:
    """The uncut run, with its moments: right before and right after each event is on disk."""
    (tmp_path / "run").mkdir()
    world = World(tmp_path / "run")
    recorder = Recorder([started()])
    moments: list[Moment] = []

    def take() -> None:
        copy = tmp_path / "copies" / str(len(moments))
        shutil.copytree(world.workspace.folder, copy)
        moments.append(Moment(tuple(recorder.events), copy, tuple(world.sent)))

    take()
    recorder.look = take
    ended, client = await world.live(recorder)
    return recorder, ended, moments, world, client.requests


@pytest.mark.slow
async def test_a_run_cut_off_anywhere_ends_the_same(tmp_path: Path) -> None:
    """From every prefix of its events, with the folder as it was just before or after, an agent ends as if uncut.

    The same end, the same files, the same conversation; no letter twice. Only a letter whose sending had begun, and
    was not known to be done, is answered with words that say so, and not sent again.
    """
    uncut, ended, moments, world, requests = await filmed(tmp_path)
    assert (ended.status, ended.summary) == (Status.COMPLETE, "Two files, one letter.")
    assert contents(world.workspace.folder) == {"notes/a.md": "# A\n1\ntwo\n", "b.md": "B"}
    assert world.sent == ["letter"]
    assert len(moments) == 2 * len(uncut.events) - 1, "before and after each event but the first"
    interrupted = 0
    for number, moment in enumerate(moments):
        folder = tmp_path / "again" / str(number)
        shutil.copytree(moment.files, folder)
        again = World(folder, moment.sent)
        recorder = Recorder(moment.events)
        resumed, client = await again.live(recorder)
        where = f"cut at moment {number}, after {len(moment.events)} events, last {moment.events[-1]!r}"
        assert resumed == ended, where
        assert contents(folder) == contents(world.workspace.folder), where
        begun = any(isinstance(event, ToolStarted) and event.name == "send" for event in moment.events)
        done = any(isinstance(event, ToolFinished) and event.name == "send" for event in moment.events)
        assert again.sent == (list(moment.sent) if begun else ["letter"]), where
        expected = uncut.state().messages
        if begun and not done:
            interrupted += 1
            assert said_of_send(recorder) == INTERRUPTED
            assert without_send(recorder) == without_send(uncut), where
        else:
            assert recorder.state().messages == expected, where
            known = sum(isinstance(event, TurnTaken) for event in moment.events)
            assert client.requests == requests[known:], where
    assert interrupted >= 2


def said_of_send(recorder: Recorder) -> str:
    """What the model was told about the letter."""
    (content,) = [event.content for event in recorder.of_type(ToolFinished) if event.name == "send"]
    return content


def without_send(recorder: Recorder) -> list[Any]:
    """A conversation, but for what was said about the letter."""
    return [
        [result for result in message.results if result.name != "send"] if isinstance(message, Results) else message
        for message in recorder.state().messages
    ]


async def test_a_tool_call_of_a_provider_with_repeated_ids_keeps_its_own_result(workspace: Workspace) -> None:
    """Providers reuse call ids across turns; each turn's results are its own."""
    call = ToolCall(id="same", name="doing", arguments={"words": "x"})
    other = ToolCall(id="same", name="doing", arguments={"words": "y"})
    turns = [says("").model_copy(update={"calls": (one,), "stop": StopKind.TOOL_USE}) for one in (call, other)]
    run = Run(workspace, [*turns, says("Done.")], [Doing()])
    await run.finish()
    assert run.recorder.results() == ["did x", "did y"]
