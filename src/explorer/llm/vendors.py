"""What a vendor of models registers: the entry point `explorer.models` names a `Vendor`.

A vendor's settings and facts are read by every command, so the module of a `Vendor` imports no SDK and no library of
the network: what opens its client imports them.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Self, TypeVar

from pydantic import SecretStr

from explorer.llm.options import Timeouts
from explorer.schema.errors import ConfigError
from explorer.schema.messages import LLMClient
from explorer.schema.model_options import Price, Tier
from explorer.schema.network import Network
from explorer.schema.setting import ExtensionSettings, Setting, declared_setting

S = TypeVar("S", bound=ExtensionSettings)
RESERVED_PREFIXES = frozenset({"offline", "auto"})
"""Words for a model that no vendor's prefix may be."""


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """What opening a vendor's client takes, besides its own settings."""

    network: Network = field(default_factory=Network)
    """The proxies and authorities of the user's network."""
    price: Price | None = None
    """The user's price for models without a known one."""
    prefix: str = ""
    """The prefix that the model is asked for with: the vendor's name, or one of its further prefixes."""
    timeouts: Timeouts | None = None
    """How long to wait for a reply; None: as long as suits the vendor."""


@dataclass(frozen=True, slots=True)
class Server:
    """The server that a vendor's settings lead to."""

    url: str = ""
    """Where requests go; empty: not known, so `doctor` does not ask there."""
    is_open: bool = False
    """Whether it may answer without a key, as a server of the user's own does."""
    models: Mapping[Tier, str] = field(default_factory=dict[Tier, str])
    """The model for each tier, where the user names none; empty: the server is asked for its list."""
    price_list: str = ""
    """The provider of `genai-prices` whose prices and windows hold there; empty: none."""
    has_prompt_cache: bool = False
    """Whether requests with the same beginning are cheaper and faster one after the other."""


NO_SERVER = Server()


@dataclass(frozen=True)
class Vendor(Generic[S]):
    """A vendor of models, asked for as `NAME:MODEL`."""

    name: str
    """The prefix of its models."""
    settings: type[S]
    open: Callable[[S, ModelAccess], AbstractAsyncContextManager[LLMClient]]
    """Opens its client, which asks once; retries, limits of rate and the account are around it. Its turns have their
    cost, where it is known."""
    needs: str = ""
    """The field of its settings that must be set, usually its key; empty: none."""
    price: Callable[[str], Price | None] = lambda _model: None
    """USD per million tokens of a model, by its name; None: not known, so a limit of money needs the user's price."""
    window_tokens: Callable[[str], int | None] = lambda _model: None
    """How many tokens a model's conversations may have; None: not known."""
    efforts: tuple[str, ...] = ()
    """The words for how much a model is to reason; empty: any is passed on."""
    prefixes: tuple[str, ...] = ()
    """Further prefixes, for instance one for each of its APIs."""
    bare_names: tuple[str, ...] = ()
    """Beginnings of the names that are its models' without a prefix; the longest that fits counts."""
    url: str = ""
    """The field of its settings with the address of its server; empty: none."""
    model: str = ""
    """The field of its settings that names the model of all roles where the choice is automatic; empty: none."""
    server: Callable[[S], Server] = lambda _settings: NO_SERVER
    """Where its settings lead. With `models` there, or with `list_models`, the vendor takes part in the automatic
    choice of models as soon as it is ready."""
    list_models: Callable[[S, Network, float], Awaitable[Sequence[str]]] | None = None
    """Asks its server for the names of its models, for at most so many seconds. Raises `ModelError`."""
    local_servers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Programs that serve its protocol on this machine, by name, with the address that each has by default."""

    @property
    def all_prefixes(self) -> tuple[str, ...]:
        """Its name and its further prefixes."""
        return (self.name, *self.prefixes)

    def variable(self, of: str) -> str:
        """Return the environment variable of a field of its settings; empty where no field is named."""
        return declared_setting(self.settings, of).variable if of else ""

    @property
    def needed(self) -> Setting | None:
        """The setting that it needs."""
        return declared_setting(self.settings, self.needs) if self.needs else None


@dataclass(frozen=True)
class ConfiguredVendor:
    """A vendor, and what the user set for it."""

    vendor: Vendor[Any]
    settings: ExtensionSettings

    @property
    def server(self) -> Server:
        """Where its requests go."""
        return self.vendor.server(self.settings)

    @property
    def has_needed(self) -> bool:
        """Whether the setting that it needs is set."""
        return bool(self._value(self.vendor.needs)) if self.vendor.needs else True

    @property
    def is_ready(self) -> bool:
        """Whether it can be asked: it has what it needs, or its server may do without."""
        return self.has_needed or self.server.is_open

    @property
    def is_automatic(self) -> bool:
        """Whether it has a model where the user names none."""
        return bool(self.server.models) or self.vendor.list_models is not None

    @property
    def model(self) -> str:
        """The model that its settings name; empty: none."""
        return self._value(self.vendor.model) if self.vendor.model else ""

    def at(self, url: str) -> Self:
        """Return the vendor with another address of its server."""
        return replace(self, settings=self.settings.model_copy(update={self.vendor.url: url}))

    def _value(self, name: str) -> str:
        value = getattr(self.settings, name)
        return str(value.get_secret_value() if isinstance(value, SecretStr) else value).strip()


def check_effort(vendor: Vendor[Any] | None, model: object, effort: str) -> None:
    """Refuse a word for effort that a model's vendor does not know, before anything is asked.

    Args:
        vendor: The model's vendor; None: the stand-in, which takes any word.
        model: The model, for the error.
        effort: How much it is to reason; empty: nothing was said.

    Raises:
        ConfigError: Names the words that there are.
    """
    known = vendor.efforts if vendor else ()
    if effort and known and effort not in known:
        message = f"{model} does not take the effort {effort!r}"
        raise ConfigError(message, hint=f"one of {', '.join(known)}: --effort VALUE, or --effort ROLE=VALUE")


def with_prefix(vendors: Iterable[Vendor[Any]], prefix: str) -> Vendor[Any] | None:
    """Return the vendor that a prefix belongs to; None: no vendor's."""
    return next((vendor for vendor in vendors if prefix in vendor.all_prefixes), None)
