"""What opening a vendor's client takes: address, key, patience and bounds."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from explorer.llm.bounds import BOUNDS, ReplyBounds
from explorer.schema.errors import ConfigError, CredentialsError
from explorer.schema.model_options import Price
from explorer.schema.network import Network

NO_KEY = SecretStr("")

LOCAL_KEY = "local"
"""Sent where a server wants no key but the SDK insists on one."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Patience with a reply. Only content counts as life: a server can ping for ever."""

    connect_s: float = 15.0
    first_content_s: float = 120.0
    """From the request to the first content; long, because prompts are read and local models loaded."""
    idle_s: float = 60.0
    """Between two pieces of content."""
    total_s: float = 600.0
    """For the whole turn."""


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How to reach a provider."""

    base_url: str = ""
    """Empty: the provider's own."""
    key: SecretStr = NO_KEY
    timeouts: Timeouts = field(default_factory=Timeouts)
    price: Price | None = None
    """Used for models without a known price."""
    bounds: ReplyBounds = BOUNDS
    """The most that is read of a reply."""
    network: Network = field(default_factory=Network)
    """The proxies and authorities of the user's network."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go, in words for error messages."""

    name: str
    """The provider's name for people."""
    base_url: str
    key_setting: str
    url_setting: str
    secret: SecretStr = NO_KEY
    """The key, so that it can be struck out of anything a server says."""
    network: Network = field(default_factory=Network)
    """What connections go through, so that a failure names the proxy or the certificates that are in the way."""
    is_default: bool = False
    """Whether it is the provider's own address, which the user did not write."""

    @property
    def wants_v1(self) -> bool:
        """Whether the addresses of its kind end in a version; the Anthropic SDK adds that itself."""
        return self.url_setting != "ANTHROPIC_BASE_URL"

    def __str__(self) -> str:
        """Name and address, without any password in it."""
        return f"{self.name} at {public_url(self.base_url)}"


def public_url(url: str) -> str:
    """Return a URL without user, password, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def check_url(url: str, setting: str) -> None:
    """Refuse what cannot be the address of a server, before a client stumbles over it.

    Raises:
        ConfigError: It is no http or https URL with a host.
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
    """Return the key as a header takes it; a stand-in where there is none, for servers that want none.

    Raises:
        CredentialsError: It holds characters that no key has, as a pasted one may.
    """
    text = key.get_secret_value().strip()
    if not (text.isascii() and text.isprintable()):
        raise CredentialsError(f"{setting} holds characters that no key has", hint=f"copy {setting} once more")
    return text or LOCAL_KEY
