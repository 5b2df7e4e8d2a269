"""The adapter for Chat Completions of OpenAI and every compatible server, on the official SDK's transport."""

from collections.abc import Collection

from loguru import logger

from explorer.llm.bound_reasoning import BoundReasoning
from explorer.llm.faults import RequestRefusedError
from explorer.llm.openai.cut_prompts import CutPrompts
from explorer.llm.openai.dialect import Dialect, dialect_of, learn
from explorer.llm.openai.reply import OpenAIReply
from explorer.llm.openai.request import PROVIDER, to_messages, to_prefix, to_rest
from explorer.llm.openai.sdk import OpenAISdkClient
from explorer.llm.options import ClientOptions
from explorer.llm.prompt_prefix import PromptPrefixes
from explorer.schema.messages import Request, Turn

MOST_LESSONS = 8
"""How often one request is written otherwise because the server refused it."""


class OpenAIClient(OpenAISdkClient):
    """Asks OpenAI's models and those of compatible servers: Ollama, LM Studio, llama.cpp, vLLM, gateways."""

    def __init__(self, options: ClientOptions) -> None:
        super().__init__(options, "/chat/completions")
        self._prefixes: dict[Dialect, PromptPrefixes] = {}
        self._dialects: dict[str, Dialect] = {}
        """By model, what it accepts, as far as that is known by now."""
        self._reasoning = BoundReasoning(PROVIDER)
        self._prompts = CutPrompts()

    async def generate(self, request: Request) -> Turn:
        """Ask once and return the complete turn.

        Raises:
            ModelError: No turn came; nothing of the attempt may be used.
        """
        bound = self._reasoning.before(request)
        turn = self._prompts.marked(request, await self._ask(request, bound.kept))
        if any("reasoning_details" in block for block in turn.blocks):
            turn = turn.model_copy(update={"bound_to": bound.digest})
        return self._priced(turn, request, self._priced_as)

    async def _ask(self, request: Request, kept: Collection[int]) -> Turn:
        """Ask, and ask again as the server wants it when its refusal says how."""
        for _ in range(MOST_LESSONS):
            dialect = self._dialect(request.model)
            try:
                return await self._ask_in(dialect, request, kept)
            except RequestRefusedError as error:
                if not self._has_learnt(request.model, dialect, error):
                    raise
        return await self._ask_in(self._dialect(request.model), request, kept)

    async def _ask_in(self, dialect: Dialect, request: Request, kept: Collection[int]) -> Turn:
        heads = self._prefixes.get(dialect)
        if heads is None:
            heads = self._prefixes[dialect] = PromptPrefixes(lambda asked: to_prefix(asked, dialect))
        reply = OpenAIReply(self._endpoint, [tool.name for tool in request.tools], self._meter(request))
        body = heads.body(request, to_messages(request, dialect, kept), to_rest(request, dialect))
        await self._exchange(body, reply)
        return reply.turn(request.model)

    def _dialect(self, model: str) -> Dialect:
        if model not in self._dialects:
            self._dialects[model] = dialect_of(self._endpoint.base_url, model)
        return self._dialects[model]

    def _has_learnt(self, model: str, used: Dialect, error: RequestRefusedError) -> bool:
        """Note what a refusal teaches; say whether the request would now be written otherwise."""
        learnt = learn(self._dialects[model], error.refusal)
        if learnt is not None:
            self._dialects[model] = learnt
            logger.info("{} wants requests otherwise, and gets them so from now on: {}", self._endpoint, error.message)
        return self._dialects[model] != used
