"""Anthropic as a vendor of models: its settings, its models by tier, and how its client is opened."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from pydantic import SecretStr

from explorer.llm.options import ClientOptions, Timeouts, check_url, key_text
from explorer.llm.vendors import ANTHROPIC, ANTHROPIC_URL, ModelAccess, Server, Vendor
from explorer.schema.messages import LLMClient
from explorer.schema.model_options import Tier
from explorer.schema.setting import TEXT, ExtensionSettings, Group, Setting, WithoutTrust, address_of, key_of

TIER_MODELS = {
    Tier.STRONG: "claude-opus-5-5",
    Tier.BALANCED: "claude-sonnet-5-5",
    Tier.FAST: "claude-haiku-5-5",
}
"""The model for each tier; a test checks that the SDK knows them."""


class AnthropicSettings(ExtensionSettings):
    """Key, address and model."""

    model: Annotated[
        str,
        Setting(
            "ANTHROPIC_MODEL",
            TEXT,
            "Model of all roles where the model is `auto` and Anthropic is taken",
            Group.MODELS,
            key="anthropic_model",
            default="by tier",
            without_trust=WithoutTrust.MODEL,
        ),
    ] = ""
    url: Annotated[
        str, address_of("ANTHROPIC_BASE_URL", "Anthropic's API, or a proxy of it", Group.MODELS, default="the SDK's")
    ] = ""
    key: Annotated[SecretStr, key_of("ANTHROPIC_API_KEY", "Key for Anthropic's models", Group.MODELS)] = SecretStr("")


def _server(settings: AnthropicSettings) -> Server:
    return Server(
        url=settings.url or ANTHROPIC_URL,
        is_open=bool(settings.url),
        models=TIER_MODELS,
        price_list=ANTHROPIC,
        has_prompt_cache=True,
    )


@asynccontextmanager
async def _open(settings: AnthropicSettings, access: ModelAccess) -> AsyncGenerator[LLMClient]:
    from explorer.llm.advice import AdvisingClient  # noqa: PLC0415 - the network's libraries are slow to import
    from explorer.llm.anthropic.messages import AnthropicClient  # noqa: PLC0415
    from explorer.llm.sdk_client import LateClient  # noqa: PLC0415

    if settings.url:
        check_url(settings.url, "ANTHROPIC_BASE_URL")
    key_text(settings.key, "ANTHROPIC_API_KEY")
    timeouts = access.timeouts or Timeouts()
    options = ClientOptions(settings.url, settings.key, timeouts, access.price, network=access.network)
    async with LateClient(lambda: AnthropicClient(options)) as client:
        yield AdvisingClient(client, ANTHROPIC)


VENDOR = Vendor(
    ANTHROPIC,
    AnthropicSettings,
    _open,
    needs="key",
    efforts=("low", "medium", "high", "xhigh", "max"),
    bare_names=("claude-",),
    url="url",
    model="model",
    server=_server,
)
