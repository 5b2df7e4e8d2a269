"""What a rule-driven role works with: a script yields the calls of its next turn and is sent their answers.

A script is a generator that is played from its start at every request, against the answers that the history holds.
So the next turn is a function of the history alone: a run that was killed and resumed asks the same again.
"""

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from explorer.schema.messages import JsonObject, Message, Results, TaskData, ToolSchema, Turn, UserText, number_in
from explorer.schema.reasons import NoteReason

PROVIDER = "offline"
MAX_FILE_PARTS = 60
"""Parts of one file that are read: at least half a million characters."""
HURRIES = frozenset(
    {
        NoteReason.WRAP_UP,
        NoteReason.ERRORS,
        NoteReason.NOTHING_NEW,
        NoteReason.BUDGET_85,
        NoteReason.WINDING_DOWN,
        NoteReason.WRITE_NOW,
    }
)
"""Notes that ask for an end now."""
CONTINUED = frozenset({NoteReason.CONTINUE, NoteReason.TRY_AGAIN})
"""Words of the engine with which a run is continued that ended early."""
VERSION = 3
"""Version of the data that scripts read. Turns of an older version are not replayed: their results lack the data."""
NUMBERED_LINE = re.compile(r"\s*(\d+)\t(.*)")


@dataclass(frozen=True)
class Ask:
    """A call of a tool."""

    tool: str
    arguments: JsonObject


def writing(path: str, content: str, mode: str = "overwrite") -> Ask:
    """Return the call that writes a file."""
    return Ask("write_file", {"filepath": path, "content": content, "mode": mode})


@dataclass(frozen=True)
class Step:
    """One turn: words, calls, or both. Words alone end the task."""

    text: str = ""
    calls: tuple[Ask, ...] = ()


@dataclass(frozen=True)
class ToolAnswer:
    """The answer to a call."""

    text: str
    is_error: bool = False
    data: JsonObject = field(default_factory=dict[str, Any])
    sources: tuple[str, ...] = ()


Script = Generator[Step, Sequence[ToolAnswer], str]
"""A role, or a part of one; its value is the part's result."""
Part = Generator[Step, Sequence[ToolAnswer], None]
"""A part of a script without a result."""
Texts = Generator[Step, Sequence[ToolAnswer], dict[str, str]]
"""A part whose result is the text of files by path."""


@dataclass
class ScriptState:
    """State of a script besides the answers. It is computed anew for each request, with the script."""

    task: TaskData
    tools: dict[str, ToolSchema]
    is_hurried: bool = False
    """Finish with what there is."""
    messages: list[str] = field(default_factory=list[str])
    """Words of the user not yet taken up."""
    next_task: TaskData | None = None
    """A further task, not yet taken up."""
    cut_files: set[str] = field(default_factory=set[str])
    """Files with lines that were too long to be read whole."""
    is_continued: bool = False
    """The limits were renewed after an early end."""
    is_without_sources: bool = False
    """Whether the run ended because no source was reached: lookups are made again."""

    def hear(self, words: UserText) -> None:
        """Take in words that came after a turn: by why they were said, and only the user's as words."""
        if words.task is not None:
            self.next_task = words.task
        elif words.reason in CONTINUED:
            self.is_hurried, self.is_continued = False, True
            self.is_without_sources = self.is_without_sources or words.reason == NoteReason.TRY_AGAIN
        elif words.reason in HURRIES:
            self.is_hurried = True
        elif not words.reason:
            self.messages.append(words.said or words.text)

    def take_messages(self) -> str:
        """Return the user's words not yet taken up, as one text."""
        taken = "\n\n".join(self.messages)
        self.messages.clear()
        return taken

    def take_task(self) -> TaskData | None:
        """Return the further task that came, once."""
        taken, self.next_task = self.next_task, None
        return taken


@dataclass(frozen=True)
class Exchange:
    """A turn taken earlier: what came of its calls, and what was said after it."""

    answers: tuple[ToolAnswer, ...]
    said: tuple[UserText, ...]


def split_history(history: Sequence[Message]) -> tuple[TaskData, list[str], list[Exchange]]:
    """Return the task, what the user said before the first turn of ours, and the exchanges since.

    Turns of others are not ours to replay: they are left out.
    """
    task: TaskData | None = None
    before: list[UserText] = []
    exchanges: list[Exchange] = []
    is_own = True
    for message in history:
        match message:
            case Turn():
                is_own = is_replayed(message)
                if is_own:
                    exchanges.append(Exchange((), ()))
            case Results() if is_own and exchanges:
                answers = tuple(
                    ToolAnswer(result.content, result.is_error, result.data, result.sources)
                    for result in message.results
                )
                exchanges[-1] = Exchange(answers, exchanges[-1].said)
            case UserText() if exchanges:
                exchanges[-1] = Exchange(exchanges[-1].answers, (*exchanges[-1].said, message))
            case UserText():
                task = message.task or task
                before.append(message)
            case _:
                pass
    if task is None:
        return TaskData(words="\n\n".join(words.said or words.text for words in before)), [], exchanges
    return task, [words.said or words.text for words in before if words.task is None and not words.reason], exchanges


def is_replayed(turn: Turn) -> bool:
    """Return whether a turn was made by this version of the scripts."""
    return turn.provider == PROVIDER and bool(turn.blocks) and turn.blocks[0].get("version") == VERSION


def play(script: Script, state: ScriptState, exchanges: Sequence[Exchange]) -> Step:
    """Return the step after the exchanges. A call of a tool that is not there is answered with an error at once."""
    past = iter(exchanges)
    step = next(script)
    while True:
        known = [call for call in step.calls if call.tool in state.tools]
        answers: Sequence[ToolAnswer] = ()
        if known or not step.calls:
            exchange = next(past, None)
            if exchange is None:
                return Step(step.text, tuple(known))
            for words in exchange.said:
                state.hear(words)
            answers = exchange.answers
        step = script.send(_in_order(step.calls, state, answers))


def _in_order(calls: Sequence[Ask], state: ScriptState, answers: Sequence[ToolAnswer]) -> list[ToolAnswer]:
    given = iter(answers)
    missing = ToolAnswer("there is no answer to this call", is_error=True)
    return [
        next(given, missing) if call.tool in state.tools else ToolAnswer(f"there is no tool {call.tool}", is_error=True)
        for call in calls
    ]


def read_files(state: ScriptState, paths: Sequence[str]) -> Texts:
    """Read files side by side, to their ends or until there is no time; those that cannot be read are left out."""
    texts: dict[str, list[str]] = {path: [] for path in paths}
    waiting = dict.fromkeys(texts, 1)
    for part in range(MAX_FILE_PARTS):
        if not waiting or (part and state.is_hurried):
            break
        asked = dict(waiting)
        answers = yield Step(calls=tuple(_read(path, start) for path, start in asked.items()))
        waiting = {}
        for path, answer in zip(asked, answers, strict=True):
            lines = numbered_lines(answer.text, asked[path])
            following = asked[path] + len(lines)
            texts[path] += lines
            if answer.data.get("cut"):
                state.cut_files.add(path)
            if lines and following <= number_in(answer.data, "total"):
                waiting[path] = following
    return {path: "\n".join(lines) for path, lines in texts.items() if lines}


def _read(path: str, start: int) -> Ask:
    return Ask("read_file", {"filepath": path} | ({"start_line": start} if start > 1 else {}))


def numbered_lines(text: str, start: int) -> list[str]:
    """Return the lines of a numbered reply from `start` on, as far as they follow each other."""
    lines: list[str] = []
    for row in text.splitlines():
        match = NUMBERED_LINE.match(row)
        if match is not None and int(match[1]) == start + len(lines):
            lines.append(match[2])
        elif match is not None and lines:
            # A long reply has its middle left out, and the line before the gap is cut.
            return lines[:-1] or lines
    return lines
