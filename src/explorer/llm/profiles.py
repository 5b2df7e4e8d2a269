"""The profile of a model at an address: what was measured of it, kept in the user's own folder.

A profile is one file, whose name is a hash of address and model. `explorer doctor --probe` makes it.
"""

import hashlib
import re
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from explorer.schema.messages import Frozen
from explorer.workspace.private import make_private_folder, write_private

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
