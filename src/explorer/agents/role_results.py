"""Results of helpers as data: what a model gives in the form of its role, and what the journal knows.

What the engine knows is not asked of a model: queries and sources are those of the calls, words and sections those of
the files. A result that does not fit is sent back; after that what fits is taken, so that no work is lost for it.
"""

import json
import re
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from explorer.agents.decisions import Decision, note
from explorer.agents.result_schema import ResultSchema
from explorer.agents.roles import Role
from explorer.journal.agent_state import RESULT, AgentState
from explorer.schema.errors import ToolError
from explorer.schema.events import AgentFinished
from explorer.schema.messages import JsonObject, Results
from explorer.schema.reasons import EndCause, NoteReason
from explorer.schema.tool import Tool, ToolContext, ToolResult, schema_for_model
from explorer.schema.toolbox import INVALID, explained
from explorer.text.frontmatter import without_frontmatter
from explorer.text.rendering import own
from explorer.text.sanitize import single_line
from explorer.text.words import count_words

GIVE_RESULT = "give_result"
MAX_RESULT_BYTES = 8_000
MAX_REFUSALS = 2
"""How often a result of one task is sent back; the next one is taken as far as it fits."""
MAX_LISTED = 200
MAX_TITLE_CHARS = 120
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
CODE_BLOCK = re.compile(r"^(`{3,}+|~{3,}+).*?^\1", re.MULTILINE | re.DOTALL)
TOO_LONG = own(
    "{name} was not taken: the result may have {most:,} bytes as JSON; shorten it",
    name=own(GIVE_RESULT),
    most=MAX_RESULT_BYTES,
)


class GivenResult(BaseModel):
    """Arguments of `give_result`: whatever a model gives, to be checked against the form of its role."""

    model_config = ConfigDict(extra="allow")

    summary: str = Field(min_length=1)


class GiveResultTool(Tool[Any]):
    """`give_result`: takes a helper's result in the form of its role, and ends its task."""

    name = GIVE_RESULT
    description = "End your task with its result, in a turn of its own, once your files are written."
    arguments = GivenResult
    activity = "giving its result"
    is_parallel = False
    ends_agent = True

    def __init__(self, form: ResultSchema, refusals: Callable[[str], int]) -> None:
        """Take the form, and a function that returns how often results of an agent's task were refused."""
        self._form = form
        self._refusals = refusals

    @cached_property
    def parameters(self) -> JsonObject:
        """The form as JSON Schema, with the summary."""
        return deepcopy(schema_for_model(self._form.form))

    async def execute(self, arguments: GivenResult, context: ToolContext) -> ToolResult:
        """Take a result that fits; send another one back, twice at most."""
        checked = self._form.checked(arguments.model_dump())
        problem = own("")
        if checked.error is not None:
            words = "{name} was not taken: {why}. Call it again with the whole result; your files stay"
            problem = own(words, name=own(GIVE_RESULT), why=explained(checked.error, self))
        elif len(json.dumps(checked.values, ensure_ascii=False).encode()) > MAX_RESULT_BYTES:
            problem, checked = TOO_LONG, checked._replace(values={})
        if problem and self._refusals(context.agent) < MAX_REFUSALS:
            raise ToolError(problem, data=INVALID)
        data: JsonObject = {RESULT: checked.values} | ({"result_problem": str(problem)} if problem else {})
        return ToolResult(success=True, content=own("Taken."), metadata=data)


def refusals(state: AgentState) -> int:
    """Count the results of an agent's latest task that were sent back."""
    answers = (message.results for message in state.messages[state.began_at :] if isinstance(message, Results))
    return sum(one.name == GIVE_RESULT and one.is_error for results in answers for one in results)


def asked_for_result(role: Role, state: AgentState, decision: Decision | None) -> Decision | None:
    """Replace a helper's end by a note, once, when it ended with text and its role requires a result."""
    is_text = isinstance(decision, AgentFinished) and decision.cause is EndCause.ANSWERED
    if not is_text or not role.result.required or NoteReason.RESULT in state.notes:
        return decision
    return note(state, NoteReason.RESULT)


def result_of(role: Role, state: AgentState, read: Callable[[str], str]) -> JsonObject:
    """Return a helper's result in the form of its role; empty where that declares none.

    Args:
        role: Its role.
        state: The helper, at its end.
        read: Returns the text of a file of the run.
    """
    texts = [without_frontmatter(text) for path in state.files if (text := _text(read, path))]
    known: JsonObject = {
        "search_queries": list(dict.fromkeys(single_line(query) for query, _ in state.searches.values() if query))[
            :MAX_LISTED
        ],
        "total_results": sum(count for _, count in state.searches.values()),
        "sources_found": sorted(state.sources, key=_number)[:MAX_LISTED],
        "word_count": sum(map(count_words, texts)),
        "sections": _sections(texts)[:MAX_LISTED],
    }
    return {name: known[name] for name in role.result.derived} | state.result


def _text(read: Callable[[str], str], path: str) -> str:
    try:
        return read(path)
    except ToolError:
        return ""  # it is no text, or is gone


def _number(source: str) -> tuple[int, str]:
    return (int(source[1:]) if source[1:].isdecimal() else 0), source


def _sections(texts: Iterable[str]) -> list[str]:
    bare = (CODE_BLOCK.sub("", text) for text in texts)
    return [single_line(title, MAX_TITLE_CHARS) for text in bare for title in HEADING.findall(text)]
