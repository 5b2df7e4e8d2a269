"""What a vendor of models registers: the entry point `explorer.models` names a `Vendor`."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import SecretStr

from explorer.schema.messages import LLMClient
from explorer.schema.model_options import Price
from explorer.schema.network import Network
from explorer.schema.setting import ExtensionSettings, Setting, declared_setting

S = TypeVar("S", bound=ExtensionSettings)


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """What opening a vendor's client takes, besides its own settings."""

    network: Network = field(default_factory=Network)
    """The proxies and authorities of the user's network."""
    price: Price | None = None
    """The user's price for models without a known one."""


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
    """The field of its settings that must be set; empty: none."""
    price: Callable[[str], Price | None] = lambda _model: None
    """USD per million tokens of a model, by its name; None: not known, so a limit of money needs the user's price."""
    window_tokens: Callable[[str], int | None] = lambda _model: None
    """How many tokens a model's conversations may have; None: not known."""
    efforts: tuple[str, ...] = ()
    """The words for how much a model is to reason; empty: any is passed on."""

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
    def is_ready(self) -> bool:
        """Whether it has what it needs."""
        if not self.vendor.needs:
            return True
        value = getattr(self.settings, self.vendor.needs)
        return bool(value.get_secret_value() if isinstance(value, SecretStr) else value)

    def open(self, access: ModelAccess) -> AbstractAsyncContextManager[LLMClient]:
        """Open its client."""
        return self.vendor.open(self.settings, access)
