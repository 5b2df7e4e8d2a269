"""What a rule-driven role works with: a script yields the calls of its next turn and is sent their answers.

A script is a generator that is played from its start at every request, against the answers that the history holds.
So the next turn is a function of the history alone: a run that was killed and resumed asks the same again.
"""

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from explorer.schema.messages import JsonObject, Message, Results, ToolSchema, Turn, UserText

PROVIDER = "offline"
MAX_FILE_PARTS = 60
"""Of one file, read part by part: at least half a million characters."""
HURRY = re.compile(
    r"turns? left\. write down|^stop exploring now|brought only errors|write the report now|wrap up"
    r"|only writing is left|^about (?:8[5-9]|9\d|1\d\d) % of this run's limits",
    re.IGNORECASE,
)
"""Words of the engine that ask for an end now."""
ASIDE = re.compile(
    r"^about \d+ % of this run's limits|^you made the same call|^your reply was (?:empty|cut)"
    r"|^older results were cleared"
    r"|^the words above came while",
    re.IGNORECASE,
)
"""Words of the engine that change nothing for a rule."""
CONTINUE = re.compile(r"^go on where you stopped", re.IGNORECASE)
NUMBERED_LINE = re.compile(r"\s*(\d+)\t(.*)")
READ_ON = re.compile(r"^\(\d+ more lines; read on with start_line=(\d+)\)$")


@dataclass(frozen=True)
class Ask:
    """One call."""

    tool: str
    arguments: JsonObject


@dataclass(frozen=True)
class Step:
    """One turn: words, calls, or both. Words alone end the task."""

    text: str = ""
    calls: tuple[Ask, ...] = ()


@dataclass(frozen=True)
class ToolAnswer:
    """What a call brought."""

    text: str
    is_error: bool = False


Script = Generator[Step, Sequence[ToolAnswer], str]
"""A role, or a part of one; its value is the part's result."""
Part = Generator[Step, Sequence[ToolAnswer], None]
"""A part of a script without a result."""


@dataclass
class ScriptState:
    """What a script knows besides the answers; played anew with the script, so nothing outlives a request."""

    task: str
    tools: dict[str, ToolSchema]
    is_hurried: bool = False
    """Finish with what there is."""
    messages: list[str] = field(default_factory=list[str])
    """Words of the user, or further tasks, not yet taken up."""
    is_continued: bool = False
    """The limits were renewed after an early end."""

    def hear(self, text: str) -> None:
        """Take in words that came after a turn."""
        if CONTINUE.search(text):
            self.is_hurried, self.is_continued = False, True
        elif HURRY.search(text):
            self.is_hurried = True
        elif not ASIDE.search(text):
            self.messages.append(text)

    def take_messages(self) -> str:
        """The words not yet taken up, as one text."""
        taken = "\n\n".join(self.messages)
        self.messages.clear()
        return taken


@dataclass(frozen=True)
class Exchange:
    """A turn taken earlier: what came of its calls, and what was said after it."""

    answers: tuple[ToolAnswer, ...]
    said: tuple[str, ...]


def split_history(history: Sequence[Message]) -> tuple[str, list[Exchange]]:
    """The task, and the exchanges since. Turns of other providers are not ours to replay: they are left out."""
    task: list[str] = []
    exchanges: list[Exchange] = []
    is_own = True
    for message in history:
        match message:
            case Turn():
                is_own = message.provider == PROVIDER
                if is_own:
                    exchanges.append(Exchange((), ()))
            case Results() if is_own and exchanges:
                answers = tuple(ToolAnswer(result.content, result.is_error) for result in message.results)
                exchanges[-1] = Exchange(answers, exchanges[-1].said)
            case UserText() if exchanges:
                exchanges[-1] = Exchange(exchanges[-1].answers, (*exchanges[-1].said, message.text))
            case UserText():
                task.append(message.text)
            case _:
                pass
    return "\n\n".join(task), exchanges


def play(script: Script, state: ScriptState, exchanges: Sequence[Exchange]) -> Step:
    """The step that comes after the exchanges. Calls of tools that are not there never leave: the script is told."""
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


def read_files(state: ScriptState, paths: Sequence[str]) -> Generator[Step, Sequence[ToolAnswer], dict[str, str]]:
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
            if answer.is_error:
                continue
            lines, following = _file_lines(answer.text, asked[path])
            texts[path] += lines
            if following > asked[path]:
                waiting[path] = following
    return {path: "\n".join(lines) for path, lines in texts.items() if lines}


def _read(path: str, start: int) -> Ask:
    return Ask("read_file", {"filepath": path} | ({"start_line": start} if start > 1 else {}))


def _file_lines(text: str, start: int) -> tuple[list[str], int]:
    """The lines of a numbered reply from `start` on, and where to read on; 0 when it is complete."""
    rows = text.splitlines()
    lines: list[str] = []
    numbered = [(int(match[1]), match[2]) for row in rows if (match := NUMBERED_LINE.match(row))]
    for number, line in numbered:
        if number != start + len(lines):
            # A long reply has its middle left out, and the line before the gap is cut.
            kept = lines[:-1] or lines
            return kept, start + len(kept)
        lines.append(line)
    more = READ_ON.match(rows[-1]) if rows else None
    return lines, int(more[1]) if more else 0
