"""OpenAI's SDK for both of its APIs, at OpenAI itself or at a compatible server."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from explorer.llm.options import ClientOptions, Endpoint
from explorer.llm.sdk_client import Sdk, SdkClient
from explorer.llm.vendors import OPENAI_URL, is_official
from explorer.schema.messages import JsonObject, Request

if TYPE_CHECKING:
    import openai


MAX_CACHE_KEY_CHARS = 64


def cache_key(request: Request) -> JsonObject:
    """Return the field by which requests of a role reach the machine whose cache has their beginning."""
    return {"prompt_cache_key": f"{request.run}:{request.role}"[-MAX_CACHE_KEY_CHARS:]} if request.run else {}


class OpenAISdkClient(SdkClient):
    """The base of the two adapters that send over OpenAI's SDK.

    Args:
        options: How to reach the provider.
        path: The path of the API under the base URL.
    """

    def __init__(self, options: ClientOptions, path: str) -> None:
        base_url = options.base_url or OPENAI_URL
        official = is_official(base_url)
        name = "OpenAI" if official else "the OpenAI-compatible server"
        settings = ("OPENAI_API_KEY", "OPENAI_BASE_URL")
        endpoint = Endpoint(name, base_url, *settings, options.key, options.network, is_default=not options.base_url)
        super().__init__(options, endpoint, _sdk(is_for_openai=official), path)
        self._priced_as = "openai" if official else ""
        """The provider of the price list; empty for another server, which sets its own prices."""


def _sdk(*, is_for_openai: bool) -> Sdk:
    sdk = Sdk.imported("openai", "AsyncOpenAI")

    def connect(**given: Any) -> "openai.AsyncOpenAI":
        client: openai.AsyncOpenAI = cast("Any", sdk.connect(**given))
        if not is_for_openai:
            # The SDK reads these from the environment; they are not meant for another server.
            client.organization = None
            client.project = None
        return client

    return replace(sdk, connect=connect)
