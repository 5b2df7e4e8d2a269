"""What stdout and stderr carry, and the one shape in which programs read success and failure."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from explorer.cli.screens.sanitize import without_controls
from explorer.cli.screens.table import fitted
from explorer.cli.settings.options import OutputFormat
from explorer.schema.errors import ExplorerError, StorageError
from explorer.schema.messages import Usage
from explorer.schema.reasons import EndCause

INTERRUPTED = 130
TERMINATED = 143
HUNG_UP = 129
"""128 and the number of the signal, as shells count."""
TIMED_OUT = 124
PARTIAL = 3
TOKEN_KINDS = ("input", "output", "cache_read", "cache_write", "reasoning", "total")
UNAVAILABLE = 6
EXIT_CODES = {
    "complete": 0,
    "partial": PARTIAL,
    "nothing_found": PARTIAL,
    "failed": 1,
    "sources_unavailable": UNAVAILABLE,
}


@dataclass(frozen=True)
class CommandResult:
    """How a command ended: the same fields for every ending."""

    status: str
    """`complete`, `partial`, `nothing_found`, `sources_unavailable`, `failed`, `interrupted`, or `error` when it was
    ended by an error."""
    exit_code: int
    run_id: str = ""
    folder: str = ""
    report: str | None = None
    report_text: str = ""
    answer: str = ""
    """The words that answer a follow-up, or that the model said instead of writing a report; empty otherwise."""
    reason: str = ""
    cause: str = EndCause.OTHER.value
    """The limit that was reached, as a code: `step_limit`, `cost_limit`, `token_limit`, `call_limit`, `time_limit`;
    else `other`."""
    error: Mapping[str, str] | None = None
    cost_usd: float | None = None
    estimated: Mapping[str, float] = field(default_factory=lambda: {"tokens": 0, "cost_usd": 0.0})
    """What of `cost_usd` and `tokens` is estimated: the provider reported no usage, or a request brought no reply."""
    tokens: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(TOKEN_KINDS, 0))
    steps: int = 0
    agents: int = 0
    sources: int = 0
    citations: int = 0
    """Cited sentences of the report, or of the answer."""
    verdicts: Mapping[str, int] = field(default_factory=dict[str, int])
    """The cited sentences by what a look into their sources found; the parts sum to `citations`."""
    uncited: int = 0
    """Sentences with a quote or a figure and no citation; not among `citations`."""
    further_links: Sequence[Mapping[str, str]] = ()
    """Sources that the orchestrator recommends, best first: `url`, `title` and `source`, the id."""
    helpers: Sequence[Mapping[str, Any]] = ()
    """What each helper did: `agent`, `role`, `status`, `reason`, `steps`, `output_files`, `summary`."""
    seconds: float = 0.0
    session: Mapping[str, object] | None = None
    """What the latest session worked with, and why: models, search, shell, limits; None when there was none."""
    changes: str | None = None
    """Where the changes since the earlier run are, when one was named."""


def token_counts(usage: Usage) -> dict[str, int]:
    """Tokens by kind; `input` includes what the provider's cache held."""
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
        "reasoning": usage.reasoning_tokens,
        "total": usage.total_tokens,
    }


def exit_code(status: str, cause: EndCause) -> int:
    """The exit code of a run's end."""
    if status != "complete" and cause is EndCause.TIME_LIMIT:
        return TIMED_OUT
    return EXIT_CODES.get(status, 1)


def described(error: ExplorerError) -> dict[str, str]:
    """An error as programs read it."""
    return {"message": error.message, "hint": error.hint, "type": type(error).__name__}


ESCAPED_CONTROLS = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}
"""Those below U+0020 are escaped in any JSON."""


def as_json(value: object) -> str:
    """One line of JSON; what cannot be encoded, or would control a terminal, is written as an escape."""
    line = json.dumps(value, ensure_ascii=False, default=str).translate(ESCAPED_CONTROLS)
    return line.encode("utf-8", "backslashreplace").decode("utf-8")


def say(text: str) -> None:
    """Write a line to stderr. A reader that went away must not end a run."""
    with suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def emit(text: str) -> None:
    """Write to stdout, complete, without what would control a terminal: a pipe may end at one.

    A reader that went away (`| head`) is no failure: what follows goes nowhere.

    Raises:
        StorageError: The output is a file on a full disk, or the like.
    """
    try:
        print(without_controls(text), flush=True)
    except BrokenPipeError:
        discard_stdout()
    except OSError as error:
        discard_stdout()
        raise StorageError(f"could not write to standard output: {error.strerror}") from error


def discard_stdout() -> None:
    """Send what is still written to stdout nowhere, so that the interpreter does not fail at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def emit_page(text: str) -> None:
    """Write a page for people to stdout: on a terminal its lines fit.

    Raises:
        StorageError: As `emit`.
    """
    emit(fitted(text))


def emit_json(value: object) -> None:
    """Write one object."""
    emit(as_json(value))


def emit_outcome(outcome: CommandResult, output_format: OutputFormat) -> None:
    """Tell programs how it ended; text has its report on stdout already, or nothing."""
    if output_format == "json":
        emit_json(asdict(outcome))
    elif output_format == "stream-json":
        emit_json({"type": "result", **asdict(outcome)})
