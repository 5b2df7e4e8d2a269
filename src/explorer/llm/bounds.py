"""How much of a server's reply is read at most, and the meter that one reply is counted by.

A reply comes from outside, and a broken or hostile server never ends it. Each bound is far above what any reply in
use needs, and small enough that a reply at all its bounds at once fits into 300 MB with the process around it.
"""

from dataclasses import dataclass

from explorer.schema.errors import ModelError, ModelFault

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReplyBounds:
    """The most that is read of one reply. Reaching one ends the reply with an error that names it."""

    header_count: int = 128
    """Response headers; vendors send about 30."""
    header_bytes: int = 64 * 1024
    """Of all response headers together."""
    encodings: int = 2
    """Content encodings on top of each other; one is in use."""
    error_bytes: int = 64 * 1024
    """Of the body of an error or a redirect. The rest is left unread and is no error: the status says enough."""
    error_s: float = 10.0
    """For such a body to arrive; then what has come is used."""
    body_bytes: int = 128 * MIB
    """Of a whole reply, decompressed and with all its framing: 128,000 tokens in events of 400 bytes are 50 MB."""
    list_bytes: int = 4 * MIB
    """Of a list of models; the longest in use, with 500 models and their prices, has about 1 MB."""
    event_bytes: int = 8 * MIB
    """Of one event, or of a reply that is not streamed: a reply of 128,000 tokens in one event has about 1 MB."""
    event_values: int = 500_000
    """Of JSON in one event: an empty object of two bytes takes 64 in memory."""
    events: int = 1_000_000
    """Of one reply: 128,000 tokens, sent letter by letter."""
    chars_per_token: int = 1_024
    """Kept for each token the request allows: the longest tokens in use have 128 characters, and servers may count
    otherwise."""
    least_chars: int = MIB
    """Kept however few tokens the request allows."""
    most_chars: int = 12 * MIB
    """Kept of one reply however many tokens the request allows; a character takes up to four bytes, several times."""
    parts: int = 2_000
    """Blocks of one reply, its calls among them: a turn of 500 calls is one for a large team."""
    id_chars: int = 256
    """Of a call's id or name; vendors' have up to 64."""

    def kept_chars(self, max_output_tokens: int) -> int:
        """Return how many characters a reply to a request may bring."""
        return min(self.most_chars, max(self.least_chars, self.chars_per_token * max_output_tokens))


BOUNDS = ReplyBounds()
"""What holds unless something else is handed in."""

_VALUE_CHARS = 64
"""What a JSON value counts beside its own characters: about what it takes in memory."""
_LONG_CHARS = 64 * 1024
"""A shorter event is not searched for its number of values."""


class ReplyMeter:
    """Counts what is kept of one reply; each count costs the same however much has come before.

    Args:
        endpoint: Who replies, for error messages.
        max_output_tokens: What the request allows.
        bounds: The most of everything.

    Raises:
        ModelError: From each method: a bound is reached (oversized).
    """

    def __init__(self, endpoint: object, max_output_tokens: int, bounds: ReplyBounds = BOUNDS) -> None:
        self._endpoint = endpoint
        self._bounds = bounds
        self._most_chars = bounds.kept_chars(max_output_tokens)
        self._chars = 0
        self._parts = 0

    def keep_text(self, text: str) -> None:
        """Count a piece of text, of thinking or of arguments."""
        self._chars += len(text)
        if self._chars > self._most_chars:
            what = f"{self._most_chars:,} characters of text and arguments in one reply"
            raise oversized(self._endpoint, what, "the model or the server does not stop")

    def keep_json(self, data: str) -> None:
        """Count an event of which more than a text is kept, by its characters and its values."""
        self._chars += _VALUE_CHARS * count_values(data)
        self.keep_text(data)

    def add_part(self) -> None:
        """Count a block or a call."""
        self._parts += 1
        if self._parts > self._bounds.parts:
            raise oversized(self._endpoint, f"{self._bounds.parts:,} blocks and calls in one reply")

    def check_id(self, text: str) -> None:
        """Refuse an id or a name that is too long."""
        if len(text) > self._bounds.id_chars:
            what = f"{self._bounds.id_chars} characters as the id or the name of a call ({len(text):,})"
            raise oversized(self._endpoint, what)


def check_event(data: str, endpoint: object, bounds: ReplyBounds = BOUNDS) -> None:
    """Refuse an event that would take far more memory once parsed than its text.

    Raises:
        ModelError: It holds too many values (oversized).
    """
    if len(data) > _LONG_CHARS and count_values(data) > bounds.event_values:
        raise oversized(endpoint, f"{bounds.event_values:,} JSON values in one event")


def count_values(data: str) -> int:
    """Return an upper bound on the number of values in a JSON text."""
    return 1 + data.count(",") + data.count("{") + data.count("[")


def oversized(endpoint: object, what: str, why: str = "") -> ModelError:
    """Make the error for a bound that was reached."""
    message = f"{endpoint} sent more than {what}; the rest was not read" + (f": {why}" if why else "")
    hint = "check the server, or ask another model: --model NAME"
    return ModelError(ModelFault.OVERSIZED, message, hint=hint)
