"""The profile of a model at an address: measured by a few small requests, and kept in the user's own folder.

A profile is one file, whose name is a hash of address and model. `explorer doctor --probe` makes it.

The window is the server's own word where it gives one: llama.cpp, vLLM, LM Studio and Ollama do, each in its own place.
Otherwise one longer prompt shows whether the server cuts it.
"""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic import ValidationError

from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import Frozen, JsonObject, LLMClient, Request, StopKind, ToolSchema, Turn, UserText
from explorer.workspace.safe_open import make_private_folder, write_private

FOLDER = "models"
MAX_BYTES = 64 * 1024
LEAST_WINDOW_TOKENS = 16_384
"""The smallest window for the whole team: its prompts and tools alone take about 4,000 tokens, one page up to 6,000."""


SIZE = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d+)?)b(?![a-z0-9])|(?<![\w.])\d{2,3}m(?![a-z0-9])", re.IGNORECASE)
"""The number of parameters in a model's name, in billions or millions: `qwen2.5:1.5b`, `SmolLM2-360M`."""
MOST_SMALL_BILLION = 9.0
"""Lean mode is for models of one to eight billion parameters."""


def is_small(name: str) -> bool:
    """Return whether a model says in its name that it is a small one; many do not say how large they are."""
    found = SIZE.search(name)
    return found is not None and float(found[1] or 0) <= MOST_SMALL_BILLION


class ModelProfile(Frozen):
    """What was measured of one model at one address."""

    url: str
    """The base URL of its server."""
    model: str
    measured_at: datetime
    calls: int
    """How many of `calls_of` requests for one tool call brought a call, made or written in a known form."""
    calls_of: int
    calls_as_text: str = ""
    """The form in which it writes calls as text, such as `<tool_call>`; empty: it makes them."""
    parallel_calls: bool = False
    """Whether it makes two calls in one reply where two were asked for."""
    leaks_thinking: bool = False
    """Whether its thinking is in the text of its replies."""
    runs_away: bool = False
    """Whether a reply that was to be one word had no end, or had the same call again and again."""
    has_forms: bool = False
    """Whether the server has replies follow a JSON Schema."""
    window_tokens: int | None = None
    """Tokens of its context window, by the server's word or as measured; None: not known."""

    @property
    def words(self) -> str:
        """What was measured, on one line for people."""
        form = f" ({self.calls_as_text})" if self.calls_as_text else ""
        parts = [
            f"{self.calls} of {self.calls_of} tool calls{form}",
            "parallel calls" if self.parallel_calls else "one call at a time",
            "replies in a form" if self.has_forms else "no replies in a form",
            f"window {self.window_tokens:,} tokens" if self.window_tokens else "window not known",
            "thinking in its replies" if self.leaks_thinking else "",
            "replies that run away" if self.runs_away else "",
        ]
        return ", ".join(part for part in parts if part)

    @property
    def why_lean(self) -> str:
        """Why lean mode suits the model better than the whole team; empty: it does not."""
        if self.calls < self.calls_of:
            return f"{self.calls} of {self.calls_of} tool calls"
        if self.runs_away:
            return "its replies run away"
        if self.window_tokens is not None and self.window_tokens < LEAST_WINDOW_TOKENS:
            return f"a window of {self.window_tokens:,} tokens"
        return "" if self.parallel_calls else "one call where two were asked for"


def load_profile(folder: Path | None, url: str, model: str) -> ModelProfile | None:
    """Return the profile of a model at an address; None where there is none that can be read.

    Args:
        folder: The user's own folder; None: nothing is kept.
        url: The base URL of the server.
        model: The model's name there.
    """
    if folder is None:
        return None
    profile = _read(_path(folder, url, model))
    return profile if profile and (profile.url, profile.model) == (url, model) else None


def store_profile(folder: Path, profile: ModelProfile) -> None:
    """Store a profile in place of the one before.

    Raises:
        OSError: The disk refused.
    """
    path = _path(folder, profile.url, profile.model)
    make_private_folder(path.parent)
    write_private(path, profile.model_dump_json(indent=1).encode())


def stored_profiles(folder: Path | None) -> list[ModelProfile]:
    """Return all profiles that can be read, by address and model."""
    paths = sorted((folder / FOLDER).glob("*.json")) if folder is not None else []
    found = [profile for path in paths if (profile := _read(path))]
    return sorted(found, key=lambda one: (one.url, one.model))


def forget_profiles(folder: Path | None) -> int:
    """Remove all profiles, also those that cannot be read; return their number.

    Raises:
        OSError: The disk refused.
    """
    paths = list((folder / FOLDER).glob("*.json")) if folder is not None else []
    for path in paths:
        path.unlink(missing_ok=True)
    return len(paths)


def _read(path: Path) -> ModelProfile | None:
    try:
        with path.open("rb") as file:
            return ModelProfile.model_validate_json(file.read(MAX_BYTES))
    except (OSError, ValidationError):
        return None


def _path(folder: Path, url: str, model: str) -> Path:
    name = hashlib.sha256(f"{url}\n{model}".encode()).hexdigest()[:32]
    return folder / FOLDER / f"{name}.json"


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
LEAST_COUNTED_TOKENS = 512
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
        return 2 * counted if LEAST_COUNTED_TOKENS < counted * CERTAIN_BYTES_PER_TOKEN < len(text) else None


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
