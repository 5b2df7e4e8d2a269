"""What a conversation in lean mode has brought so far: computed from its messages, so that a resumed run has the same.

From it follows what the model may do next: an action that would bring nothing new is not offered.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from explorer.schema.messages import (
    CallResult,
    JsonObject,
    Message,
    Results,
    ToolCall,
    Turn,
    UserText,
    list_in,
    number_in,
)
from explorer.schema.reasons import NoteReason
from explorer.text.rendering import fenced_lines
from explorer.text.sanitize import single_line
from explorer.text.words import count_words, sentences

READ_SOURCE, READ_PAGE = "read_source", "read_webpage"
SEARCH_FOLDER, SEARCH_WEB = "search_corpus", "web_search"
WRITE, FINISH = "write_file", "finish_exploration"
PAGE_CHARS = 4_000
"""The characters of a source that are read at once: about 1,000 tokens, half a minute of a small machine."""
BEFORE_CHARS = 400
"""The characters before a passage that was found, where a long document is read from there."""
SENTENCE_CHARS = 300
"""Limit of a sentence that can be quoted; of a longer one its beginning can."""
MAX_LOOKUPS = 8
MAX_SEARCHES = 3
MAX_OWN_FILES = 4
"""So many of the user's files are all read before anything is reported."""
END_NOTES = frozenset({NoteReason.WINDING_DOWN, NoteReason.WRAP_UP, NoteReason.ERRORS, NoteReason.REPEATING})
"""Notes after which only the report is left."""


class Fact(NamedTuple):
    """A statement, and the id of the source that says it."""

    words: str
    source: str


@dataclass
class LeanProgress:
    """The question, and what is known, read and left to read; `add` takes the messages in their order."""

    question: str = ""
    own: tuple[str, ...] = ()
    """Ids of the user's files."""
    known: dict[str, None] = field(default_factory=dict[str, None])
    """Ids that may be cited, in the order in which they came."""
    unread: dict[str, int] = field(default_factory=dict[str, int])
    """Where reading goes on in each source that is not read to its end."""
    pages: dict[str, str] = field(default_factory=dict[str, str])
    """Addresses of search hits whose pages were not opened, by id."""
    facts: dict[str, Fact] = field(default_factory=dict[str, Fact])
    """The sentences and lines that were read, by what the model chooses: `S1: It uses 450 watts.`"""
    searches: int = 0
    has_new_hits: bool = False
    """Whether the latest lookup was a search that found something: it is read before anything else is searched for."""
    lookups: int = 0
    chars: int = 0
    """The characters of all messages."""
    is_ending: bool = False
    """Whether only the report is left."""
    _calls: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])

    @property
    def own_unread(self) -> list[str]:
        """The user's files that nobody has begun to read, if they are few."""
        unread = [one for one in self.own if self.unread.get(one) == 0]
        return unread if len(self.own) <= MAX_OWN_FILES else []

    def fact_of(self, said: str) -> Fact | None:
        """Return the fact that a model copied, with or without its source's id; None when nothing read says so."""
        return self.facts.get(said) or next((one for one in self.facts.values() if one.words == said), None)

    def add(self, message: Message) -> None:
        """Take in the next message."""
        if isinstance(message, Turn):
            self._calls = {call.id: call for call in message.calls}
            self.chars += len(str(message.blocks))
        elif isinstance(message, Results):
            for result in message.results:
                self.chars += len(result.content)
                self._add_result(result)
        else:
            self._add_words(message)

    def _add_words(self, message: UserText) -> None:
        self.chars += len(message.text)
        if message.task is not None:
            self.question = message.task.words
            self.searches, self.lookups, self.is_ending = 0, 0, False
            files = [source for _path, source in message.task.files if source]
            self.own = (*self.own, *(one for one in files if one not in self.known))
            for one in files:
                self._know(one, 0)
        self.is_ending = self.is_ending or message.reason in END_NOTES

    def _add_result(self, result: CallResult) -> None:
        call = self._calls.get(result.id)
        arguments = (call.arguments if call else None) or {}
        before = len(self.known)
        match result.name:
            case "read_source":
                self.lookups, self.has_new_hits = self.lookups + 1, False
                self._read(str(arguments.get("source_id", "")), result)
            case "read_webpage":
                self.lookups, self.has_new_hits = self.lookups + 1, False
                self._open(str(arguments.get("url", "")), result)
            case "search_corpus" | "web_search":
                self.lookups, self.searches = self.lookups + 1, self.searches + 1
                lines = fenced_lines(result.content)
                for hit in list_in(result.data, "hits"):
                    self._add_hit(hit, lines)
                self.has_new_hits = len(self.known) > before
            case "finish_exploration":
                # It was refused: what is wrong with the report is corrected from what was read.
                self.is_ending = True
            case _:
                pass
        self.is_ending = self.is_ending or self.lookups >= MAX_LOOKUPS

    def _read(self, source: str, result: CallResult) -> None:
        self.unread.pop(source, None)
        last, total = number_in(result.data, "last"), number_in(result.data, "total")
        if not result.is_error and last < total:
            self.unread[source] = last
        if not result.is_error and source in self.known:
            self._add_sentences(fenced_lines(result.content), source)

    def _open(self, url: str, result: CallResult) -> None:
        for source in [one for one, address in self.pages.items() if address == url]:
            del self.pages[source]
            self.unread.pop(source, None)
        for source in result.sources[:1]:
            # The beginning of a page that was cut is read again, in pages of its own.
            is_whole = result.data.get("last") == result.data.get("total") and not result.data.get("left_out")
            self._know(source, None if is_whole else 0)
            self._add_sentences(fenced_lines(result.content), source)

    def _add_sentences(self, lines: Iterable[str], source: str) -> None:
        for line in lines:
            for sentence in sentences(line) if not line.startswith("#") else ():
                if count_words(sentence) > 1:
                    fact = Fact(_shortened(sentence), source)
                    self.facts.setdefault(f"{source}: {fact.words}", fact)

    def _add_hit(self, hit: Any, lines: Sequence[str]) -> None:  # noqa: ANN401 - a result's data is foreign JSON
        facts = cast("JsonObject", hit) if isinstance(hit, dict) else {}
        source, url, offset = facts.get("source"), facts.get("url"), number_in(facts, "offset")
        if not isinstance(source, str) or source in self.known:
            return
        self._know(source, 0 if offset < PAGE_CHARS else offset - BEFORE_CHARS)
        if isinstance(url, str):
            self.pages[source] = url
        place = number_in(facts, "line", -1)
        if 0 <= place < len(lines):
            self._add_sentences([lines[place]], source)

    def _know(self, source: str, offset: int | None) -> None:
        if source not in self.known and offset is not None:
            self.unread[source] = offset
        self.known[source] = None


def _shortened(sentence: str) -> str:
    """Return a sentence, or its beginning up to a word's end."""
    line = single_line(sentence)
    return line if len(line) <= SENTENCE_CHARS else line[:SENTENCE_CHARS].rpartition(" ")[0] or line[:SENTENCE_CHARS]
