"""How much of a conversation a message takes, and what is left of results that are cleared."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from explorer.schema.messages import CallResult, Message, Results, Turn, UserText

CLEARED_CHARS = 300
"""Results up to this length are never cleared: their replacement is hardly shorter."""
HEADING_CHARS = 160
"""A longer first line is no heading, and is not kept."""
FIRST_FIELD_CHARS = 40
"""Of a JSON object: its first field says whose it is."""
WRAPPING_BYTES = 60
"""Names, ids and brackets around one text on its way."""
COMPACTION_TURNS = 8
"""Room made again within so many turns, with nothing found between, counts as no progress."""
BYTES_PER_TOKEN = 4
"""About right for prose and JSON in any script; a bound it is not."""
LEAST_PLAUSIBLE = 1 / 4
"""Of what the bytes say: a server that counts fewer tokens does not count."""


@dataclass
class ContextSize:
    """What an agent's state knows of its conversation's size."""

    carried_chars: int = 0
    """Size of long results, over all turns since old ones were last cleared: each turn sends all of them again."""
    long_chars: int = 0
    """Size of the results that clearing would shorten, the latest included."""
    window_tokens: int | None = None
    """About how many the provider refused as too many; None as long as it refused none."""
    made_at: int | None = None
    """Number of turns taken when the last forced compaction happened."""
    compactions: int = 0
    """Number of forced compactions in a row with nothing found between them."""
    _counted_tokens: int = 0
    _counted_messages: int = 0
    _bytes: list[int] = field(default_factory=list[int])
    _total_bytes: int = 0

    def bytes_of(self, messages: Sequence[Message]) -> list[int]:
        """About how many bytes each message takes; each is measured once."""
        fresh = [bytes_of(message) for message in messages[len(self._bytes) :]]
        self._total_bytes += sum(fresh)
        self._bytes += fresh
        return self._bytes

    def counted(self, messages: Sequence[Message]) -> tuple[int, int]:
        """Tokens as the provider counted the last request and its reply, and the bytes of what it has not counted."""
        sizes = self.bytes_of(messages)
        return self._counted_tokens, sum(sizes[self._counted_messages :]) if self._counted_tokens else self._total_bytes

    def total_bytes(self, messages: Sequence[Message]) -> int:
        """About how many bytes all messages take."""
        self.bytes_of(messages)
        return self._total_bytes

    def tokens(self, messages: Sequence[Message], head_bytes: int) -> int:
        """About how many tokens the next request has.

        Args:
            messages: The history as it is now.
            head_bytes: Bytes of the request before it.
        """
        known, fresh = self.counted(messages)
        by_bytes = (head_bytes + self._total_bytes) // BYTES_PER_TOKEN
        return by_bytes if known < by_bytes * LEAST_PLAUSIBLE else known + fresh // BYTES_PER_TOKEN

    def is_compacted_again(self, steps: int, found_at: int) -> bool:
        """Return whether the last compaction was recent and nothing was found since."""
        return self.made_at is not None and steps - self.made_at <= COMPACTION_TURNS and found_at <= self.made_at

    def take_turn(self, turn: Turn, messages: int) -> None:
        """A request was sent and answered; the answer is the last of so many messages."""
        self.carried_chars += self.long_chars
        is_counted = turn.usage.input_tokens and not turn.is_estimated and not turn.cut_from_tokens
        self._counted_tokens = turn.usage.total_tokens if is_counted else 0
        self._counted_messages = messages

    def take_results(self, results: Results) -> None:
        """The history has more results."""
        self.long_chars += clearable_chars(results)

    def change(self, messages: Sequence[Message]) -> None:
        """The history is another one: what was counted and measured no longer holds."""
        self._counted_tokens = self._counted_messages = self._total_bytes = self.carried_chars = 0
        self._bytes.clear()
        self.long_chars = sum(clearable_chars(message) for message in messages if isinstance(message, Results))

    def record_compaction(self, steps: int, found_at: int) -> None:
        """Room had to be made; clearing and summarising one after the other are one time."""
        if self.made_at is not None and steps - self.made_at <= 1:
            return
        self.compactions = self.compactions + 1 if self.is_compacted_again(steps, found_at) else 1
        self.made_at = steps


def bytes_of(message: Message) -> int:
    """About how many bytes a message takes on its way to a model."""
    if isinstance(message, UserText):
        return WRAPPING_BYTES + _bytes(message.text)
    if isinstance(message, Results):
        return sum(WRAPPING_BYTES + _bytes(result.content) for result in message.results)
    return WRAPPING_BYTES + _bytes(str(message.blocks))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def clearable_chars(results: Results) -> int:
    """How many characters clearing these results would free."""
    return sum(len(one.content) - len(_line_for(one)) for one in results.results if is_clearable(one))


def is_clearable(result: CallResult) -> bool:
    """Whether a result is long, and no error: from an error the model learns what not to try again."""
    return len(result.content) > CLEARED_CHARS and not result.is_error


def cleared(results: Results) -> Results:
    """Results as a short line each; errors and short ones stay as they are."""
    return Results(
        results=tuple(
            one.model_copy(update={"content": _line_for(one)}) if is_clearable(one) else one for one in results.results
        )
    )


def _line_for(result: CallResult) -> str:
    first = result.content[: HEADING_CHARS + 1].split("\n", 1)[0]
    if len(first) > HEADING_CHARS:
        first = first[:FIRST_FIELD_CHARS] if first.startswith("{") else ""
    return f"{first}\n[cleared to save space: {len(result.content)} characters]".lstrip()
