"""The words of a question: from the command line or stdin, checked before anything is loaded or paid."""

import sys
from collections.abc import Sequence

from explorer.cli.settings.options import AskOptions
from explorer.cli.typo import refuse_mistyped_command
from explorer.schema.errors import ConfigError
from explorer.schema.plan import PLAN

QUESTION_CHARS = 200_000
UTF8_BYTES = 4
"""Bytes of the longest character."""
APPROVE, REJECT = "approve", "reject"
DECISIONS = (APPROVE, REJECT)
"""Decisions about a plan, as a value of `--plan`."""
PLAN_FILES = (".yaml", ".yml", ".json")


def question_of(words: Sequence[str], options: AskOptions) -> str:
    """Return the question, which may be empty with a preset; or with `-c` the follow-up, which may be, too.

    Raises:
        ConfigError: It is missing, too long, or looks like a mistyped command.
    """
    if not options.is_literal and not options.from_stdin and not options.go_on:
        refuse_mistyped_command(words)
    question = as_asked(_stdin() if options.from_stdin else " ".join(words))
    if not question and not options.go_on and not options.preset:
        raise no_question()
    return question


def no_question(hint: str = "") -> ConfigError:
    """Return the error where there is nothing to explore."""
    return ConfigError("there is no question", hint=hint or 'write: explorer "your question", or see: explorer --help')


def as_asked(text: str) -> str:
    """Return words as the engine takes them.

    Raises:
        ConfigError: They are too many.
    """
    if len(text) > QUESTION_CHARS:
        raise ConfigError(
            f"the question is too long: {len(text):,} characters, and at most {QUESTION_CHARS:,} are taken",
            hint='put the long part into a file: explorer --file notes.txt "your question about it"',
        )
    # Bytes of the command line that are no UTF-8 arrive as lone surrogates, which nothing can write.
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()


def _stdin() -> str:
    """Return what stdin holds; of an endless one no more than it takes to see that it is too much."""
    content = sys.stdin.buffer.read(QUESTION_CHARS * UTF8_BYTES * 4)
    return content.decode("utf-8", "replace")


def with_plan_mode(tokens: list[str]) -> list[str]:
    """Give a bare `--plan` the mode `ask`: its value is one of a few words, or a file with a plan."""
    end = tokens.index("--") if "--" in tokens else len(tokens)
    if "--plan" not in tokens[:end]:
        return tokens
    place = tokens.index("--plan")
    value = tokens[place + 1] if place + 1 < end else ""
    if value in {*PLAN, *DECISIONS} or value.endswith(PLAN_FILES):
        return tokens
    return [*tokens[:place], "--plan=ask", *tokens[place + 1 :]]
