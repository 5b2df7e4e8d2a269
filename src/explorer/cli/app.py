"""The command line: which command there is, what it takes, and how its errors end."""

import sys
from dataclasses import replace
from functools import partial
from itertools import takewhile
from types import TracebackType
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

from explorer.cli.help_text import COMMANDS
from explorer.cli.question import question_of, with_plan_mode
from explorer.cli.screens.output import (
    INTERRUPTED,
    CommandResult,
    described,
    emit_outcome,
    print_bug,
    print_error,
    verbosity,
    write_replacing,
)
from explorer.cli.settings.options import ASK, COMMON, AskOptions, CommonOptions, OutputFormat, wanted_format
from explorer.cli.typo import refuse_mistyped_command
from explorer.schema.errors import ConfigError, ExplorerError
from explorer.schema.version import __version__

ASK_ANYWAY = "ask"
MOST_COMMAND_WORDS = 3
"""More bare words than these may be a question that begins as a command does."""

LAZY_COMMANDS = {
    "resume": "commands.ask:resume",
    "fork": "commands.fork:fork",
    "steer": "commands.steer_stop:steer",
    "stop": "commands.steer_stop:stop",
    "watch": "commands.watch:watch",
    "show": "commands.runs:show",
    "diff": "commands.diff:diff",
    "grep": "commands.grep:grep",
    "verify": "commands.verify:verify",
    "eval": "commands.evaluate:evaluation",
    "repl": "commands.repl:repl",
    "demo": "commands.ask:demo",
    "tools": "commands.catalog:tools",
    "agents": "commands.catalog:agents",
    "models": "commands.catalog:models",
    "trust": "commands.trust:trust",
    "doctor": "commands.doctor:doctor",
    "completion": "commands.completion:completion",
}
"""Where each command is, below `explorer.cli`, by name. None is imported before it is called; its help is its
docstring, since the page that lists them all is written by hand."""

COMMANDS_OF_RUNS = {
    "list": ("commands.runs:runs", "List runs, newest last."),
    "rm": (
        "commands.archive:rm",
        "Remove runs, with all their files; a running run is refused.\n\nExample: `explorer runs rm 20261122-101500`",
    ),
    "gc": (
        "commands.archive:gc",
        (
            "Remove old runs; never one that is running or damaged, nor an unfinished one unless asked for.\n\n"
            "With `--keep` alone, age does not matter.\n\n"
            "Fetched pages are kept for a day at most; `--cache` drops them at once.\n\n"
            "Example: `explorer runs gc --older-than 30d --keep 10 --dry-run`"
        ),
    ),
    "export": (
        "commands.archive:export_run",
        (
            "Write a run into one file: journal, sources, findings, report. Keys are in none of them.\n\n"
            "A damaged run can be exported too, for safekeeping.\n\n"
            "Example: `explorer runs export latest -o plant.tar.gz`"
        ),
    ),
    "import": (
        "commands.archive:import_run",
        (
            "Read back an exported run: it can be shown, watched and continued.\n\n"
            "Service addresses in its journal are replaced by your own settings. Continuing a run sends everything "
            "in it to a model, so continue only runs of people you trust.\n\n"
            "Example: `explorer runs import plant.tar.gz --as-new`"
        ),
    ),
}
"""Where each command below `runs` is, and its help, so that none is imported for the page that lists them."""

COMMANDS_OF_REPORTS = {
    "list": (
        "commands.library:list_reports",
        (
            "List the reports of the library, newest day first: all, or those of a day or with words in them.\n\n"
            "Example: `explorer report list 2026-11 sqlite`"
        ),
    ),
    "show": (
        "commands.library:show_report",
        "Print a report of the library.\n\nExample: `explorer report show 2026-11-22/sqlite-4`",
    ),
}
"""Where each command below `report` is; `report` alone prints a run's report."""

COMMANDS_OF_MCP = {
    "list": (
        "commands.mcp:list_servers",
        "List the MCP servers that are configured, and the roles that get their tools.\n\nExample: `explorer mcp list`",
    ),
    "add": (
        "commands.mcp:add_server",
        (
            "Add an MCP server to your own configuration, or to this folder's.\n\n"
            "Example: `explorer mcp add tracker https://example.com/mcp --token TRACKER_TOKEN --role searcher`\n\n"
            "Example: `explorer mcp add forum --role searcher -- python server.py --db forum.db`"
        ),
    ),
    "test": (
        "commands.mcp:show_server",
        (
            "Connect to an MCP server, and show its tools as agents see them; or accept what has changed.\n\n"
            "Exits with 1 while something it describes is not accepted.\n\n"
            "Example: `explorer mcp test forum --accept`"
        ),
    ),
    "serve": (
        "commands.mcp_serve:serve",
        (
            "Serve explorations to other agents, until the client closes stdin.\n\n"
            "Clients start runs, wait for reports, and read findings and sources. They can only lower the limits set "
            "here. When the server ends, its runs are saved, and `explorer resume` continues them.\n\n"
            "Example: `explorer mcp serve --max-cost 1`"
        ),
    ),
    "token": (
        "commands.mcp_serve:token",
        (
            "Print the token that clients of `explorer mcp serve --http` send.\n\n"
            "It stays the same on this machine. EXPLORER_MCP_TOKEN sets another one."
        ),
    ),
}
"""Where each command below `mcp` is."""
COMMANDS_OF_PRESETS = {
    "list": (
        "commands.presets:list_presets",
        "List the presets: built-in ones, yours, and those of this folder.\n\nExample: `explorer presets list`",
    ),
    "show": (
        "commands.presets:show_preset",
        (
            "Show a preset: its question, team, settings, and what it needs. Nothing of it takes effect.\n\n"
            "Example: `explorer presets show hn-news`"
        ),
    ),
}
"""Where each command below `presets` is."""
COMMANDS_OF_TOPICS = {
    "add": (
        "commands.watch_topic:add",
        (
            "Explore a question again and again, each time given what the last run found.\n\n"
            "Writes a timer of your systemd, or a line of your crontab, and shows it; nothing of explorer keeps "
            "running. The entry has neither the question nor a key. The flags of a question are those of each run; "
            "in `-o`, {date} and {time} are replaced. `--dry-run` only shows what would be written.\n\n"
            'Example: `explorer watch-topic add "What is new about SQLite?" --every day -o sqlite-{date}.html`'
        ),
    ),
    "list": ("commands.watch_topic:list_topics", "List the topics, with how the last run of each ended."),
    "show": ("commands.watch_topic:show", "Show a topic: its question, flags, entry, and last run."),
    "remove": (
        "commands.watch_topic:remove",
        "Remove a topic and its entry; its runs stay, and so does everything else of your systemd and crontab.",
    ),
    "run": (
        "commands.watch_topic:run",
        "Explore a topic now, as its entry does: with what the last run found, and never twice at once.",
    ),
}
"""Where each command below `watch-topic` is."""
GROUPS_OF_COMMANDS = (
    ("mcp", "MCP servers whose tools agents may call; and explorer as a server of other agents.", COMMANDS_OF_MCP),
    ("presets", "Whole explorers as configurations: list and show them.", COMMANDS_OF_PRESETS),
    ("watch-topic", "Questions that are explored again and again.", COMMANDS_OF_TOPICS),
)
"""Commands that do nothing alone: the name, its help, and what is below it."""


COMMANDS_OF_SKILLS = {
    "list": ("commands.skills:list_skills", "List the skills that agents may load, and those that do not count."),
    "show": (
        "commands.skills:show_skill",
        "Print a skill, with its files.\n\nExample: `explorer skills show news-digest`",
    ),
    "validate": (
        "commands.skills:validate",
        (
            "Check skills against the Agent Skills format: one skill, a folder of them, or all that are found.\n\n"
            "Example: `explorer skills validate .agents/skills`"
        ),
    ),
    "new": (
        "commands.skills:new",
        (
            "Make a skill of your own, to be filled in. A skill in your own folder counts at once.\n\n"
            'Example: `explorer skills new grant-search "Finds grants for a project. Use it when asked for funding."`'
        ),
    ),
}
"""Where each command below `skills` is; `skills` alone lists them."""


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
        default_parameter=Parameter(show_default=False),
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
    groups = (
        ("runs", "List runs, newest last; or remove, export and import them.", list_runs, COMMANDS_OF_RUNS),
        (
            "report",
            "Print a run's report; or list and show those of the library.",
            print_report_of_run,
            COMMANDS_OF_REPORTS,
        ),
        *((name, words, None, commands) for name, words, commands in GROUPS_OF_COMMANDS),
        (
            "skills",
            "List the skills that agents may load; or show, check and make one.",
            list_all_skills,
            COMMANDS_OF_SKILLS,
        ),
    )
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


def list_runs(*, options: CommonOptions = COMMON) -> int:
    """List runs, newest last."""
    from explorer.cli.commands.runs import runs  # noqa: PLC0415 - a default command cannot be imported late otherwise

    return runs(options=options)


def list_all_skills(*, options: CommonOptions = COMMON) -> int:
    """List the skills that agents may load, and those that do not count."""
    from explorer.cli.commands.skills import list_skills  # noqa: PLC0415 - as above

    return list_skills(options=options)


def print_report_of_run(
    run: Annotated[str, Parameter(help="A run's id, the beginning of one, or `latest`.")] = "latest",
    /,
    *,
    output: Annotated[
        str | None,
        Parameter(
            name=["--output", "-o"],
            metavar="FILE",
            help="Write it to FILE instead: .md, .html, .pdf, .docx, .json.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, Parameter(name="--overwrite", negative="", help="Let -o replace a file that exists.")
    ] = False,
    options: CommonOptions = COMMON,
) -> int:
    """Print a run's report: rendered on a terminal, plain markdown in a pipe; or write it to a file.

    Example: `explorer report latest -o report.pdf`
    """
    from explorer.cli.commands.runs import report  # noqa: PLC0415 - as above

    return report(run, output=output, overwrite=overwrite, options=options)


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
        raise _usage_error(error, tokens) from error


def arranged(tokens: list[str]) -> list[str]:
    """Say in flags what the parser has no words for: `-`, `--` before a question, a bare `--plan`, `help COMMAND`."""
    tokens = with_plan_mode(tokens)
    if tokens[:1] == ["help"] and len(tokens) > 1 and tokens[1] in COMMANDS:
        return [tokens[1], "--help"]
    if tokens and tokens[0] in COMMANDS and tokens[0] != ASK_ANYWAY:
        return tokens
    place = tokens.index("--") if "--" in tokens else len(tokens)
    flags = ["--stdin" if word == "-" else word for word in tokens[:place]]
    return [*flags, "--literal", *tokens[place:]] if place < len(tokens) else flags


def _usage_error(error: CycloptsError, tokens: list[str]) -> ConfigError:
    bare = list(takewhile(lambda token: not token.startswith("-"), tokens))
    if bare and bare[0] not in COMMANDS:
        # A flag of the command that was meant is none of a question's.
        refuse_mistyped_command(bare)
    hint = f"see: explorer {tokens[0]} --help" if tokens and tokens[0] in COMMANDS else "see: explorer --help"
    if any(token.startswith("-") and " " in token for token in tokens):
        hint = 'put two dashes before a question that begins with one: explorer -- "-1 is what?"'
    if len(bare) > MOST_COMMAND_WORDS:
        hint += f"; to ask it as a question: explorer ask {' '.join(bare)}"
    return ConfigError(str(error).strip(), hint=hint)


def _on_bug(
    output_format: OutputFormat,
    verbose: int,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
) -> None:
    """What nobody foresaw: shown in one line, in the same shape as everything else, and with exit code 1."""
    print_bug(kind, error, trace, verbose=verbose)
    words = {"message": str(error), "hint": "run it again with -vv for the traceback", "type": kind.__name__}
    emit_outcome(CommandResult("error", 1, reason=str(error), error=words), output_format)
