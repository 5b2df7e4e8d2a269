"""Measures what a model at an address can do, by a few small requests through the same client that runs use.

The window is the server's own word where it gives one: llama.cpp, vLLM, LM Studio and Ollama do, each in its own place.
Otherwise one longer prompt shows whether the server cuts it.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from explorer.llm.profiles import ModelProfile
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import JsonObject, LLMClient, Request, StopKind, ToolSchema, Turn, UserText

LOOK_UP = ToolSchema(
    name="look_up",
    description="Look a word up in a dictionary.",
    parameters={
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "required": ["word"],
        "additionalProperties": False,
    },
)
SYSTEM = "You are a careful assistant."
WORDS = ("tide", "lantern")
COLOURS = ("red", "blue")
FORM: JsonObject = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": list(COLOURS)}},
    "required": ["colour"],
    "additionalProperties": False,
}
REPLY_TOKENS = 400
"""Limit of one reply: a word or a call takes 30, thinking before it takes more."""
MANY_CALLS = 4
"""So many calls for two words are a reply without an end."""
LONG_WORD_CHARS = 200
CERTAIN_BYTES_PER_TOKEN = 8
"""More than any tokenizer has for prose."""
LEAST_WINDOW_TOKENS = 512
"""A smaller count is that of a server that counts no prompts, or only what it had not cached."""
LONG_PROMPT_BYTES = 24_000
"""About 6,000 tokens: more than the 4,096 that Ollama reads by default."""
MARKS = ("<tool_call>", "<tools>", "```")
"""Forms in which models write calls that their server should have read."""

Fetch = Callable[[str], Awaitable[str]]
"""Return the text at an address; empty where there is none."""


class Place(NamedTuple):
    """Where a server says how long its window is."""

    path: str
    """Added to the base URL without `/v1`."""
    keys: tuple[str, ...]
    """Keys of the number; the first that is there counts."""
    list_key: str = ""
    """The key of the list of models, of which the one with this name is read; empty: the whole answer is."""


PLACES = (
    Place("/props", ("n_ctx",)),
    Place("/api/v0/models", ("loaded_context_length",), "data"),
    Place("/api/ps", ("context_length",), "models"),
    Place("/v1/models", ("max_model_len", "context_length", "context_window"), "data"),
)
"""llama.cpp, LM Studio, Ollama, and vLLM or a gateway."""


class ModelProbe:
    """Asks one model.

    Args:
        client: Its client, which sends a request once.
        url: The base URL of its server.
        model: Its name there.
    """

    def __init__(self, client: LLMClient, url: str, model: str) -> None:
        self._client = client
        self._url = url
        self._model = model
        self._sent = 0

    async def profile(self, fetch: Fetch, measured_at: datetime) -> ModelProfile:
        """Measure the model.

        Raises:
            ModelError: The server cannot be reached or refuses everything.
        """
        word = await self._ask("Reply with the single word yes.")
        single = [await self._ask(f"Call look_up for the word {word!r}.", LOOK_UP) for word in WORDS]
        both = " and for ".join(map(repr, WORDS))
        double = await self._ask(f"Call look_up twice in one reply: for {both}.", LOOK_UP)
        called = [*single, double]
        return ModelProfile(
            url=self._url,
            model=self._model,
            measured_at=measured_at,
            calls=sum(bool(_words_called(turn)) for turn in single),
            calls_of=len(single),
            calls_as_text=next((form for form in map(_written_form, called) if form), ""),
            parallel_calls=set(_words_called(double)) == set(WORDS),
            leaks_thinking=any("<think>" in turn.text or "</think>" in turn.text for turn in (word, *called)),
            runs_away=_is_endless(word) or any(len(turn.calls) >= MANY_CALLS for turn in called),
            has_forms=await self._has_forms(),
            window_tokens=await self._window(fetch),
        )

    async def _ask(self, words: str, *tools: ToolSchema, form: JsonObject | None = None) -> Turn:
        self._sent += 1
        request = Request(
            agent=f"probe-{self._sent}",
            role=f"probe-{self._sent}",
            model=self._model,
            system=SYSTEM,
            tools=tools,
            history=(UserText(text=words),),
            max_output_tokens=REPLY_TOKENS,
            reply_schema=form,
        )
        return await self._client.generate(request)

    async def _has_forms(self) -> bool:
        """Return whether a reply follows a schema that its question does not mention."""
        try:
            turn = await self._ask("Write one sentence about the sea.", form=FORM)
            found: Any = json.loads(turn.text)
        except (ModelError, ValueError, RecursionError):
            return False
        return found in [{"colour": colour} for colour in COLOURS]

    async def _window(self, fetch: Fetch) -> int | None:
        root = self._url.removesuffix("/").removesuffix("/v1")
        for place in PLACES:
            if stated := _number_in(await fetch(root + place.path), place, self._model):
                return stated
        return await self._measured_window()

    async def _measured_window(self) -> int | None:
        """Send a long prompt; return the window of a server that cuts it, None where it was read whole."""
        line = "The tide comes in twice a day and leaves the sand wet. "
        text = line * (LONG_PROMPT_BYTES // len(line))
        try:
            turn = await self._ask(f"{text}\nReply with the single word yes.")
        except ModelError as error:
            if error.fault is not ModelFault.CONTEXT_EXCEEDED:
                raise
            return LONG_PROMPT_BYTES // CERTAIN_BYTES_PER_TOKEN
        counted = turn.usage.input_tokens
        # A server that cuts keeps about half of its window.
        return 2 * counted if LEAST_WINDOW_TOKENS < counted * CERTAIN_BYTES_PER_TOKEN < len(text) else None


def _words_called(turn: Turn) -> list[str]:
    """Return what a turn looks up, as far as its calls are right."""
    found = [(call.arguments or {}).get("word") for call in turn.calls if call.name == LOOK_UP.name]
    return [word for word in found if isinstance(word, str) and word.casefold() in WORDS]


def _written_form(turn: Turn) -> str:
    """Return the form in which a turn has its calls as text; empty where it has none."""
    if turn.calls:
        return "text that is read as calls" if "written as text" in turn.stop_detail else ""
    return next((mark for mark in MARKS if mark in turn.text), "prose" if LOOK_UP.name in turn.text else "")


def _is_endless(turn: Turn) -> bool:
    """Return whether a reply that was to be one word ran into its limit in words; thinking may be long."""
    said = turn.text.rpartition("</think>")[2]
    return turn.stop is StopKind.MAX_TOKENS and len(said) > LONG_WORD_CHARS


def _number_in(text: str, place: Place, model: str) -> int | None:
    """Return the number at a place of an answer; None where it is not there."""
    try:
        answer: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    parts = _dicts(answer)
    if place.list_key:
        items = parts[0].get(place.list_key) if parts else None
        parts = [one for one in _dicts(items) if model in {one.get("id"), one.get("name"), one.get("model")}]
    else:
        parts += [inner for part in parts for inner in _dicts(list(part.values()))]
    values = [part.get(key) for part in parts for key in place.keys]
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def _dicts(value: Any) -> list[JsonObject]:  # noqa: ANN401 - foreign JSON
    items = cast("Sequence[object]", value) if isinstance(value, list) else [value]
    return [cast("JsonObject", one) for one in items if isinstance(one, dict)]
