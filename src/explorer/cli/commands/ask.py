"""The commands that run something: a question, `resume`, `demo`."""

import asyncio
import os
import shlex
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.commands.catalog import check_team
from explorer.cli.commands.dry_run import print_plan
from explorer.cli.logs import show_logs
from explorer.cli.piped_input import piped_files
from explorer.cli.question import as_asked
from explorer.cli.screens.run_summary import SummaryPrinter
from explorer.cli.screens.screen import say
from explorer.cli.screens.screen_choice import screen_for, tap_for
from explorer.cli.session import Session, Work
from explorer.cli.settings.configuration import Configuration
from explorer.cli.settings.load import configured
from explorer.cli.settings.options import RUN, AskOptions, RunOptions
from explorer.cli.tool_files import named_tools
from explorer.cli.tracing import traced
from explorer.journal.control import Inbox
from explorer.journal.listing import LATEST, find_run, holder
from explorer.run.run import RunHooks, RunResult, start
from explorer.run.run import resume as resume_run
from explorer.schema.errors import ConfigError, NotFoundError, RunLockedError
from explorer.schema.settings import Settings

LAST_RESORT_S = 5.0
REPORT_SUFFIXES = frozenset({"", ".md", ".markdown", ".txt"})
"""What a copy of the report may be called: it is markdown, whatever its name."""
SAMPLE_QUESTION = "What was notable on Hacker News on the sample day, and what did people argue about?"


def ask_question(question: str, options: AskOptions) -> int:
    """Explore a question, or resume the latest run."""
    if not options.go_on:
        return _start(question, configured(options), options)
    if options.dry_run:
        raise ConfigError("only a new question can be planned", hint="leave out -c, or --dry-run")
    if options.since_run is not None:
        raise ConfigError("an earlier run is named when a run starts", hint="leave out --since-run, or -c")
    if options.files:
        raise ConfigError("files are given when a run starts, not when it is resumed", hint="leave out --file, or -c")
    if _piped(options):
        hint = "start a run with it: leave out -c; or make it the follow-up itself: explorer -c -"
        raise ConfigError("text is piped in, and files are given when a run starts, not when it is resumed", hint=hint)
    return _resume(LATEST, question, options)


def resume(
    run: Annotated[str, Parameter(help="A run's id, the beginning of one, or `latest`.")] = LATEST,
    /,
    *message: Annotated[str, Parameter(help="A follow-up question, or a message to an unfinished run.")],
    options: RunOptions = RUN,
) -> int:
    """Resume a run: an unfinished one where it stopped, a finished one with a follow-up.

    Everything the run found before is kept; no finished work is paid for again.
    """
    if len(run.split()) > 1:
        raise ConfigError("the run comes first, and its name has no spaces", hint='write: explorer resume latest "..."')
    return _resume(run, as_asked(" ".join(message)), options)


def demo(
    *question: Annotated[str, Parameter(help="Another question than the sample one.")],
    options: RunOptions = RUN,
) -> int:
    """Explore the bundled, invented sample day: no key, no network, no cost.

    The engine is the same as for every run: an orchestrator, helpers, files, a cited report. Only the pages are
    invented, and a rule-based offline engine takes the place of the model.
    """
    configuration = configured(options if options.model else replace(options, model=("offline",)))
    if not options.model:
        configuration = configuration.with_origin("model", "the command demo")
    settings = configuration.settings.model_copy(update={"is_sample": True})
    words = as_asked(" ".join(question)) or SAMPLE_QUESTION
    return _start(words, replace(configuration, settings=settings), options)


def _piped(options: RunOptions) -> dict[str, bytes]:
    """What is piped in next to a question, by name; of stdin that is the question itself nothing is left."""
    if not isinstance(options, AskOptions) or options.from_stdin:
        return {}
    return piped_files(say if not options.quiet else lambda _words: None)


def _start(question: str, configuration: Configuration, options: RunOptions) -> int:
    files = _files(options.files) if isinstance(options, AskOptions) else ()
    settings = configuration.settings.model_copy(update={"files": files, **_since(options, configuration.settings)})
    check_before_paying(options)
    piped = _piped(options)
    if isinstance(options, AskOptions) and options.dry_run:
        return print_plan(question, settings, options, piped)
    tools = named_tools(options, settings)
    check_team(settings, tools)

    async def work(hooks: RunHooks) -> RunResult:
        return await start(question, settings, replace(hooks, files=piped, tools=tools))

    session = _session(options, replace(configuration, settings=settings))
    return _drive(work, session, settings, options)


def _since(options: RunOptions, settings: Settings) -> dict[str, str]:
    """The earlier run by its whole id."""
    if not isinstance(options, AskOptions) or options.since_run is None:
        return {}
    folder = find_run(settings.workspace, options.since_run)
    if folder.parent.resolve() != settings.workspace.resolve():
        hint = f"explore in the same folder: --workspace {shlex.quote(str(folder.parent))}"
        raise ConfigError(f"the earlier run {folder} is in another workspace than {settings.workspace}", hint=hint)
    return {"since_run": folder.name}


def _resume(name: str, message: str, options: RunOptions) -> int:
    configuration = configured(options)
    check_before_paying(options)
    return continue_run(find_run(configuration.settings.workspace, name), message, configuration, options)


def continue_run(folder: Path, message: str, configuration: Configuration, options: RunOptions) -> int:
    """Resume a run, and report how it ended."""
    settings = configuration.settings
    if folder.parent.resolve() != settings.workspace.resolve():
        # The run was given by its path: all that is said of it names its own workspace.
        settings = settings.model_copy(update={"workspace": folder.parent})
        options = replace(options, workspace=str(folder.parent))
    tools = named_tools(options, settings)
    session = _session(options, replace(configuration, settings=settings))
    _refuse_second(folder)
    Inbox(folder / ".explorer").drop_stops()

    async def work(hooks: RunHooks) -> RunResult:
        return await resume_run(folder, settings, message, replace(hooks, tools=tools))

    return _drive(work, session, settings, options)


def _refuse_second(folder: Path) -> None:
    """One process works on a run; the journal's own lock sees to it, and this says what can be done instead."""
    process = holder(folder)
    if process is not None:
        name = folder.name
        ways = (f'say it to that: explorer steer {name} "..."', f"stop it: explorer stop {name}")
        raise RunLockedError(f"process {process} is working on this run", hint="\n  → ".join(ways))


def _drive(work: Work, session: Session, settings: Settings, options: RunOptions) -> int:
    show_logs(options.verbose)
    resort = LastResort()
    session.last_resort = resort.begin
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            ending = runner.run(session.drive(work))
    finally:
        resort.cancel()
    return SummaryPrinter(options, settings.workspace).print_end(ending)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The loop of uvloop where it is installed, for 3 to 14 % less CPU; None for Python's own."""
    if find_spec("uvloop") is None:
        return None
    import uvloop  # noqa: PLC0415 - few have it

    return uvloop.new_event_loop


class LastResort:
    """Ends the process some seconds after a run was stopped at once, whatever hangs: a thread of a name server's, say.

    The report is written long before; if it is not, the next command that looks at the run writes it.
    """

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def begin(self, code: int) -> None:
        """Wait for the process to end by itself; then end it with this exit code."""
        self._timer = threading.Timer(LAST_RESORT_S, os._exit, (code,))
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Nothing hung."""
        if self._timer is not None:
            self._timer.cancel()


def _session(options: RunOptions, configuration: Configuration) -> Session:
    """Return what one run is driven with."""
    session = Session(screen_for(options), tap_for(options), origins=configuration.origins)
    return traced(session, configuration.settings)


def _files(names: Sequence[str]) -> tuple[Path, ...]:
    paths = tuple(Path(name).expanduser() for name in names)
    for path in paths:
        if not path.exists():
            raise NotFoundError(f"there is no file {path}", hint="check the path given to --file")
        if not path.is_file() or not os.access(path, os.R_OK):
            raise ConfigError(f"{path} is not a readable file", hint="give a text file to --file")
    return paths


def check_before_paying(options: RunOptions) -> None:
    """Find now what would otherwise fail after the money is spent."""
    if options.output is not None:
        target = Path(options.output).expanduser()
        if target.suffix.lower() not in REPORT_SUFFIXES:
            raise ConfigError(
                f"the report is markdown, and {target} would be taken for something else",
                hint=f"write it as markdown and convert that: -o {target.with_suffix('.md')}",
            )
        if target.is_dir() or not os.access(target.parent, os.W_OK):
            raise ConfigError(f"cannot write the report to {target}", hint="give a file in a folder that exists")
