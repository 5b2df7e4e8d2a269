"""The actions of lean mode: those that are possible now, as a JSON Schema, and the tool calls of each."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, cast

from explorer.lean.progress import (
    MAX_OWN_FILES,
    MAX_SEARCHES,
    READ_PAGE,
    READ_SOURCE,
    SEARCH_FOLDER,
    SEARCH_WEB,
    SENTENCE_CHARS,
    LeanProgress,
)
from explorer.lean.report import report_calls
from explorer.schema.messages import JsonObject
from explorer.text.words import words_of

READ, SEARCH, REPORT = "read", "search", "report"
MAX_FACTS = 5
MAX_SENTENCES = 40
"""The sentences among which facts are chosen: more would be a long grammar for a small machine."""
MAX_ANSWER_CHARS = 500
MAX_QUERY_CHARS = 100
MAX_CHOICES = 12
"""The sources among which the model chooses at once."""

Calls = list[tuple[str, JsonObject]]
"""Tool calls: names with their arguments."""


@dataclass(frozen=True)
class Actions:
    """What the model may do now."""

    read: tuple[str, ...]
    """Ids of sources that it may read; empty: none."""
    search: str
    """The tool that searches; empty: it may not search."""
    report: bool
    facts: tuple[str, ...] = ()
    """Sentences of sources, with their ids, from which the report's facts are chosen: so none is made up."""
    lists_facts: bool = True
    """Whether the form lists the sentences; otherwise the model copies them."""

    @property
    def schema(self) -> JsonObject:
        """The form of the reply, in keywords that all servers know."""
        forms = [
            *([_read_form(self.read)] if self.read else []),
            *([_form(SEARCH, words=_text(MAX_QUERY_CHARS))] if self.search else []),
            *([_report_form(self.facts, lists_facts=self.lists_facts)] if self.report else []),
        ]
        return forms[0] if len(forms) == 1 else {"anyOf": forms}


def actions_of(
    progress: LeanProgress, tools: Collection[str], *, is_full: bool = False, lists_facts: bool = True
) -> Actions:
    """Return what the model may do now.

    Args:
        progress: What the conversation has brought.
        tools: The tools of the run.
        is_full: Whether the conversation takes most of the model's window.
        lists_facts: Whether the form may list sentences of sources.
    """
    facts = _likely_facts(progress)
    if progress.is_ending or is_full:
        return Actions((), "", report=True, facts=facts, lists_facts=lists_facts)
    if progress.own_unread:
        return Actions(tuple(progress.own_unread), "", report=False)
    read = tuple(progress.unread)[:MAX_CHOICES]
    may_search = progress.searches < MAX_SEARCHES and not progress.has_new_hits
    search = _search_tool(progress, tools) if may_search else ""
    may_report = bool(facts) or not (read or search)
    return Actions(read, search, report=may_report, facts=facts, lists_facts=lists_facts)


def _likely_facts(progress: LeanProgress) -> tuple[str, ...]:
    """Return the sentences that share most words with the question, in the order in which they were read."""
    asked = set(words_of(progress.question))
    found = list(progress.facts)
    if len(found) > MAX_SENTENCES:
        best = sorted(found, key=lambda one: -len(asked.intersection(words_of(one))))[:MAX_SENTENCES]
        found = [one for one in found if one in set(best)]
    return tuple(found)


def _search_tool(progress: LeanProgress, tools: Collection[str]) -> str:
    """Return the tool that searches: the user's folder, if there is one; the web only without files of the user's."""
    if SEARCH_FOLDER in tools:
        return SEARCH_FOLDER
    return SEARCH_WEB if SEARCH_WEB in tools and not progress.own else ""


def calls_of(action: JsonObject, progress: LeanProgress, actions: Actions) -> Calls:
    """Return the tool calls of an action; empty for one that has no meaning.

    Args:
        action: The reply; servers that know no form of replies leave anything possible.
        progress: What the conversation has brought.
        actions: What was possible.
    """
    name = action.get("action")
    if name == READ:
        ids = [one for one in _texts(action.get("sources")) if one in progress.unread]
        return [_read_call(one, progress) for one in dict.fromkeys(ids[:MAX_OWN_FILES])]
    if name == SEARCH and actions.search:
        words = str(action.get("words", "")).strip()[:MAX_QUERY_CHARS]
        return [(actions.search, {"query": words})] if words else []
    return report_calls(action, progress) if name == REPORT or "answer" in action else []


def _read_call(source: str, progress: LeanProgress) -> tuple[str, JsonObject]:
    if source in progress.pages:
        return READ_PAGE, {"url": progress.pages[source]}
    return READ_SOURCE, {"source_id": source, "offset": progress.unread[source]}


def _read_form(ids: tuple[str, ...]) -> JsonObject:
    most = min(len(ids), MAX_OWN_FILES)
    return _form(READ, sources={"type": "array", "minItems": 1, "maxItems": most, "items": _choice(*ids)})


def _report_form(sentences: tuple[str, ...], *, lists_facts: bool) -> JsonObject:
    choice = _choice(*sentences) if lists_facts else _text(2 * SENTENCE_CHARS)
    facts: JsonObject = {"facts": {"type": "array", "maxItems": MAX_FACTS, "items": choice}}
    facts = facts if sentences else {}
    return _form(REPORT, **facts, found=_choice("yes", "no"), answer=_text(MAX_ANSWER_CHARS))


def _form(action: str, **fields: JsonObject) -> JsonObject:
    return _object(action=_choice(action), **fields)


def _object(**fields: JsonObject) -> JsonObject:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _choice(*values: str) -> JsonObject:
    return {"type": "string", "enum": list(values)}


def _text(most_chars: int) -> JsonObject:
    return {"type": "string", "minLength": 1, "maxLength": most_chars}


def _texts(value: Any) -> list[str]:  # noqa: ANN401 - a model's JSON
    return [str(one) for one in cast("list[object]", value)] if isinstance(value, list) else []
