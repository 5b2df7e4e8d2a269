"""An agent's state: a fold over its events, and the question it answers: what is to be done next."""

from dataclasses import dataclass, field

from explorer.events import (
    AgentContinued,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    Compacted,
    NoteAdded,
    Steered,
    ToolFinished,
    ToolStarted,
    TurnTaken,
    WrittenFile,
)
from explorer.messages import CallResult, Message, Results, ToolCall, Turn, Usage, UserText

CLEARED_CHARS = 300
"""Results up to this length are never cleared: the line that would stand for them is as long."""


@dataclass(frozen=True)
class OpenCall:
    """A call of the last turn."""

    key: str
    """The engine's key: `<agent>.t<turn>.<index>`."""
    call: ToolCall
    started: ToolStarted | None
    """Its `tool_started`, when that is on disk."""
    finished: ToolFinished | None


@dataclass
class AgentState:
    """One agent, folded from its events. Only `apply` changes it."""

    agent: str
    role: str = ""
    task: str = ""
    parent: str = ""
    parent_call: str = ""
    """The call that waits for this agent: of its start, or of its latest continuation."""
    messages: list[Message] = field(default_factory=list[Message])
    """The history up to the last complete exchange."""
    began_at: int = 0
    """Where in the history its latest task begins."""
    steps: int = 0
    """Turns taken, over the whole life."""
    step_limit: int = 0
    """Turns it may take, over the whole life."""
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    unpriced_turns: int = 0
    """Turns of models whose price is not known."""
    finished: AgentFinished | None = None
    compacted_at: int | None = None
    """How many turns were taken when old results were last cleared."""
    open_turn: Turn | None = None
    """The last turn while its calls are not all answered."""
    notes: dict[str, int] = field(default_factory=dict[str, int])
    """How often each kind of note was given."""
    files: dict[str, WrittenFile] = field(default_factory=dict[str, WrittenFile])
    """What this agent wrote, by path, as it stood after the last write."""
    found_at: int = 0
    """After how many turns it last wrote a file or met a source for the first time."""
    is_steered: bool = False
    """The user said something that no turn has answered yet."""
    ends: bool = False
    """A tool said that the work is done."""
    _sources: set[str] = field(default_factory=set[str])
    _started: dict[str, ToolStarted] = field(default_factory=dict[str, ToolStarted])
    _done: dict[str, ToolFinished] = field(default_factory=dict[str, ToolFinished])
    _held: list[UserText] = field(default_factory=list[UserText])

    def apply(self, event: AnyEvent) -> None:
        """Fold one event of this agent in."""
        match event:
            case AgentStarted() | AgentContinued():
                self._begin(event)
            case NoteAdded() | Steered():
                self._hear(event)
            case Compacted():
                self._compact(event.before)
            case TurnTaken():
                self._take(event.turn)
            case ToolStarted():
                self._started[event.call] = event
            case ToolFinished():
                self._finish(event)
            case AgentFinished():
                self.finished = event
            case _:
                pass

    def _begin(self, event: AgentStarted | AgentContinued) -> None:
        if isinstance(event, AgentStarted):
            self.role, self.task, self.parent = event.role, event.task, event.parent
        self.finished, self.ends, self.notes, self.is_steered = None, False, {}, False
        self.began_at = len(self.messages)
        self.parent_call = event.parent_call
        self.step_limit, self.found_at = self.steps + event.max_steps, self.steps
        self._say(event.task)

    def _hear(self, event: NoteAdded | Steered) -> None:
        if isinstance(event, NoteAdded):
            self.notes[event.reason] = self.notes.get(event.reason, 0) + 1
        else:
            self.is_steered = True
        self._say(event.text)

    def _say(self, text: str) -> None:
        # Between a turn and its results nothing may stand: what comes then is said after the results.
        if self.open_turn is not None:
            self._held.append(UserText(text=text))
        else:
            self.messages.append(UserText(text=text))

    def _take(self, turn: Turn) -> None:
        self.steps += 1
        self.is_steered = False
        self.usage += turn.usage
        self.cost_usd += turn.cost_usd or 0.0
        self.unpriced_turns += turn.cost_usd is None
        self.messages.append(turn)
        self._started, self._done = {}, {}
        if turn.calls:
            self.open_turn = turn

    def _finish(self, event: ToolFinished) -> None:
        self._done[event.call] = event
        self.ends = self.ends or event.ends_agent
        if event.files or not self._sources.issuperset(event.sources):
            self.found_at = self.steps
        self._sources.update(event.sources)
        for written in event.files:
            self.files[written.path] = written
        calls = self.calls()
        if self.open_turn is not None and all(call.finished is not None for call in calls):
            self.messages.append(Results(results=tuple(_result(call) for call in calls)))
            self.messages += self._held
            self._held, self.open_turn = [], None

    def _compact(self, before: int) -> None:
        self.compacted_at = self.steps
        old = [_cleared(message) if isinstance(message, Results) else message for message in self.messages[:before]]
        self.messages[:before] = old

    def calls(self) -> list[OpenCall]:
        """The calls of the last turn that has any unanswered, in order; empty when none is open."""
        if self.open_turn is None:
            return []
        keys = [f"{self.agent}.t{self.steps}.{index}" for index in range(1, len(self.open_turn.calls) + 1)]
        return [
            OpenCall(key, call, self._started.get(key), self._done.get(key))
            for key, call in zip(keys, self.open_turn.calls, strict=True)
        ]

    @property
    def last_turn(self) -> Turn | None:
        """The latest turn when nothing was said after it."""
        last = self.messages[-1] if self.messages else None
        return last if isinstance(last, Turn) else None

    @property
    def steps_left(self) -> int:
        """Turns it may still take."""
        return max(0, self.step_limit - self.steps)


def _result(call: OpenCall) -> CallResult:
    done = call.finished
    assert done is not None
    return CallResult(id=call.call.id, name=call.call.name, content=done.content, is_error=not done.success)


def _cleared(message: Results) -> Results:
    """Results as a short line each; errors and short results stay as they are."""
    return Results(results=tuple(_shortened(result) for result in message.results))


def _shortened(result: CallResult) -> CallResult:
    if len(result.content) <= CLEARED_CHARS:
        return result
    first = result.content[:CLEARED_CHARS].splitlines()[0]
    text = f"{first}\n[cleared to save room: {len(result.content)} characters; call {result.name} again if needed]"
    return result.model_copy(update={"content": text})
