"""Asks OpenAI-compatible servers which models they have."""

import asyncio
import json

import httpx2
from pydantic import SecretStr

from explorer.llm.faults import model_error, read_refusal, unreachable
from explorer.llm.foreign_answers import probed_error, web_page
from explorer.llm.guards import guards
from explorer.llm.models import DIRECT, LIST_S
from explorer.llm.options import BOUNDS, NO_KEY, Endpoint, key_text
from explorer.llm.wire_json import as_object, as_objects, as_text
from explorer.network.client_options import client_ways
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.network import Network


async def list_models(
    base_url: str, key: SecretStr = NO_KEY, timeout_s: float = LIST_S, network: Network = DIRECT
) -> tuple[str, ...]:
    """Return the names of a server's models, without those that are no chat models by their names.

    Raises:
        ModelError: The server cannot be reached, refuses, or has no model.
    """
    endpoint = Endpoint("the OpenAI-compatible server", base_url, "OPENAI_API_KEY", "OPENAI_BASE_URL", key, network)
    headers = {"Authorization": f"Bearer {key_text(key, endpoint.key_setting)}"}
    url = base_url.rstrip("/") + "/models"
    try:
        async with (
            asyncio.timeout(timeout_s),  # For the whole request: the client's own timeout is for each piece.
            httpx2.AsyncClient(timeout=timeout_s, follow_redirects=True, **client_ways(network, base_url)) as client,
        ):
            client.event_hooks = guards(endpoint, BOUNDS, BOUNDS.list_bytes)
            response = await client.get(url, headers=headers)
    except TimeoutError as error:
        raise unreachable(endpoint, f"the list of its models did not come within {timeout_s:g} s") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise await probed_error(error, endpoint) from error
    if not response.is_success:
        raise model_error(read_refusal(response), endpoint)
    if response.headers.get("content-type", "").lower().startswith("text/html"):
        raise web_page(response.text, response.status_code, endpoint)
    names = _names(response.text)
    if not names:
        hint = "load a model there, or name one: --model NAME"
        raise ModelError(ModelFault.UNKNOWN_MODEL, f"{endpoint} lists no models", hint=hint)
    return names


def _names(text: str) -> tuple[str, ...]:
    try:
        body = as_object(json.loads(text))
    except (ValueError, RecursionError):
        return ()
    names = [name for item in as_objects(body.get("data")) if (name := as_text(item.get("id")))]
    return tuple(name for name in names if "embed" not in name.lower() and len(name) <= BOUNDS.id_chars)
