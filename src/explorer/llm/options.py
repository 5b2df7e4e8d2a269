"""Options of a vendor's client: address, key, timeouts and bounds."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from explorer.llm.bounds import BOUNDS, ReplyBounds
from explorer.schema.errors import ConfigError, CredentialsError
from explorer.schema.model_options import Price
from explorer.schema.network import Network

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
