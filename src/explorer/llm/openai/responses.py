"""The adapter for OpenAI's Responses API, on the official SDK's transport; nothing is stored at the vendor."""

from collections.abc import Mapping, Sequence

from explorer.llm.forms import FIELD, RefusedForms, object_form
from explorer.llm.history import BoundReasoning, Histories, accepted_name, arguments_text, is_own, projected_ids
from explorer.llm.hosts import OPENAI_RESPONSES
from explorer.llm.openai.responses_reply import ResponsesReply
from explorer.llm.openai.sdk import OpenAISdkClient, cache_key
from explorer.llm.options import ClientOptions
from explorer.llm.prompt_cache import PromptPrefixes
from explorer.schema.errors import ModelError
from explorer.schema.messages import JsonObject, Message, Request, Results, Turn

MIN_OUTPUT_TOKENS = 16
"""The lowest output limit that the API accepts."""

ENCRYPTED_REASONING = "reasoning.encrypted_content"


def to_prefix(request: Request) -> JsonObject:
    """Return the part that is the same in all requests of a role in a run: all but history, limit and effort.

    `strict` is off because it is on by default in this API, and requires schemas in which every field is required.
    """
    body: JsonObject = {"model": request.model, "stream": True, "store": False, **cache_key(request)}
    if request.system.strip():
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in request.tools
        ]
    body["input"] = []
    return body


def to_rest(request: Request, *, wants_reasoning: bool = True) -> JsonObject:
    """Return the part that may differ each time: limit, reasoning, effort, the reply's form.

    Args:
        request: The request.
        wants_reasoning: Whether to ask for encrypted reasoning, which models without reasoning refuse.
    """
    rest: JsonObject = {"max_output_tokens": max(request.max_output_tokens, MIN_OUTPUT_TOKENS)}
    if wants_reasoning:
        rest["include"] = [ENCRYPTED_REASONING]
    if request.effort:
        rest["reasoning"] = {"effort": request.effort}
    if request.reply_schema is not None:
        form: JsonObject = {"type": "json_schema", "name": FIELD, "strict": True}
        rest["text"] = {"format": form | {"schema": object_form(request.reply_schema)}}
    return rest


class InputWriter:
    """Writes a history as the items of a request."""

    def __init__(self, model: str) -> None:
        self._model = model
        self.messages: list[JsonObject] = []
        self._ids: Mapping[str, str] = {}
        """The ids that are sent for the calls of the latest turn, by their own ids."""

    def add(self, position: int, message: Message, *, keeps_reasoning: bool) -> None:
        """Write the message at this index of the history."""
        items = self.messages
        if isinstance(message, Turn):
            if is_own(message, OPENAI_RESPONSES, self._model):
                self._ids = {}
                items.extend(_own_items(message.blocks, keeps_reasoning=keeps_reasoning))
            else:
                self._ids = projected_ids(position, message)
                items.extend(_projected_items(message, self._ids))
        elif isinstance(message, Results):
            items.extend(_output(result.content, self._ids.get(result.id, result.id)) for result in message.results)
        elif message.text.strip():
            items.append({"role": "user", "content": message.text})


def _own_items(blocks: Sequence[JsonObject], *, keeps_reasoning: bool) -> Sequence[JsonObject]:
    """Return a turn's items as the API sent them, or all of them without reasoning and ids.

    The API refuses reasoning without the item that followed it, and an item without the reasoning that led to it. It
    knows by their ids which belong together. So a turn is sent back whole. If one of its items cannot be sent
    back, no reasoning of the turn is; and without ids no item can lack its pair.
    """
    is_free = keeps_reasoning or not any(is_reasoning(block) for block in blocks)
    if is_free and all(_may_return(blocks, index) for index in range(len(blocks))):
        return blocks
    return [_bare(block) for block in blocks if not is_reasoning(block) and not _is_empty(block)]


def _may_return(blocks: Sequence[JsonObject], index: int) -> bool:
    """Return whether an item is complete, and reasoning has the item after it that it led to."""
    block = blocks[index]
    if block.get("status") not in {None, "completed"} or _is_empty(block):
        return False
    if not is_reasoning(block):
        return True
    return bool(block.get("encrypted_content")) and any(not is_reasoning(later) for later in blocks[index + 1 :])


def _bare(block: JsonObject) -> JsonObject:
    return {name: value for name, value in block.items() if name not in {"id", "status"}}


def is_reasoning(block: JsonObject) -> bool:
    """Return whether an item is a model's reasoning."""
    return block.get("type") == "reasoning"


def _is_empty(block: JsonObject) -> bool:
    """Return whether an item is a message without text."""
    if block.get("type") != "message":
        return False
    return not any(part.get("text") or part.get("refusal") for part in block.get("content") or ())


def _output(content: str, call_id: str) -> JsonObject:
    return {"type": "function_call_output", "call_id": call_id, "output": content}


def _projected_items(turn: Turn, ids: Mapping[str, str]) -> list[JsonObject]:
    items: list[JsonObject] = [{"role": "assistant", "content": turn.text}] if turn.text.strip() else []
    for call in turn.calls:
        name = accepted_name(call.name)
        arguments = arguments_text(call)
        items.append({"type": "function_call", "call_id": ids[call.id], "name": name, "arguments": arguments})
    return items


NO_REASONING = "encrypted content is not supported"
"""Part of the refusal of a model without reasoning that is asked for encrypted reasoning."""


class ResponsesClient(OpenAISdkClient):
    """Asks OpenAI's models through the API for models that reason and call tools.

    Nothing is stored at the vendor: each request has the whole conversation, with the encrypted reasoning in it.
    """

    def __init__(self, options: ClientOptions) -> None:
        super().__init__(options, "/responses")
        self._prefixes = PromptPrefixes(to_prefix)
        self._histories = Histories(InputWriter)
        self._reasoning = BoundReasoning(OPENAI_RESPONSES)
        self._forms = RefusedForms()
        self._without_reasoning: set[str] = set()
        """The models that do not reason."""

    async def generate(self, request: Request) -> Turn:
        """Send a request, again without encrypted reasoning or a form if it is refused, and return the complete turn.

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
        """Learn from a refusal; return whether the request is to be sent again."""
        if NO_REASONING in error.message.lower() and request.model not in self._without_reasoning:
            self._without_reasoning.add(request.model)
            return True
        return self._forms.learn(request, error)

    async def _ask(self, request: Request) -> Turn:
        request = self._forms.request(request)
        reply = ResponsesReply(self._endpoint, self._meter(request))
        bound = self._reasoning.before(request)
        history = self._histories.messages(request, bound.kept)
        rest = to_rest(request, wants_reasoning=request.model not in self._without_reasoning)
        body = self._prefixes.body(request, history, rest)
        await self._exchange(body, reply)
        turn = reply.turn(request.model)
        if any(is_reasoning(block) for block in turn.blocks):
            turn = turn.model_copy(update={"bound_to": bound.digest})
        return self._priced(turn, request, self._priced_as)
