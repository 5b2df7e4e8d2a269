"""The adapter for Anthropic's Messages API, on the official SDK's transport, authentication and error mapping."""

from explorer.llm.anthropic.reply import AnthropicReply
from explorer.llm.anthropic.request import DEFAULT_URL, PROVIDER, REASONING, Histories, to_prefix, to_rest
from explorer.llm.history import BoundReasoning
from explorer.llm.options import ClientOptions, Endpoint
from explorer.llm.prompt_cache import PromptPrefixes
from explorer.llm.sdk_client import Sdk, SdkClient
from explorer.schema.messages import Request, Turn


class AnthropicClient(SdkClient):
    """Asks Claude models.

    The SDK's typed calls and its stream helper are not used: they walk the whole history at every turn, and the
    helper repairs cut-off arguments and takes a stream without an end for a success.
    """

    def __init__(self, options: ClientOptions) -> None:
        base_url = options.base_url or DEFAULT_URL
        settings = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
        endpoint = Endpoint(
            "Anthropic", base_url, *settings, options.key, options.network, is_default=not options.base_url
        )
        super().__init__(options, endpoint, Sdk.imported("anthropic", "AsyncAnthropic"), "/v1/messages")
        self._prefixes = PromptPrefixes(to_prefix)
        self._histories = Histories()
        self._reasoning = BoundReasoning(PROVIDER)

    async def generate(self, request: Request) -> Turn:
        """Ask once and return the complete turn.

        Raises:
            ModelError: No turn came; nothing of the attempt may be used.
        """
        reply = AnthropicReply(self._endpoint, self._meter(request))
        bound = self._reasoning.before(request)
        body = self._prefixes.body(request, self._histories.messages(request, bound.kept), to_rest(request))
        await self._exchange(body, reply)
        turn = reply.turn(request.model)
        if reply.has_true_reasoning and any(block.get("type") in REASONING for block in turn.blocks):
            turn = turn.model_copy(update={"bound_to": bound.digest})
        return self._priced(turn, request, PROVIDER)
