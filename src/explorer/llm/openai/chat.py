"""The adapter for Chat Completions of OpenAI and every compatible server, on the official SDK's transport."""

from collections.abc import Collection, Mapping

from loguru import logger

from explorer.llm.faults import RequestRefusedError
from explorer.llm.history import (
    BoundReasoning,
    Histories,
    accepted_name,
    arguments_text,
    is_own,
    is_short_id,
    projected_ids,
)
from explorer.llm.openai.compatible import CutPrompts, plain
from explorer.llm.openai.dialect import (
    ADDED_FIELDS,
    NO_REASONING,
    READ_ON,
    REASONING_FIELD,
    SKIP_SIGNATURE,
    Dialect,
    dialect_of,
    learn,
)
from explorer.llm.openai.reply import OpenAIReply
from explorer.llm.openai.sdk import OpenAISdkClient, cache_key
from explorer.llm.options import ClientOptions
from explorer.llm.prompt_cache import EncodedRequests
from explorer.llm.vendors import OPENAI_CHAT
from explorer.schema.messages import JsonObject, Message, Request, Results, Turn, UserText

BOUND_FIELDS = ("reasoning_details", "reasoning")
"""A gateway's fields of reasoning that may be bound to what comes before; `reasoning_details` has signatures."""


def to_prefix(request: Request, dialect: Dialect) -> JsonObject:
    """Return the part that is the same in all requests of a role in a run: all but the history and the limit."""
    body: JsonObject = {"model": request.model, "stream": True, "stream_options": {"include_usage": True}}
    if dialect.has_cache_key:
        body |= cache_key(request)
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": plain(tool.parameters),
                },
            }
            for tool in request.tools
        ]
    body["messages"] = [{"role": "system", "content": request.system}] if request.system.strip() else []
    return {name: value for name, value in body.items() if name not in dialect.left_out}


def to_rest(request: Request, dialect: Dialect) -> JsonObject:
    """Return the part that may differ each time: the output limit as the server takes it, effort, the reply's form."""
    most = dialect.max_output_tokens or request.max_output_tokens
    rest: JsonObject = {dialect.output_limit: min(request.max_output_tokens, most)}
    if request.effort:
        rest["reasoning_effort"] = request.effort
    if request.reply_schema is not None:
        form = {"name": "reply", "strict": True, "schema": request.reply_schema}
        rest["response_format"] = {"type": "json_schema", "json_schema": form}
    return {name: value for name, value in rest.items() if name not in dialect.left_out}


class ChatWriter:
    """Writes a history as the messages of a dialect.

    Args:
        model: The model that is asked.
        dialect: What the server accepts.
    """

    def __init__(self, model: str, dialect: Dialect) -> None:
        self._model = model
        self._dialect = dialect
        self.messages: list[JsonObject] = []
        self._ids: Mapping[str, str] = {}
        """The ids that are sent for the calls of the latest turn, by their own ids."""
        self._seen: set[str] = set()
        """The ids of all calls so far."""

    def add(self, position: int, message: Message, *, keeps_reasoning: bool) -> None:
        """Write the message at this index of the history; signed reasoning only where nothing before it has changed."""
        if isinstance(message, Turn):
            if is_own(message, OPENAI_CHAT, self._model):
                self._ids = self._sent_ids(position, message)
                written = _own_messages(message, has_bound=keeps_reasoning)
            else:
                self._ids = projected_ids(position, message)
                written = _projected_messages(message, self._ids)
            self.messages.extend(_in_dialect(one, self._dialect, self._ids) for one in written)
        elif isinstance(message, Results):
            self.messages.extend(
                {"role": "tool", "tool_call_id": self._ids.get(result.id, result.id), "content": result.content}
                for result in message.results
            )
        else:
            _append_user_text(self.messages, message, self._dialect)

    def _sent_ids(self, position: int, turn: Turn) -> Mapping[str, str]:
        """Return new ids for an own turn's calls if an earlier turn has them, or the server refuses their form."""
        own = {call.id for call in turn.calls}
        is_fine = not own & self._seen and (not self._dialect.needs_short_ids or all(is_short_id(one) for one in own))
        self._seen |= own
        return {} if is_fine else projected_ids(position, turn)


def _in_dialect(message: JsonObject, dialect: Dialect, ids: Mapping[str, str]) -> JsonObject:
    """Return an assistant message as the server accepts it; the one given stays as it is."""
    made = dict(message)
    if dialect.is_standard_only:
        made = {name: value for name, value in made.items() if name not in ADDED_FIELDS}
    if dialect.needs_reasoning and not made.get(REASONING_FIELD):
        made[REASONING_FIELD] = NO_REASONING
    calls: list[JsonObject] = made.get("tool_calls") or []
    if not calls:
        return made
    made["tool_calls"] = [_call_in_dialect(call, dialect, ids, is_first=call is calls[0]) for call in calls]
    if dialect.needs_words_or_calls:
        made.pop("content", None)
    if dialect.needs_text and not made.get("content"):
        made["content"] = ""
    return made


def _call_in_dialect(call: JsonObject, dialect: Dialect, ids: Mapping[str, str], *, is_first: bool) -> JsonObject:
    made = dict(call) if not ids else {**call, "id": ids.get(call["id"], call["id"])}
    # A model makes up names, too; sent back as they are, the whole request would be refused.
    made["function"] = {**call["function"], "name": accepted_name(call["function"]["name"])}
    if dialect.is_standard_only:
        made = {name: made[name] for name in ("id", "type", "function")}
    # Gemini signs only the first one of parallel calls.
    if dialect.needs_signatures and is_first and "extra_content" not in made:
        made["extra_content"] = {"google": {"thought_signature": SKIP_SIGNATURE}}
    return made


def _append_user_text(messages: list[JsonObject], user_text: UserText, dialect: Dialect) -> None:
    """Add a user message; two messages of one role in a row break the templates of many local models."""
    if not user_text.text.strip():
        return
    if dialect.needs_reply_after_results and messages and messages[-1]["role"] == "tool":
        messages.append({"role": "assistant", "content": READ_ON})
    if messages and messages[-1]["role"] == "user":
        messages[-1] = {"role": "user", "content": f"{messages[-1]['content']}\n\n{user_text.text}"}
    else:
        messages.append({"role": "user", "content": user_text.text})


def _own_messages(turn: Turn, *, has_bound: bool) -> list[JsonObject]:
    """Return the turn's stored message, unless it is empty, which servers refuse.

    Signed reasoning after a changed beginning is left out: the model that signed it would refuse the request.
    """
    kept = [block for block in turn.blocks if block.get("content") or block.get("tool_calls") or block.get("refusal")]
    if has_bound or not any("reasoning_details" in block for block in kept):
        return kept
    return [{name: value for name, value in block.items() if name not in BOUND_FIELDS} for block in kept]


def _projected_messages(turn: Turn, ids: Mapping[str, str]) -> list[JsonObject]:
    message: JsonObject = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": ids[call.id],
                "type": "function",
                "function": {"name": accepted_name(call.name), "arguments": arguments_text(call)},
            }
            for call in turn.calls
        ]
    return [message] if turn.text.strip() or turn.calls else []


MOST_LESSONS = 8
"""How often one request is sent in another form because the server refused it."""


class OpenAIClient(OpenAISdkClient):
    """Asks OpenAI's models and those of compatible servers: Ollama, LM Studio, llama.cpp, vLLM, gateways."""

    def __init__(self, options: ClientOptions) -> None:
        super().__init__(options, "/chat/completions")
        self._forms: dict[Dialect, tuple[EncodedRequests, Histories]] = {}
        """What was written for each dialect."""
        self._dialects: dict[str, Dialect] = {}
        """The dialect of each model, as far as it is known."""
        self._reasoning = BoundReasoning(OPENAI_CHAT)
        self._prompts = CutPrompts()

    async def generate(self, request: Request) -> Turn:
        """Send a request once, and return the complete turn.

        Raises:
            ModelError: No turn came; nothing of the attempt may be used.
        """
        bound = self._reasoning.before(request)
        turn = self._prompts.marked(request, await self._ask(request, bound.kept))
        if any("reasoning_details" in block for block in turn.blocks):
            turn = turn.model_copy(update={"bound_to": bound.digest})
        return self._priced(turn, request, self._priced_as)

    async def _ask(self, request: Request, kept: Collection[int]) -> Turn:
        """Send a request, and send it again in the form that the server's refusal asks for."""
        for _ in range(MOST_LESSONS):
            dialect = self._dialect(request.model)
            try:
                return await self._ask_in(dialect, request, kept)
            except RequestRefusedError as error:
                if not self._has_learnt(request.model, dialect, error):
                    raise
        return await self._ask_in(self._dialect(request.model), request, kept)

    async def _ask_in(self, dialect: Dialect, request: Request, kept: Collection[int]) -> Turn:
        form = self._forms.get(dialect)
        if form is None:
            prefixes = EncodedRequests(lambda asked: to_prefix(asked, dialect))
            form = self._forms[dialect] = (prefixes, Histories(lambda model: ChatWriter(model, dialect)))
        prefixes, histories = form
        reply = OpenAIReply(self._endpoint, [tool.name for tool in request.tools], self._meter(request))
        body = prefixes.body(request, histories.messages(request, kept), to_rest(request, dialect))
        await self._exchange(body, reply)
        return reply.turn(request.model)

    def _dialect(self, model: str) -> Dialect:
        if model not in self._dialects:
            self._dialects[model] = dialect_of(self._endpoint.base_url, model)
        return self._dialects[model]

    def _has_learnt(self, model: str, used: Dialect, error: RequestRefusedError) -> bool:
        """Learn from a refusal; return whether the request would now have another form."""
        learnt = learn(self._dialects[model], error.refusal)
        if learnt is not None:
            self._dialects[model] = learnt
            logger.info("{} needs requests in another form, and gets it from now on: {}", self._endpoint, error.message)
        return self._dialects[model] != used
