"""What choosing and opening models needs of a run's settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

from explorer.llm.options import NO_KEY
from explorer.schema.model_options import Price
from explorer.schema.network import Network


@dataclass(frozen=True, slots=True)
class ModelSetup:
    """Which models are asked for, and how each provider is reached."""

    model: str = "auto"
    """For all roles, as `parse_model` reads it; `auto`: the best that is at hand."""
    role_models: Mapping[str, str] = field(default_factory=dict[str, str])
    """By role, over `model`."""
    anthropic_model: str = ""
    """The model of all roles where `model` is `auto` and Anthropic is taken; empty: the tiers' defaults."""
    openai_model: str = ""
    """The same for OpenAI and compatible servers."""
    anthropic_key: SecretStr = NO_KEY
    openai_key: SecretStr = NO_KEY
    anthropic_url: str = ""
    """Empty: the SDK's own default."""
    openai_url: str = ""
    price: Price | None = None
    """Used for models without a known price."""
    network: Network = field(default_factory=Network)
    """The proxies and authorities of the user's network."""
    max_parallel_requests: int = 9
    """To one model."""
