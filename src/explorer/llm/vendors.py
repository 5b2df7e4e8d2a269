"""The registration of a vendor of models: the entry point `explorer.models` names a `Vendor`.

Every command reads a vendor's settings and facts, so the module of a `Vendor` imports no SDK and no network library;
the function that opens its client imports them.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from explorer.llm.options import Timeouts
from explorer.schema.errors import ConfigError
from explorer.schema.messages import LLMClient
from explorer.schema.model_options import Price, Tier
from explorer.schema.network import Network
from explorer.schema.setting import ExtensionSettings, Setting, declared_setting

ANTHROPIC = "anthropic"
ANTHROPIC_URL = "https://api.anthropic.com"
OPENAI_RESPONSES = "openai-responses"
OPENAI_CHAT = "openai-chat"
OPENAI_TURNS = frozenset({OPENAI_CHAT, OPENAI_RESPONSES})
"""The `provider` of turns from a server of OpenAI's kind, for each of its APIs."""

OFFICIAL_HOST = "api.openai.com"
OPENAI_URL = f"https://{OFFICIAL_HOST}/v1"


def is_official(base_url: str) -> bool:
    """Return whether a URL is OpenAI's own, regional hosts included."""
    return is_host(base_url, OFFICIAL_HOST)


def is_host(base_url: str, host: str) -> bool:
    """Return whether a URL's host is the given one, or ends in it, as regional hosts do."""
    try:
        name = urlsplit(base_url).hostname or ""
    except ValueError:
        return False
    return name == host or name.endswith((f".{host}", f"-{host}"))


S = TypeVar("S", bound=ExtensionSettings)
RESERVED_PREFIXES = frozenset({"offline", "auto"})
"""Prefixes that no vendor may have."""


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """What opening a vendor's client needs, in addition to its own settings."""

    network: Network = field(default_factory=Network)
    """The proxies and authorities of the user's network."""
    price: Price | None = None
    """The user's price for models without a known one."""
    prefix: str = ""
    """The prefix of the model: the vendor's name, or one of its further prefixes."""
    timeouts: Timeouts | None = None
    """How long to wait for a reply; None: the vendor's default."""


@dataclass(frozen=True, slots=True)
class Server:
    """The server in a vendor's settings."""

    url: str = ""
    """The base URL; empty: not known, so `doctor` sends no request."""
    is_open: bool = False
    """Whether it may answer without a key, as the user's own server does."""
    models: Mapping[Tier, str] = field(default_factory=dict[Tier, str])
    """The default model of each tier; empty: the server is asked for its list."""
    price_list: str = ""
    """The provider of `genai-prices` with its prices and windows; empty: none."""
    has_prompt_cache: bool = False
    """Whether it caches the beginning of requests, so that one request warms the cache for others."""


NO_SERVER = Server()


@dataclass(frozen=True)
class Vendor(Generic[S]):
    """A vendor of models. Users write a model as `NAME:MODEL`."""

    name: str
    """The prefix of its models."""
    settings: type[S]
    open: Callable[[S, ModelAccess], AbstractAsyncContextManager[LLMClient]]
    """Open its client, which sends a request once; retries, rate limits and accounts are added around it.

    Its turns have their cost, if that is known.
    """
    needs: str = ""
    """The field of its settings that must be set, usually its key; empty: none."""
    price: Callable[[str], Price | None] = lambda _model: None
    """Return a model's price by its name; None: not known, so a limit of money needs the user's price."""
    window_tokens: Callable[[str], int | None] = lambda _model: None
    """Return the tokens of a model's context window by its name; None: not known."""
    efforts: tuple[str, ...] = ()
    """The allowed values of effort; empty: any value is sent."""
    prefixes: tuple[str, ...] = ()
    """Further prefixes, such as one for each of its APIs."""
    bare_names: tuple[str, ...] = ()
    """Beginnings of bare names that are its models; of all vendors, the longest beginning that matches counts."""
    url: str = ""
    """The field of its settings with the address of its server; empty: none."""
    model: str = ""
    """The field of its settings with the model of all roles for the automatic choice; empty: none."""
    server: Callable[[S], Server] = lambda _settings: NO_SERVER
    """Return the server in its settings.

    With `models` of the server, or with `list_models`, the vendor takes part in the automatic choice of models.
    """
    list_models: Callable[[S, Network, float], Awaitable[Sequence[str]]] | None = None
    """Return the names of its server's models, within so many seconds; raise `ModelError`."""
    local_servers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Programs that serve its protocol on this machine, by name, with the address that each has by default."""

    @property
    def all_prefixes(self) -> tuple[str, ...]:
        """All its prefixes: its name and the further ones."""
        return (self.name, *self.prefixes)

    def variable(self, of: str) -> str:
        """Return the environment variable of a field of its settings; empty for an empty name."""
        return declared_setting(self.settings, of).variable if of else ""

    @property
    def needed(self) -> Setting | None:
        """The setting that it needs."""
        return declared_setting(self.settings, self.needs) if self.needs else None


@dataclass(frozen=True)
class ConfiguredVendor:
    """A vendor with the user's settings for it."""

    vendor: Vendor[Any]
    settings: ExtensionSettings

    @property
    def server(self) -> Server:
        """The server in its settings."""
        return self.vendor.server(self.settings)

    @property
    def has_needed(self) -> bool:
        """Whether the setting that it needs is set."""
        return bool(self._value(self.vendor.needs)) if self.vendor.needs else True

    @property
    def needed(self) -> str:
        """The value of the setting that it needs, usually its key; empty where it needs or has none."""
        return self._value(self.vendor.needs) if self.vendor.needs else ""

    @property
    def is_ready(self) -> bool:
        """Whether it can be used: the setting that it needs is set, or its server works without."""
        return self.has_needed or self.server.is_open

    @property
    def is_automatic(self) -> bool:
        """Whether it takes part in the automatic choice of models."""
        return bool(self.server.models) or self.vendor.list_models is not None

    @property
    def model(self) -> str:
        """The model in its settings; empty: none."""
        return self._value(self.vendor.model) if self.vendor.model else ""

    def at(self, url: str) -> Self:
        """Return the vendor with another address."""
        return replace(self, settings=self.settings.model_copy(update={self.vendor.url: url}))

    def _value(self, name: str) -> str:
        value = getattr(self.settings, name)
        return str(value.get_secret_value() if isinstance(value, SecretStr) else value).strip()


def check_effort(vendor: Vendor[Any] | None, model: object, effort: str) -> None:
    """Check, before a request is sent, that a model's vendor knows the value of effort.

    Args:
        vendor: The model's vendor; None: the offline client, which takes any value.
        model: The model, for the error.
        effort: How much it is to reason; empty: not set.

    Raises:
        ConfigError: The vendor does not know the value; the hint has the known ones.
    """
    known = vendor.efforts if vendor else ()
    if effort and known and effort not in known:
        message = f"{model} does not take the effort {effort!r}"
        raise ConfigError(message, hint=f"one of {', '.join(known)}: --effort VALUE, or --effort ROLE=VALUE")


def with_prefix(vendors: Iterable[Vendor[Any]], prefix: str) -> Vendor[Any] | None:
    """Return the vendor of a prefix; None without one."""
    return next((vendor for vendor in vendors if prefix in vendor.all_prefixes), None)
