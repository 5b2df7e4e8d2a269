"""The adapter for OpenAI's Responses API, on the official SDK's transport, authentication and error mapping."""

from explorer.llm.bound_reasoning import BoundReasoning
from explorer.llm.openai.responses_reply import ResponsesReply
from explorer.llm.openai.responses_request import PROVIDER, is_reasoning, to_input, to_prefix, to_rest
from explorer.llm.openai.sdk import OpenAISdkClient
from explorer.llm.options import ClientOptions
from explorer.llm.prompt_prefix import PromptPrefixes
from explorer.schema.errors import ModelError
from explorer.schema.messages import Request, Turn

NO_REASONING = "encrypted content is not supported"
"""What a model without reasoning is refused with when its encrypted reasoning is asked for."""


class ResponsesClient(OpenAISdkClient):
    """Asks OpenAI's models through the API made for models that reason and call tools.

    Nothing is stored at the vendor: each request holds the whole conversation, and the encrypted reasoning in it.
    """

    def __init__(self, options: ClientOptions) -> None:
        super().__init__(options, "/responses")
        self._prefixes = PromptPrefixes(to_prefix)
        self._reasoning = BoundReasoning(PROVIDER)
        self._without_reasoning: set[str] = set()
        """Models that do not reason."""

    async def generate(self, request: Request) -> Turn:
        """Ask once, or once more without what the server says it cannot take, and return the complete turn.

        Raises:
            ModelError: No turn came; nothing of the attempt may be used.
        """
        try:
            return await self._ask(request)
        except ModelError as error:
            if not self._learn(request, error):
                raise
        return await self._ask(request)

    def _learn(self, request: Request, error: ModelError) -> bool:
        """Take note of what a server refuses; whether asking again without it makes sense."""
        if NO_REASONING in error.message.lower() and request.model not in self._without_reasoning:
            self._without_reasoning.add(request.model)
            return True
        return False

    async def _ask(self, request: Request) -> Turn:
        reply = ResponsesReply(self._endpoint, self._meter(request))
        bound = self._reasoning.before(request)
        history = to_input(request, bound.kept)
        rest = to_rest(request, wants_reasoning=request.model not in self._without_reasoning)
        body = self._prefixes.body(request, history, rest)
        await self._exchange(body, reply)
        turn = reply.turn(request.model)
        if any(is_reasoning(block) for block in turn.blocks):
            turn = turn.model_copy(update={"bound_to": bound.digest})
        return self._priced(turn, request, self._priced_as)
