"""The state of an agent, computed from its events: it decides what is done next."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import orjson

from explorer.journal.context_size import LOAD_SKILL, ContextSize, cleared
from explorer.schema.events import (
    NO_EFFECT,
    AgentContinued,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    Clearing,
    Compacted,
    Lookup,
    NoteAdded,
    ReasoningDropped,
    Steered,
    Summarised,
    ToolFinished,
    ToolStarted,
    WrittenFile,
)
from explorer.schema.messages import CallResult, JsonObject, Message, Results, TaskData, ToolCall, Turn, Usage, UserText
from explorer.schema.reasons import NoteReason

NEW_TEXT_CHARS = 2_000
"""The least length of a result that counts as new when the agent had it for the first time."""

MAX_INDEX_DIGITS = 6
"""The most digits of a call's index in the engine's key; with more it is no index."""

RESULT = "result"
"""The key of a helper's result in the data of calls: the one that gives it, and the one that asked for it."""

MAX_REASONING_REFUSALS = 2
"""The number of refusals after which no reasoning of the conversation is sent back."""


@dataclass(frozen=True)
class OpenCall:
    """A call of the last turn."""

    key: str
    """The engine's key: `<agent>.t<turn>.<index>`."""
    call: ToolCall
    started: ToolStarted | None
    """Its `tool_started`; None when that is not on disk."""
    finished: ToolFinished | None


@dataclass(frozen=True)
class AnnouncedClearing:
    """A clearing that comes after the agent's next turn."""

    before: int
    """The index of the first message whose results stay."""
    why: Clearing
    steps: int
    """The number of turns taken when it was announced."""


@dataclass
class AgentState:
    """The state of one agent, computed from its events. Only `apply` changes it."""

    agent: str
    role: str = ""
    task: str = ""
    latest_task: str = ""
    """The latest task that is not the engine's own."""
    parent: str = ""
    parent_call: str = ""
    """The call that waits for this agent: the one that started it, or continued it last."""
    messages: list[Message] = field(default_factory=list[Message])
    """The history up to the last complete exchange."""
    began_at: int = 0
    """The index of its latest task in the history."""
    steps: int = 0
    """The number of turns taken, in all sessions."""
    step_limit: int = 0
    """The number of turns it may take, in all sessions."""
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    unpriced_turns: int = 0
    """The number of turns of models whose price is not known."""
    finished: AgentFinished | None = None
    context_size: ContextSize = field(default_factory=ContextSize)
    """The size of the conversation."""
    announced: AnnouncedClearing | None = None
    """The clearing of old results that the agent was told of; None when none is due."""
    opened: dict[str, None] = field(default_factory=dict[str, None])
    """Paths that its calls named as a file, in the order of the calls."""
    summing_at: int | None = None
    """The index in the history of the request for a summary; None when none is open."""
    repeated: dict[str, int] = field(default_factory=dict[str, int])
    """Number of identical results of each call, since the task or since old results were cleared."""
    most_repeated: int = 0
    """The largest value of `repeated`."""
    open_turn: Turn | None = None
    """The last turn while its calls are not all answered."""
    notes: dict[str, int] = field(default_factory=dict[str, int])
    """How often each note was added, by reason."""
    ended_jobs: set[str] = field(default_factory=set[str])
    """Ids of the agent's background jobs whose end was reported to it."""
    files: dict[str, WrittenFile] = field(default_factory=dict[str, WrittenFile])
    """Files that this agent wrote, by path, with their state after the last write."""
    found_at: int = 0
    """The number of turns when it last wrote a file, met a source, or read a long text for the first time."""
    sources: set[str] = field(default_factory=set[str])
    """Ids of the sources it met."""
    searches: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """The query of each of its searches and lists, empty for a list, and the number of results; by tool and arguments.
    """
    result: JsonObject = field(default_factory=dict[str, Any])
    """What it gave as the result of its latest task, in the form of its role."""
    skills: dict[str, str] = field(default_factory=dict[str, str])
    """What it read of skills, by the name of the skill, and of the file in it if there is one."""
    reasoning_refusals: int = 0
    """How often the provider refused reasoning of earlier turns."""
    is_steered: bool = False
    """Whether a message of the user has no answer yet."""
    asked: set[str] = field(default_factory=set[str])
    """Tasks, and messages of the user."""
    ends: bool = False
    """Whether a tool ended the agent's work."""
    _brought: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    """How often each call brought each result, by the hash of the result."""
    _read: set[int] = field(default_factory=set[int])
    """Hashes of the long results since its latest task."""
    _started: dict[str, ToolStarted] = field(default_factory=dict[str, ToolStarted])
    """The calls of the latest turn that were started, by the engine's key."""
    _done: dict[str, ToolFinished] = field(default_factory=dict[str, ToolFinished])
    """Their results."""
    _held: list[UserText] = field(default_factory=list[UserText])
    """Texts that came while a turn was open; they are added after its results."""

    def apply(self, event: AnyEvent, task: TaskData | None = None) -> None:
        """Apply one event of this agent.

        Args:
            event: The event.
            task: The task for programs, if the event starts or continues the agent.
        """
        match event.type:
            case "agent_started" | "agent_continued":
                self._begin(event, task)
            case "note" | "steered":
                self._add_user_text(event)
            case "compacted" | "summarised" | "reasoning_dropped":
                self._edit(event)
            case "turn":
                self._take(event.turn)
            case "tool_started":
                self._started[event.call] = event
            case "tool_finished":
                self._finish(event)
            case "agent_finished":
                self.finished = event
            case _:
                pass

    def _begin(self, event: AgentStarted | AgentContinued, task: TaskData | None) -> None:
        if isinstance(event, AgentStarted):
            self.role, self.task, self.parent = event.role, event.task, event.parent
        self.finished, self.ends, self.notes, self.is_steered, self.result = None, False, {}, False, {}
        self.summing_at, self.context_size.compactions = None, 0
        self._forget_calls()
        self.asked.add(event.task)
        self.began_at = len(self.messages)
        self.parent_call = event.parent_call
        self.step_limit, self.found_at = self.steps + event.max_steps, self.steps
        self._read.clear()
        reason = event.reason if isinstance(event, AgentContinued) else ""
        self.latest_task = self.latest_task if reason else event.task
        self._add_words(_stated(event.task, event.context, reason, task))

    def _add_user_text(self, event: NoteAdded | Steered) -> None:
        if isinstance(event, NoteAdded):
            self.notes[event.reason] = self.notes.get(event.reason, 0) + 1
            if event.reason == NoteReason.JOB_ENDED:
                self.ended_jobs.add(str(event.data.get("job")))
            if event.reason == NoteReason.SUMMARISE:
                self.summing_at = len(self.messages)
            if event.reason == NoteReason.CLEARING:
                self.announced = _announced(event, self.steps)
        else:
            self.is_steered = True
            self.asked.add(event.text)
        if isinstance(event, Steered):
            self._add_words(_stated(event.text, event.context))
        else:
            self._add_words(UserText(text=event.text, reason=event.reason))

    def _add_words(self, words: UserText) -> None:
        # No message is allowed between a turn and its results: what comes then is added after the results.
        (self.messages if self.open_turn is None else self._held).append(words)

    def _take(self, turn: Turn) -> None:
        self.steps += 1
        self.is_steered = self.is_steered and self.summing_at is not None
        self.usage += turn.usage
        self.cost_usd += turn.cost_usd or 0.0
        self.unpriced_turns += turn.cost_usd is None
        # Something between here and the provider changes what is sent: reasoning would be refused again and again.
        is_lost = self.reasoning_refusals >= MAX_REASONING_REFUSALS
        self.messages.append(without_bond(turn) if is_lost else turn)
        self.context_size.take_turn(turn, self.messages)
        self._started, self._done = {}, {}
        self.opened |= dict.fromkeys(path for call in turn.calls if isinstance(path := _path_in(call), str))
        if turn.calls:
            self.open_turn = turn

    def _finish(self, event: ToolFinished) -> None:
        self._done[event.call] = event
        self.ends = self.ends or event.ends_agent
        started = self._started.get(event.call)
        is_helped = started is not None and started.effect == "child" and event.success
        is_met = not self.sources.issuperset(event.sources)
        if event.files or is_helped or is_met or self._is_new_text(event):
            self.found_at = self.steps
        self.sources.update(event.sources)
        self._note_search(event)
        if event.ends_agent:
            self.result = event.data.get(RESULT) or {}
        if event.success and event.name == LOAD_SKILL:
            self.skills[str(event.data.get("skill", ""))] = event.content
        for written in event.files:
            self.files[written.path] = written
        for path in event.removed:
            self.files.pop(path, None)
        turn = self.open_turn
        # A journal from elsewhere may have results of calls that the turn does not have.
        is_done = turn is not None and len(self._done) >= len(turn.calls) and all(one.finished for one in self.calls())
        if turn is not None and is_done:
            self._close(turn)

    def _note_search(self, event: ToolFinished) -> None:
        """Count what a search showed, which is a lookup with a query, or a list of stories."""
        call = self.call_at(event.call) if event.lookup is not Lookup.NONE else None
        given = (call.arguments or {}).get("query") if call is not None else None
        query = given.strip() if isinstance(given, str) else ""
        if call is not None and (query or "stories" in event.data):
            shown = event.data.get("shown")
            self.searches[call_key(call)] = query, shown if isinstance(shown, int) else len(event.sources)

    def _is_new_text(self, event: ToolFinished) -> bool:
        """Return whether a call brought a long text for the first time; results with sources are not counted."""
        if not event.success or event.sources or len(event.content) < NEW_TEXT_CHARS:
            return False
        key = hash(event.content)
        is_new = key not in self._read
        self._read.add(key)
        return is_new

    def _close(self, turn: Turn) -> None:
        """Add the results to the history: all calls of the turn have one."""
        calls = self.calls()
        results = Results(results=tuple(_result(call) for call in calls))
        self.messages.append(results)
        self.messages += self._held
        self._held, self.open_turn = [], None
        for call, result in zip(turn.calls, results.results, strict=True):
            self._count_call(call_key(call), hash(result.content))

    def _count_call(self, key: str, result: int) -> None:
        self._brought[key, result] += 1
        self.repeated[key] = max(self.repeated.get(key, 0), self._brought[key, result])
        self.most_repeated = max(self.most_repeated, self.repeated[key])

    def _forget_calls(self) -> None:
        self._brought.clear()
        self.repeated.clear()
        self.most_repeated = 0

    def _edit(self, event: Compacted | Summarised | ReasoningDropped) -> None:
        if isinstance(event, ReasoningDropped):
            self._drop_reasoning(event)
        else:
            self._apply_compaction(event)

    def _drop_reasoning(self, event: ReasoningDropped) -> None:
        self.reasoning_refusals += 1
        old = self.messages[: event.before]
        self.messages[: event.before] = [without_bond(one) if isinstance(one, Turn) else one for one in old]

    def _apply_compaction(self, event: Compacted | Summarised) -> None:
        if isinstance(event, Compacted):
            self._clear(event)
        else:
            self._leave_out(event)
        self.announced = None
        self.context_size.change()
        # What a model no longer sees it may ask for again.
        self._forget_calls()

    def _clear(self, event: Compacted) -> None:
        old = self.messages[: event.before]
        self.messages[: event.before] = [cleared(one) if isinstance(one, Results) else one for one in old]
        if event.why is Clearing.REFUSED and event.tokens:
            self.context_size.window_tokens = min(event.tokens, self.context_size.window_tokens or event.tokens)
        if event.why is not Clearing.CARRIED:
            self.context_size.record_compaction(self.steps, self.found_at)

    def _leave_out(self, event: Summarised) -> None:
        old, new = self.messages[: event.before], self.messages[event.before :]
        if self.summing_at is not None:
            asked_at = self.summing_at - event.before
            # Messages that came while the model wrote the summary are kept.
            new = new[:asked_at] + [one for one in new[asked_at + 1 :] if isinstance(one, UserText)]
        words = [one for one in old[1:] if isinstance(one, UserText) and (one.said or one.text) in self.asked]
        if self.began_at >= event.before:
            self.began_at += len(words) + 2 - event.before
        elif self.began_at:
            task = self.messages[self.began_at]
            self.began_at = next((at for at, one in enumerate(words, 1) if one is task), 0)
        self.messages = [old[0], *words, UserText(text=event.text), *new]
        self.summing_at = None
        self.context_size.summed_at = self.steps
        self.context_size.record_compaction(self.steps, self.found_at)

    def calls(self) -> list[OpenCall]:
        """Return the calls of the open turn, in order; empty when none is open."""
        if self.open_turn is None:
            return []
        keys = [f"{self.agent}.t{self.steps}.{index}" for index in range(1, len(self.open_turn.calls) + 1)]
        return [
            OpenCall(key, call, self._started.get(key), self._done.get(key))
            for key, call in zip(keys, self.open_turn.calls, strict=True)
        ]

    def call_at(self, key: str) -> ToolCall | None:
        """Return the call of the open turn with the engine's key; None when no such call is open."""
        calls = self.open_turn.calls if self.open_turn is not None else ()
        index = key.rpartition(".")[2]
        # A turn may have hundreds of calls, and a journal from elsewhere any key.
        place = int(index) if index.isdecimal() and len(index) <= MAX_INDEX_DIGITS else 0
        return calls[place - 1] if 0 < place <= len(calls) else None

    @property
    def turn_at_end(self) -> Turn | None:
        """The turn that the history ends with; None when a message came after the latest turn."""
        last = self.messages[-1] if self.messages else None
        return last if isinstance(last, Turn) else None

    @property
    def latest_turn(self) -> Turn | None:
        """The latest turn of the history, whatever came after it."""
        return next((message for message in reversed(self.messages) if isinstance(message, Turn)), None)

    @property
    def input_ids(self) -> dict[str, str]:
        """The source ids of the files of its first task, by path."""
        first = self.messages[0] if self.messages else None
        return dict(first.task.files) if isinstance(first, UserText) and first.task is not None else {}

    @property
    def steps_left(self) -> int:
        """The number of turns it may still take."""
        return max(0, self.step_limit - self.steps)


def _result(call: OpenCall) -> CallResult:
    done = call.finished
    assert done is not None
    return CallResult(
        id=call.call.id,
        name=call.call.name,
        content=done.content,
        is_error=not done.success,
        data=done.data,
        sources=done.sources,
        files=tuple(written.path for written in done.files),
        is_repeatable=call.started is None or call.started.effect == NO_EFFECT,
    )


def _path_in(call: ToolCall) -> object:
    return (call.arguments or {}).get("filepath")


def _announced(event: NoteAdded, steps: int) -> AnnouncedClearing | None:
    before, why = event.data.get("before"), event.data.get("why")
    if not isinstance(before, int) or not isinstance(why, str) or why not in set(Clearing):
        return None
    return AnnouncedClearing(before, Clearing(why), steps)


def _stated(words: str, context: str, reason: str = "", task: TaskData | None = None) -> UserText:
    """Return a task or a message of the user, with what the engine states with it."""
    text = f"{words}\n\n{context}" if context else words
    return UserText(text=text, said=words if context else "", reason=reason, task=task)


def without_bond(turn: Turn) -> Turn:
    """Return a turn whose reasoning is not sent back."""
    return turn.model_copy(update={"bound_to": ""}) if turn.bound_to else turn


def call_key(call: ToolCall) -> str:
    """Return a key that calls with the same name and arguments share."""
    try:
        arguments = orjson.dumps(call.arguments, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:
        # A number beyond 64 bits, or half of a surrogate pair.
        arguments = json.dumps(call.arguments, sort_keys=True)
    return f"{call.name} {arguments}"
