"""The adapter for Chat Completions of OpenAI and every compatible server, on the official SDK's transport.

Notices that a server reads only part of what it is sent, and says nothing of it.

Ollama cuts a prompt that is longer than its `num_ctx` (4,096 tokens by default on most machines) and answers with
status 200: it drops the oldest messages, keeps about half of the window, and counts what is left. No field of the
reply tells (ollama/ollama #3839, #8386, #17427, #17889). LM Studio can do the same. But the count gives it away: a
conversation to which something was added cannot have become shorter, and prose has no eight bytes in every token.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from loguru import logger

from explorer.llm.bound_reasoning import BoundReasoning
from explorer.llm.faults import RequestRefusedError
from explorer.llm.openai.dialect import Dialect, dialect_of, learn
from explorer.llm.openai.reply import OpenAIReply
from explorer.llm.openai.request import PROVIDER, to_messages, to_prefix, to_rest
from explorer.llm.openai.sdk import OpenAISdkClient
from explorer.llm.options import ClientOptions
from explorer.llm.prompt_prefix import PromptPrefixes
from explorer.schema.messages import Message, Request, Results, Turn, UserText

BYTES_PER_TOKEN = 4
"""Of prose, code and JSON, about; for the figure that people are told."""
SUSPECT_BYTES_PER_TOKEN = 6
"""More than tokenizers have on average for any of these: with so few tokens, a second sign is enough."""
CERTAIN_BYTES_PER_TOKEN = 8
LEAST_BYTES_PER_TOKEN = 2
"""Fewer than these have: so many bytes that were added are no more tokens than this."""
LEAST_WINDOW_TOKENS = 512
"""No window is smaller. A server that counts less does not count."""
LEAST_GROWTH_BYTES = 64
"""Less that was added may vanish in what a template leaves out."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """One agent's last request."""

    history: tuple[Message, ...]
    bytes: int
    counted: int
    is_cut: bool = False


class CutPrompts:
    """Compares what an adapter sends with what its server counts, for each agent."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], _Sent] = {}
        self._counts_whole: set[str] = set()
        """Models whose server was seen to count whole prompts, and not only what its cache did not hold."""

    def marked(self, request: Request, turn: Turn) -> Turn:
        """Return the turn, with `cut_from_tokens` where its server did not read all of the request."""
        agent = (request.run, request.agent)
        last = self._last.get(agent)
        sent = _Sent(request.history, shown_bytes(request), turn.usage.input_tokens)
        if last is not None and _goes_on(last, request):
            if _is_whole(last, sent):
                self._counts_whole.add(request.model)
            sent = replace(sent, is_cut=_is_cut(last, sent, counts_whole=request.model in self._counts_whole))
        self._last[agent] = sent
        return turn.model_copy(update={"cut_from_tokens": sent.bytes // BYTES_PER_TOKEN}) if sent.is_cut else turn


def _goes_on(last: _Sent, request: Request) -> bool:
    """Whether a request only adds to the one before. Messages are the same objects all along."""
    pairs = zip(last.history, request.history, strict=False)
    return len(last.history) <= len(request.history) and all(old is new for old, new in pairs)


def _is_whole(last: _Sent, sent: _Sent) -> bool:
    """Whether the count grew by what was added, and is more than that alone can be."""
    added = sent.bytes - last.bytes
    grew = sent.counted - last.counted
    return grew * SUSPECT_BYTES_PER_TOKEN >= added > 0 and sent.counted * LEAST_BYTES_PER_TOKEN > added


def _is_cut(last: _Sent, sent: _Sent, *, counts_whole: bool) -> bool:
    """Whether fewer tokens were counted than were sent.

    A few servers count only what their cache did not hold: such a count is no larger than what was added can be.
    Reasoning that a template leaves out makes a prompt shorter, but no shorter than what is shown.
    """
    if sent.counted < LEAST_WINDOW_TOKENS or sent.counted * SUSPECT_BYTES_PER_TOKEN >= sent.bytes:
        return False
    added = sent.bytes - last.bytes
    if last.is_cut or added < LEAST_GROWTH_BYTES:
        return last.is_cut
    has_shrunk = sent.counted <= last.counted
    if counts_whole:
        return has_shrunk or sent.counted * CERTAIN_BYTES_PER_TOKEN < sent.bytes
    return has_shrunk and sent.counted * LEAST_BYTES_PER_TOKEN > added


def shown_bytes(request: Request) -> int:
    """Return how many bytes of text a request shows its model in any template: no reasoning, no names, no wrapping."""
    tools = sum(len(f"{tool.name}{tool.description}{tool.parameters}") for tool in request.tools)
    return len(request.system.encode("utf-8", "replace")) + tools + sum(map(_bytes, _texts(request.history)))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _texts(history: Iterable[Message]) -> Iterable[str]:
    for message in history:
        if isinstance(message, UserText):
            yield message.text
        elif isinstance(message, Results):
            yield from (result.content for result in message.results)
        else:
            yield message.text
            yield from (str(call.arguments) for call in message.calls if call.arguments)


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
