"""Options of a vendor's client: address, key, timeouts, and the bounds of a reply with the meter that counts.

A broken or hostile server may send a reply without an end. Each bound is far above what any reply in use needs, and
small enough that a process with a reply at all its bounds at once takes at most 300 MB.
"""

from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from explorer.schema.errors import ConfigError, CredentialsError, ModelError, ModelFault
from explorer.schema.model_options import Price
from explorer.schema.network import Network

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReplyBounds:
    """The most that is read of one reply. A reply that reaches a bound ends with an error that names it."""

    interim_answers: int = 100
    """The number of interim answers (status 1xx) before the answer; servers send one or two."""
    header_count: int = 128
    """The number of response headers; vendors send about 30."""
    header_bytes: int = 64 * 1024
    """The size of all response headers together."""
    encodings: int = 2
    """The number of content encodings on top of each other; one is in use."""
    error_bytes: int = 64 * 1024
    """The size of the body of an error or a redirect. The rest is not read, without an error."""
    error_s: float = 10.0
    """The seconds for such a body to arrive; then the part that has come is used."""
    body_bytes: int = 128 * MIB
    """The size of a reply, decompressed and with its framing: 128,000 tokens in events of 400 bytes are 50 MB."""
    list_bytes: int = 4 * MIB
    """The size of a list of models; the longest in use, with 500 models and their prices, has about 1 MB."""
    event_bytes: int = 8 * MIB
    """The size of an event, or of a reply that is not streamed: 128,000 tokens in one event have about 1 MB."""
    event_values: int = 500_000
    """The number of JSON values in one event: an empty object of two bytes takes 64 in memory."""
    events: int = 1_000_000
    """The number of events of one reply: 128,000 tokens, sent letter by letter."""
    chars_per_token: int = 1_024
    """The characters kept for each token that the request allows.

    The longest tokens in use have 128 characters, and servers may count in another way.
    """
    least_chars: int = MIB
    """The characters kept however few tokens the request allows."""
    most_chars: int = 12 * MIB
    """The characters kept however many tokens the request allows; one takes up to four bytes, several times."""
    parts: int = 2_000
    """The number of blocks of one reply, calls included: a large team may get a turn of 500 calls."""
    id_chars: int = 256
    """The length of a call's id or name; vendors' have up to 64."""

    def kept_chars(self, max_output_tokens: int) -> int:
        """Return how many characters a reply may have."""
        return min(self.most_chars, max(self.least_chars, self.chars_per_token * max_output_tokens))


BOUNDS = ReplyBounds()
"""The default bounds."""

_VALUE_CHARS = 64
"""The characters that a JSON value counts in addition to its own: about what it takes in memory."""
_LONG_CHARS = 64 * 1024
"""The length from which an event's values are counted."""


class ReplyMeter:
    """Counts what is kept of one reply; each count costs the same however much has come before.

    Args:
        endpoint: The server, for error messages.
        max_output_tokens: The request's limit of the reply.
        bounds: The bounds.

    Raises:
        ModelError: A bound is reached (oversized); raised by each method.
    """

    def __init__(self, endpoint: object, max_output_tokens: int, bounds: ReplyBounds = BOUNDS) -> None:
        self._endpoint = endpoint
        self._bounds = bounds
        self._most_chars = bounds.kept_chars(max_output_tokens)
        self._chars = 0
        self._parts = 0

    def keep_text(self, text: str) -> None:
        """Count a piece of text, thinking or arguments."""
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
        ModelError: It has too many values (oversized).
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


NO_KEY = SecretStr("")

LOCAL_KEY = "local"
"""The key for servers that need none, because the SDK requires one."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for a reply. Only content counts: a server can ping for ever."""

    connect_s: float = 15.0
    first_content_s: float = 120.0
    """Seconds from the request to the first content; long, because prompts are read and local models loaded."""
    idle_s: float = 60.0
    """Seconds between two pieces of content."""
    total_s: float = 600.0
    """Seconds for the whole turn."""


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How to reach a provider."""

    base_url: str = ""
    """The base URL; empty: the provider's own."""
    key: SecretStr = NO_KEY
    timeouts: Timeouts = field(default_factory=Timeouts)
    price: Price | None = None
    """The price of models without a known one."""
    bounds: ReplyBounds = BOUNDS
    """The most that is read of a reply."""
    network: Network = field(default_factory=Network)
    """The proxies and authorities of the user's network."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server, for error messages."""

    name: str
    """The provider's name for people."""
    base_url: str
    key_setting: str
    url_setting: str
    secret: SecretStr = NO_KEY
    """The key, which is removed from the server's texts."""
    network: Network = field(default_factory=Network)
    """The user's network, for errors that name the proxy or the certificates."""
    is_default: bool = False
    """Whether it is the provider's own address, not one of the settings."""
    wants_v1: bool = True
    """Whether addresses of its kind end in `/v1`; False where the vendor's SDK adds that."""

    def __str__(self) -> str:
        """Return its name and address, without a password."""
        return f"{self.name} at {public_url(self.base_url)}"


def public_url(url: str) -> str:
    """Return a URL without user, password, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def check_url(url: str, setting: str) -> None:
    """Check that a setting is the address of a server.

    Raises:
        ConfigError: It is not an http or https URL with a host.
    """
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_url = False
    if not is_url:
        hint = "write it with its scheme, for example http://127.0.0.1:11434/v1"
        raise ConfigError(f"{setting} is not the URL of a server", hint=hint)


def key_text(key: SecretStr, setting: str) -> str:
    """Return the key for a header; `LOCAL_KEY` without one, for servers that need none.

    Raises:
        CredentialsError: It has characters that no key has, as a pasted text may.
    """
    text = key.get_secret_value().strip()
    if not (text.isascii() and text.isprintable()):
        raise CredentialsError(f"{setting} contains characters that no key has", hint=f"copy {setting} once more")
    return text or LOCAL_KEY
