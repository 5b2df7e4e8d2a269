"""The command line: which command there is, what it takes, and how its errors end."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import takewhile
from types import TracebackType
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter
from cyclopts.exceptions import MissingArgumentError, UnusedCliTokensError

from explorer.cli.command_tables import (
    COMMANDS_OF_QUEUE,
    COMMANDS_OF_REPORTS,
    COMMANDS_OF_RUNS,
    COMMANDS_OF_SKILLS,
    GROUPS_OF_COMMANDS,
    LAZY_COMMANDS,
)
from explorer.cli.help_text import COMMANDS
from explorer.cli.question import question_of, with_plan_mode
from explorer.cli.screens.output import (
    INTERRUPTED,
    emit_outcome,
    print_bug,
    print_error,
    verbosity,
    write_replacing,
)
from explorer.cli.settings.fleet_options import QUEUE, QueueOptions
from explorer.cli.settings.options import ASK, COMMON, AskOptions, CommonOptions, OutputFormat, wanted_format
from explorer.cli.typo import refuse_mistyped_command
from explorer.observe.command_result import CommandResult, described
from explorer.schema.errors import ConfigError, ExplorerError
from explorer.schema.version import __version__

ASK_ANYWAY = "ask"
MOST_COMMAND_WORDS = 3
"""More bare words than these may be a question that begins as a command does."""


def build_app() -> App:
    """Return the parser with all commands."""
    app = App(
        name="explorer",
        help="Ask a question, get a cited report.",
        help_format="markdown",
        version=__version__,
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        default_parameter=Parameter(show_default=False, negative=""),
    )
    for name, place in LAZY_COMMANDS.items():
        app.command(f"explorer.cli.{place}", name=name)
    config = App(name="config", help="Settings, and where each comes from.")
    config.command(
        "explorer.cli.commands.config:show",
        name="show",
        help="Every setting, its value, and where it comes from.",
    )
    app.command(config)
    groups = (*default_groups(), *((name, words, None, commands) for name, words, commands in GROUPS_OF_COMMANDS))
    for name, help_, default, commands in groups:
        group = App(name=name, help=help_)
        if default is not None:
            group.default(default)
        for word, (place, words) in commands.items():
            group.command(f"explorer.cli.{place}", name=word, help=words)
        app.command(group)
    app.command(ask_anyway, name="ask")
    app.default(ask)
    return app


def default_groups() -> tuple[tuple[str, str, Callable[..., int], dict[str, tuple[str, str]]], ...]:
    """Return the groups of commands that do something alone: name, help, what they do, and what is below."""
    return (
        ("runs", "List runs, newest last; or remove, export and import them.", list_runs, COMMANDS_OF_RUNS),
        (
            "report",
            "Print a run's report; or list and show those of the library.",
            print_report_of_run,
            COMMANDS_OF_REPORTS,
        ),
        (
            "queue",
            "List the runs of the fleet's queue; or cancel, retry, pause and stop them.",
            list_queue,
            COMMANDS_OF_QUEUE,
        ),
        (
            "skills",
            "List the skills that agents may load; or show, check and make one.",
            list_all_skills,
            COMMANDS_OF_SKILLS,
        ),
    )


def list_runs(*, options: CommonOptions = COMMON) -> int:
    """List runs, newest last."""
    from explorer.cli.commands.runs import runs  # noqa: PLC0415 - a default command cannot be imported late otherwise

    return runs(options=options)


def list_all_skills(*, options: CommonOptions = COMMON) -> int:
    """List the skills that agents may load, and those that do not count."""
    from explorer.cli.commands.skills import list_skills  # noqa: PLC0415 - as above

    return list_skills(options=options)


def list_queue(
    *,
    is_all: Annotated[bool, Parameter(name="--all", help="List those that are done or cancelled, too.")] = False,
    options: QueueOptions = QUEUE,
) -> int:
    """List the runs of the fleet's queue: those that wait, are at work or undecided, failed or are parked."""
    from explorer.cli.commands.fleet import show_queue  # noqa: PLC0415 - as above

    return show_queue(is_all=is_all, options=options)


def print_report_of_run(
    run: Annotated[str, Parameter(help="A run's id, the beginning of one, or `latest`.")] = "latest",
    /,
    *,
    output: Annotated[
        str | None,
        Parameter(
            name=["--output", "-o"], metavar="FILE", help="Write it to FILE instead: .md, .html, .pdf, .docx, .json."
        ),
    ] = None,
    overwrite: Annotated[bool, Parameter(name="--overwrite", help="Let -o replace a file that exists.")] = False,
    form: Annotated[
        Literal["markdown", "html", "json"] | None,
        Parameter(name="--format", help="Print it so; html is a page with the evidence."),
    ] = None,
    options: CommonOptions = COMMON,
) -> int:
    """Print a run's report: rendered on a terminal, plain markdown in a pipe; or write it to a file.

    Example: `explorer report latest -o report.html`
    """
    from explorer.cli.commands.report import report  # noqa: PLC0415 - as above

    return report(run, output=output, overwrite=overwrite, form=form, options=options)


def ask(*question: str, options: AskOptions = ASK) -> int:
    """Explore a question."""
    words = question_of(question, options)
    from explorer.cli.commands.ask import ask_question  # noqa: PLC0415 - the engine is slow to import

    return ask_question(words, options)


def ask_anyway(*question: str, options: AskOptions = ASK) -> int:
    """Explore a question: the same as without a command, but never refused as a mistyped one.

    Example: `explorer ask init`
    """
    return ask(*question, options=replace(options, is_literal=True))


def run_tokens(tokens: list[str]) -> int:
    """Run one command line and return its exit code."""
    write_replacing()
    output_format, verbose = wanted_format(tokens), verbosity(tokens)
    sys.excepthook = partial(_on_bug, output_format, verbose)
    try:
        return _done(tokens)
    except ExplorerError as error:
        failure = error
    except KeyboardInterrupt:
        return INTERRUPTED
    print_error(failure, verbose=verbose)
    outcome = CommandResult("error", failure.exit_code, reason=failure.message, error=described(failure))
    emit_outcome(outcome, output_format)
    return failure.exit_code


def _done(tokens: list[str]) -> int:
    try:
        return build_app()(arranged(tokens)) or 0
    except CycloptsError as error:
        raise usage_error(error, tokens) from error


def arranged(tokens: list[str]) -> list[str]:
    """Return the words with flags for what the parser cannot read: `-`, `--`, a bare `--plan`, `help COMMAND`."""
    tokens = with_plan_mode(tokens)
    if tokens[:1] == ["help"] and len(tokens) > 1 and tokens[1] in COMMANDS:
        return [tokens[1], "--help"]
    if tokens and tokens[0] in COMMANDS and tokens[0] != ASK_ANYWAY:
        return tokens
    place = tokens.index("--") if "--" in tokens else len(tokens)
    flags = ["--stdin" if word == "-" else word for word in tokens[:place]]
    return [*flags, "--literal", *tokens[place:]] if place < len(tokens) else flags


def usage_error(error: CycloptsError, tokens: list[str]) -> ConfigError:
    """Return what is wrong with a command's words, with the page of help to read."""
    bare = list(takewhile(lambda token: not token.startswith("-"), tokens))
    if bare and bare[0] not in COMMANDS:
        # A flag of the command that was meant is none of a question's.
        refuse_mistyped_command(bare)
    hint = f"see: {' '.join(['explorer', *(error.command_chain or ())])} --help"
    if any(token.startswith("-") and " " in token for token in tokens):
        hint = 'put two dashes before a question that begins with one: explorer -- "-1 is what?"'
    if len(bare) > MOST_COMMAND_WORDS:
        hint += f"; to ask it as a question: explorer ask {' '.join(bare)}"
    return ConfigError(_usage_words(error), hint=hint)


def _usage_words(error: CycloptsError) -> str:
    """Return what is wrong with a command, without the parser's own terms."""
    match error:
        case UnusedCliTokensError(unused_tokens=list(unused)) if unused:
            return f"there is no use for {' '.join(map(repr, unused))} here"
        case MissingArgumentError(argument=argument) if argument is not None and argument.token_count()[0] == 1:
            return f"{argument.name} needs a value" if argument.name.startswith("-") else f"{argument.name} is missing"
        case _:
            words = str(error).strip().removesuffix(".")
            return words[:1].lower() + words[1:]


def _on_bug(
    output_format: OutputFormat,
    verbose: int,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
) -> None:
    """Report an exception that is a bug: in one line, in the output format, and with exit code 1."""
    print_bug(kind, error, trace, verbose=verbose)
    words = {"message": str(error), "hint": "run it again with -vv for the traceback", "type": kind.__name__}
    emit_outcome(CommandResult("error", 1, reason=str(error), error=words), output_format)
