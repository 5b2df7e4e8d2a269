"""Advice on what would work when a server refuses what the settings ask for: another API, another effort."""

import re

from explorer.llm.faults import RequestRefusedError
from explorer.llm.vendors import OPENAI_CHAT, OPENAI_RESPONSES
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import LLMClient, Request, Turn

NO_SUCH_ROUTE = frozenset({404, 405, 501})
"""Statuses of a server that does not have an API at all."""

_CHAT_PATH = "/v1/chat/completions"
"""The path of that API on servers of OpenAI's kind; with another path, the address is wrong."""

_RESPONSES_ONLY = re.compile(r"v1/responses")
"""Part of the text with which OpenAI's Chat Completions refuses some models, or refuses them with tools."""

_ABOUT_EFFORT = re.compile(r"effort", re.IGNORECASE)


class AdvisingClient:
    """A client whose refusals name the setting that works.

    Args:
        client: An adapter.
        api: Its API, such as `openai-responses` or `openai-chat`.
    """

    def __init__(self, client: LLMClient, api: str) -> None:
        self._client = client
        self._api = api

    async def generate(self, request: Request) -> Turn:
        """Send a request once.

        Raises:
            ModelError: No turn came.
        """
        try:
            return await self._client.generate(request)
        except ModelError as error:
            advised = self._with_advice(request, error)
            if advised is None:
                raise
            # The status is kept: a refusal by its status is not billed.
            advised.status, advised.code, advised.is_unsent = error.status, error.code, error.is_unsent
            raise advised from error

    def _with_advice(self, request: Request, error: ModelError) -> ModelError | None:
        """Return the error with advice for the user; None for any other failure."""
        if self._api == OPENAI_CHAT and _RESPONSES_ONLY.search(error.message):
            return _other_api("Chat Completions", f"{OPENAI_RESPONSES}:{request.model}", error)
        if error.fault is not ModelFault.REJECTED:
            return None
        if error.status in NO_SUCH_ROUTE:
            return self._without_route(request, error)
        refused_value = f"Unsupported value: '{request.effort}'"
        if request.effort and (refused_value in error.message or _ABOUT_EFFORT.search(error.message)):
            message = f"{request.model} does not take the effort {request.effort!r}; {error.message}"
            return ModelError(
                ModelFault.UNSUPPORTED, message, hint="name another: --effort VALUE, or --effort ROLE=VALUE"
            )
        return None

    def _without_route(self, request: Request, error: ModelError) -> ModelError | None:
        """Return the advice for a server that has nothing at the API's path; None where the server named the cause."""
        refusal = error.refusal if isinstance(error, RequestRefusedError) else None
        if refusal is not None and refusal.cure is not None:
            return None
        if self._api == OPENAI_RESPONSES:
            return _other_api("the Responses API", f"{OPENAI_CHAT}:{request.model}", error)
        is_address_right = refusal is not None and refusal.page is None and refusal.url.endswith(_CHAT_PATH)
        if self._api == OPENAI_CHAT and is_address_right:
            return _other_api("Chat Completions", f"{OPENAI_RESPONSES}:{request.model}", error)
        # The address is wrong: nothing of the run can work before the user corrects it.
        return ModelError(ModelFault.UNSUPPORTED, error.message, hint=error.hint)


def _other_api(refused: str, works: str, error: ModelError) -> ModelError:
    message = f"the server does not answer through {refused}; use --model {works} ({error.message})"
    return ModelError(ModelFault.UNSUPPORTED, message, hint=f"--model {works}")
