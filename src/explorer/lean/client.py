"""A model client for lean mode: the model is shown a short conversation and fills in a form, which becomes tool calls.

Everything behind it stays as it is: the loop, the journal, limits and tools see ordinary turns with ordinary calls.
"""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from explorer.lean.actions import REPORT, SEARCH, Actions, actions_of, calls_of
from explorer.lean.progress import FINISH, WRITE, LeanProgress
from explorer.llm.history import is_begin_of
from explorer.llm.wire_json import filled_in
from explorer.schema.messages import (
    JsonObject,
    LLMClient,
    Message,
    Request,
    Results,
    StopKind,
    ToolCall,
    Turn,
    UserText,
)
from explorer.schema.reasons import NoteReason
from explorer.text.rendering import (
    ModelText,
    WrittenBy,
    block,
    code,
    codes,
    fenced_lines,
    first_chars,
    from_record,
    own,
    render,
)
from explorer.text.sanitize import single_line

FULL_SHARE = 0.6
"""The share of the window from which on only the report is left."""
CHARS_PER_TOKEN = 3
"""Fewer than in prose, so that the window is not overrun."""
QUESTION_CHARS = 200
"""Limit of the question where it is repeated: what is reserved for a request leaves room for so much."""
MAX_PROBLEM_CHARS = 1_500
"""Limit of what is wrong with a report, for the model."""
THINKING = re.compile(r"\A.*?</think>|\A\s*<think>", re.DOTALL)
NOTES = {
    NoteReason.CUT_REPLY: own("Your reply was too long and was cut. Reply again, shorter: two facts, one sentence."),
    NoteReason.ACT: own("Your reply was not one JSON object with an action. Reply with nothing else."),
    NoteReason.EMPTY_REPLY: own("Your reply was empty. Reply with one JSON object with an action."),
}
"""What a model in lean mode reads in place of the engine's notes, which speak of tools; the others are left out."""


@dataclass
class _Shown:
    """One agent's conversation as its model was shown it. Messages stay the same objects, as adapters expect."""

    history: tuple[Message, ...]
    messages: tuple[Message, ...]
    progress: LeanProgress
    actions: Actions


class LeanClient:
    """Asks a small model for one action at a time.

    Args:
        client: The client of the model.
        window_tokens: The model's context window; None: not known.
        is_local: Whether its server is on this machine. Only then forms list sentences of sources: a server of
            somebody else's may show its model the form as words of the engine, outside of all fences.
    """

    def __init__(self, client: LLMClient, window_tokens: int | None = None, *, is_local: bool = False) -> None:
        self._client = client
        self._lists_facts = is_local
        self._most_chars = int((window_tokens or 0) * FULL_SHARE * CHARS_PER_TOKEN)
        self._shown: dict[str, _Shown] = {}

    async def generate(self, request: Request) -> Turn:
        """Ask for the next action, and return it as a turn with tool calls.

        Raises:
            ModelError: No turn came.
        """
        shown = self._show(request)
        is_summary = _reason(request.history[-1]) == NoteReason.SUMMARISE
        form = None if is_summary else shown.actions.schema
        asked = replace(request, tools=(), history=shown.messages, reply_schema=form)
        turn = await self._client.generate(asked)
        return turn if is_summary else _acting(turn, shown)

    def _show(self, request: Request) -> _Shown:
        """Return the conversation for the model; only what is new is added to what it was shown before."""
        last = self._shown.get(request.agent)
        if last is None or not is_begin_of(last.history, request.history):
            progress = LeanProgress()
            last = _Shown((), (), progress, actions_of(progress, ()))
        tools = [tool.name for tool in request.tools]
        messages = list(last.messages)
        for message in request.history[len(last.history) :]:
            last.progress.add(message)
            last.actions = self._actions(last.progress, tools)
            messages.append(_shown_message(message, last.progress, last.actions))
        shown = _Shown(request.history, tuple(messages), last.progress, last.actions)
        self._shown[request.agent] = shown
        return shown

    def _actions(self, progress: LeanProgress, tools: Collection[str]) -> Actions:
        is_full = 0 < self._most_chars < progress.chars
        return actions_of(progress, tools, is_full=is_full, lists_facts=self._lists_facts)


def _reason(message: Message) -> str:
    return message.reason if isinstance(message, UserText) else ""


def _shown_message(message: Message, progress: LeanProgress, actions: Actions) -> Message:
    """Return a message of the history as the model is shown it."""
    if isinstance(message, Turn):
        # Its block is the form as the model filled it in; another model is told what was called.
        return message.model_copy(update={"calls": (), "text": _calls_in_words(message)}) if message.calls else message
    if isinstance(message, Results):
        return UserText(text=render(*map(_shown_result, _worth_showing(message)), _next_step(progress, actions)))
    if message.task is not None or not message.reason:
        return UserText(text=render(from_record(message.text), _next_step(progress, actions), between="\n\n"))
    if message.reason == NoteReason.SUMMARISE:
        return message
    return UserText(text=render(NOTES.get(NoteReason(message.reason), own("")), _next_step(progress, actions)))


def _calls_in_words(turn: Turn) -> str:
    return json.dumps([{call.name: call.arguments} for call in turn.calls], ensure_ascii=False)


def _worth_showing(results: Results) -> list[tuple[str, str]]:
    """Return names and texts of results, without those that say only that a file was written."""
    return [(one.name, one.content) for one in results.results if one.name != WRITE or one.is_error]


def _shown_result(result: tuple[str, str]) -> ModelText:
    name, content = result
    text = from_record(content)
    if name != FINISH:
        return text
    problems = fenced_lines(content)
    faults = block("\n".join(problems), WrittenBy.MODEL) if problems else first_chars(text, MAX_PROBLEM_CHARS)
    return own(
        "The report is not right yet:\n{faults}\nChoose facts that have the figures of the answer.", faults=faults
    )


def _next_step(progress: LeanProgress, actions: Actions) -> ModelText:
    """Return the last lines of what the model reads: the question, and what it may do now."""
    if actions.report and not (actions.read or actions.search):
        return own(
            "\nThe question: {question}\nReply with the action report.",
            question=from_record(single_line(progress.question, QUESTION_CHARS)),
        )
    read = own("read ({ids})", ids=codes(actions.read)) if actions.read else own("")
    others = [code(name) for name, is_possible in ((SEARCH, actions.search), (REPORT, actions.report)) if is_possible]
    return own("Possible now: {names}.", names=render(read, *others, between=", "))


def _acting(turn: Turn, shown: _Shown) -> Turn:
    """Return a turn with the calls that its form stands for; a reply that is none stays text."""
    if turn.stop not in {StopKind.END, StopKind.TOOL_USE}:
        return turn
    calls = calls_of(filled_in(_first_object(turn.text)), shown.progress, shown.actions)
    if not calls:
        return turn
    made = tuple(
        ToolCall(id=f"lean{number:05}", name=name, arguments=arguments)
        for number, (name, arguments) in enumerate(calls, 1)
    )
    return turn.model_copy(update={"text": "", "calls": made, "stop": StopKind.TOOL_USE})


def _first_object(text: str) -> JsonObject:
    """Return the first JSON object of a reply: models repeat it, think aloud before it, or put it in a fence."""
    decoder = json.JSONDecoder()
    text = THINKING.sub("", text, count=1)
    place = text.find("{")
    while place >= 0:
        try:
            found: Any = decoder.raw_decode(text, place)[0]
        except (ValueError, RecursionError):
            place = text.find("{", place + 1)
        else:
            return found
    return {}
