"""The size of a conversation, and what remains of results that are cleared."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from explorer.schema.messages import CallResult, Message, Results, Turn, UserText
from explorer.text.rendering import ModelText, beginning_of, code, codes, own, render
from explorer.text.token_bounds import most_tokens

CLEARED_CHARS = 1_200
"""Results up to this length are never cleared: their replacement is hardly shorter."""
KEPT_CHARS = 400
"""The length that is kept of the beginning of a cleared result."""
LINE_CHARS = 600
"""An estimate of what takes the place of a cleared result."""
MAX_NAMED = 40
"""Limit of source ids and paths that are named in its place."""
LOAD_SKILL = "load_skill"
NEVER_CLEARED = frozenset({"call_agent", "list_files", "list_sources", LOAD_SKILL})
"""Tools whose results stay: what helpers answered, what says which files and sources there are, and methods."""
PLANS = ("plan", "todo")
"""First words of the names of files with an agent's plan, whose content stays, too."""
FIRST_WORD = re.compile(r"[a-z]+")
WRAPPING_BYTES = 60
"""The bytes of names, ids and brackets around one text in a request."""
COMPACTION_TURNS = 8
"""A second compaction within so many turns, with nothing found in between, counts as no progress."""
BYTES_PER_TOKEN = 4
"""An estimate for prose and JSON, until a provider has counted; it is not a bound."""
LEAST_MEASURED_BYTES = 2_000
"""The least size of messages of which a provider's count says how many tokens a byte has."""
LEAST_PLAUSIBLE = 1 / 4
"""The least plausible share of the estimate by bytes: a server that reports fewer tokens does not count."""


@dataclass
class ContextSize:
    """The size of an agent's conversation."""

    window_tokens: int | None = None
    """The estimated tokens of the smallest request that the provider refused as too long; None without one."""
    made_at: int | None = None
    """The number of turns taken when the last forced compaction happened."""
    summed_at: int | None = None
    """The same for the last summary."""
    compactions: int = 0
    """The number of forced compactions in a row with nothing found between them."""
    _tokens_per_byte: float = 1 / BYTES_PER_TOKEN
    """What the provider counted of the latest messages: code and some scripts have more than prose."""
    _counted_tokens: int = 0
    _counted_messages: int = 0
    _bytes: list[int] = field(default_factory=list[int])
    _total_bytes: int = 0
    _most_tokens: list[int] = field(default_factory=list[int])
    _clearable: list[int] = field(default_factory=list[int])

    def bytes_of(self, messages: Sequence[Message]) -> list[int]:
        """Return the approximate size of each message in bytes; each is measured once."""
        fresh = [bytes_of(message) for message in messages[len(self._bytes) :]]
        self._total_bytes += sum(fresh)
        self._bytes += fresh
        return self._bytes

    def clearable_of(self, messages: Sequence[Message]) -> list[int]:
        """Return about how many characters clearing each message would free; each is measured once."""
        fresh = messages[len(self._clearable) :]
        self._clearable += [clearable_chars(one) if isinstance(one, Results) else 0 for one in fresh]
        return self._clearable

    def counted(self, messages: Sequence[Message]) -> tuple[int, int]:
        """Return the provider's count of tokens up to the last reply (0: none), and the bytes that came since."""
        sizes = self.bytes_of(messages)
        return self._counted_tokens, sum(sizes[self._counted_messages :]) if self._counted_tokens else self._total_bytes

    def counted_at_most(self, messages: Sequence[Message]) -> tuple[int, int]:
        """Return the provider's count of tokens up to the last reply (0: none), and the most that can have come since.

        Each message is measured once.
        """
        self._most_tokens += map(most_tokens_of, messages[len(self._most_tokens) :])
        fresh = self._counted_messages if self._counted_tokens else 0
        return self._counted_tokens, sum(self._most_tokens[fresh:])

    def total_bytes(self, messages: Sequence[Message]) -> int:
        """Return the approximate size of all messages in bytes."""
        self.bytes_of(messages)
        return self._total_bytes

    def tokens(self, messages: Sequence[Message], head_bytes: int) -> int:
        """Estimate the tokens of the next request.

        Args:
            messages: The history as it is now.
            head_bytes: Bytes of the request before the history.
        """
        known, fresh = self.counted(messages)
        is_plausible = known >= (head_bytes + self._total_bytes) // BYTES_PER_TOKEN * LEAST_PLAUSIBLE
        return known + self.tokens_of(fresh) if is_plausible and known else self._by_bytes(head_bytes)

    def _by_bytes(self, head_bytes: int) -> int:
        return head_bytes // BYTES_PER_TOKEN + self.tokens_of(self._total_bytes)

    def tokens_of(self, size: int) -> int:
        """Estimate the tokens of so many bytes of messages."""
        return int(size * self._tokens_per_byte)

    def is_compacted_again(self, steps: int, found_at: int) -> bool:
        """Return whether the last compaction was recent and nothing was found since."""
        return self.made_at is not None and steps - self.made_at <= COMPACTION_TURNS and found_at <= self.made_at

    def take_turn(self, turn: Turn, messages: Sequence[Message]) -> None:
        """Add a turn, which is the last message."""
        # A journal from elsewhere may claim less than nothing, with which every request would fit a limit.
        is_counted = turn.usage.input_tokens > 0 and not turn.is_estimated and not turn.cut_from_tokens
        if is_counted and self._counted_tokens:
            self._measure(turn.usage.input_tokens - self._counted_tokens, messages[self._counted_messages : -1])
        self._counted_tokens = max(0, turn.usage.total_tokens) if is_counted else 0
        self._counted_messages = len(messages)

    def _measure(self, tokens: int, messages: Sequence[Message]) -> None:
        """Note how dense messages are that a request had more than the one before; no server counts more than bytes."""
        size = sum(map(bytes_of, messages))
        if size >= LEAST_MEASURED_BYTES:
            self._tokens_per_byte = min(1.0, max(1 / BYTES_PER_TOKEN, tokens / size))

    def change(self) -> None:
        """Forget the sizes of a history that was changed: earlier counts are no longer valid."""
        self._counted_tokens = self._counted_messages = self._total_bytes = 0
        self._bytes.clear()
        self._most_tokens.clear()
        self._clearable.clear()

    def record_compaction(self, steps: int, found_at: int) -> None:
        """Count a forced compaction; clearing and summarising one after the other are one."""
        if self.made_at is not None and steps - self.made_at <= 1:
            return
        self.compactions = self.compactions + 1 if self.is_compacted_again(steps, found_at) else 1
        self.made_at = steps


def bytes_of(message: Message) -> int:
    """Return the approximate size of a message in a request, in bytes."""
    return sum(WRAPPING_BYTES + _bytes(text) for text in _texts_of(message))


def most_tokens_of(message: Message) -> int:
    """Return the most tokens that a message can have in a request."""
    return sum(WRAPPING_BYTES + most_tokens(text) for text in _texts_of(message))


def _texts_of(message: Message) -> list[str]:
    if isinstance(message, UserText):
        return [message.text]
    if isinstance(message, Results):
        return [result.content for result in message.results]
    return [str(message.blocks)]


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def clearable_chars(results: Results) -> int:
    """Return about how many characters clearing these results would free."""
    return sum(len(one.content) - LINE_CHARS for one in results.results if is_clearable(one))


def is_clearable(result: CallResult) -> bool:
    """Return whether a result may be cleared: it is long, and neither an error nor one that an agent works by."""
    if len(result.content) <= CLEARED_CHARS or result.is_error or result.name in NEVER_CLEARED:
        return False
    return not is_plan(str(result.data.get("path", "")))


def is_plan(path: str, names: tuple[str, ...] = PLANS) -> bool:
    """Return whether a file is an agent's plan, by the first word of its name: `plan-2.md`, not `plants.md`."""
    first = FIRST_WORD.match(path.rstrip("/").rpartition("/")[2].lower())
    return first is not None and first[0] in names


def cleared(results: Results) -> Results:
    """Return results with a short text in place of each long one; errors and short ones stay as they are."""
    return Results(
        results=tuple(
            one.model_copy(update={"content": _short_form(one)}) if is_clearable(one) else one
            for one in results.results
        )
    )


def _short_form(result: CallResult) -> ModelText:
    """Return the beginning of a result, its sources and files, and how to read it again."""
    if result.sources:
        example = own('read_source, or read_file(".explorer/sources/{id}.md")', id=code(result.sources[0]))
    else:
        example = own("make the same call again") if result.is_repeatable else own("only its beginning is left")
    return render(
        beginning_of(result.content, KEPT_CHARS),
        own(
            "[cleared to save space: {count} characters; to read it again: {example}]",
            count=len(result.content),
            example=example,
        ),
        _named(own("Its sources:"), result.sources),
        _named(own("Files it wrote:"), result.files),
    )


def _named(heading: ModelText, names: Sequence[str]) -> ModelText:
    more = own("and {count} more", count=len(names) - MAX_NAMED) if len(names) > MAX_NAMED else own("")
    listed = render(codes(names[:MAX_NAMED]), more, between=" ")
    return render(heading, listed, between=" ") if names else own("")
