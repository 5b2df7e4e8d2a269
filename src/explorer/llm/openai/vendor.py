"""OpenAI as a vendor of models, and every server that is compatible with one of its two APIs."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, get_args

from pydantic import SecretStr

from explorer.llm.options import ClientOptions, Timeouts, check_url, key_text
from explorer.llm.vendors import OPENAI_CHAT, OPENAI_RESPONSES, OPENAI_URL, ModelAccess, Server, Vendor, is_official
from explorer.schema.messages import LLMClient
from explorer.schema.model_options import Effort, Tier
from explorer.schema.network import Network
from explorer.schema.setting import TEXT, ExtensionSettings, Group, Setting, WithoutTrust, address_of, key_of

NAME = "openai"
TIER_MODELS = {Tier.STRONG: "gpt-6.1-sol", Tier.BALANCED: "gpt-6.1-terra", Tier.FAST: "gpt-6-luna"}
"""The model for each tier; a test checks that the SDK knows them."""
LOCAL_SERVERS = {
    "Ollama": "http://127.0.0.1:11434/v1",
    "LM Studio": "http://127.0.0.1:1234/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
}
"""The default addresses of local servers."""
SELF_HOSTED = Timeouts(first_content_s=600.0, idle_s=120.0, total_s=1800.0)
"""Timeouts of a user's own server, which may read a prompt at 30 tokens a second, and answer at 5."""
REASONING = Timeouts(first_content_s=600.0, idle_s=600.0, total_s=3600.0)
"""Timeouts of models that reason: they send nothing meanwhile, and then the encrypted reasoning in one piece."""


class OpenAISettings(ExtensionSettings):
    """The key, address and model of OpenAI or of a compatible server."""

    model: Annotated[
        str,
        Setting(
            "OPENAI_MODEL",
            TEXT,
            "Model of all roles where the model is `auto` and OpenAI or a compatible server is taken",
            Group.MODELS,
            key="openai_model",
            default="by tier, or the first",
            without_trust=WithoutTrust.MODEL,
        ),
    ] = ""
    url: Annotated[
        str,
        address_of(
            "OPENAI_BASE_URL",
            "OpenAI's API, or a compatible server like `http://127.0.0.1:11434/v1`",
            Group.MODELS,
            default="the SDK's",
        ),
    ] = ""
    key: Annotated[
        SecretStr, key_of("OPENAI_API_KEY", "Key for OpenAI's models, or for the compatible server", Group.MODELS)
    ] = SecretStr("")


def _server(settings: OpenAISettings) -> Server:
    if settings.url and not is_official(settings.url):
        # Another server has its own models and sets its own prices, whatever its models are called.
        return Server(settings.url, is_open=True)
    url = settings.url or OPENAI_URL
    return Server(url, models=TIER_MODELS, price_list=NAME, has_prompt_cache=True)


@asynccontextmanager
async def _open(settings: OpenAISettings, access: ModelAccess) -> AsyncGenerator[LLMClient]:
    """Open the API that the prefix names; without one, Responses at OpenAI's own hosts, which all offer it."""
    from explorer.llm.advice import AdvisingClient  # noqa: PLC0415 - the network's libraries are slow to import
    from explorer.llm.openai.chat import OpenAIClient  # noqa: PLC0415
    from explorer.llm.openai.responses import ResponsesClient  # noqa: PLC0415
    from explorer.llm.sdk_client import LateClient  # noqa: PLC0415

    if settings.url:
        check_url(settings.url, "OPENAI_BASE_URL")
    key_text(settings.key, "OPENAI_API_KEY")
    official = not _server(settings).is_open
    api = access.prefix
    if api not in {OPENAI_RESPONSES, OPENAI_CHAT}:
        api = OPENAI_RESPONSES if official else OPENAI_CHAT
    own = SELF_HOSTED if not official else REASONING if api == OPENAI_RESPONSES else Timeouts()
    options = ClientOptions(settings.url, settings.key, access.timeouts or own, access.price, network=access.network)
    kind = ResponsesClient if api == OPENAI_RESPONSES else OpenAIClient
    async with LateClient(lambda: kind(options)) as client:
        yield AdvisingClient(client, api)


async def _list_models(settings: OpenAISettings, network: Network, timeout_s: float) -> Sequence[str]:
    from explorer.llm.model_list import list_models  # noqa: PLC0415 - the network's libraries are slow to import

    check_url(settings.url or OPENAI_URL, "OPENAI_BASE_URL")
    return await list_models(settings.url or OPENAI_URL, settings.key, timeout_s, network)


VENDOR = Vendor(
    NAME,
    OpenAISettings,
    _open,
    needs="key",
    efforts=get_args(Effort),
    prefixes=(OPENAI_RESPONSES, OPENAI_CHAT),
    # Any name that no other vendor claims: compatible servers have models of all kinds.
    bare_names=("",),
    url="url",
    model="model",
    server=_server,
    list_models=_list_models,
    local_servers=LOCAL_SERVERS,
)
