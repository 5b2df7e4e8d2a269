"""A run launched for a command: what it takes is checked, the work is driven on a screen, and its end is printed.

Commands import this after their first line: it loads the engine.
"""

import asyncio
import io
import os
import select
import shlex
import signal
import stat
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from explorer.cli.commands.catalog import check_rules, check_team, named_tools
from explorer.cli.commands.dry_run import print_plan
from explorer.cli.notify import Notifier
from explorer.cli.plan_approval import ask_about, is_at_terminal
from explorer.cli.report_files import check_target
from explorer.cli.screens.approval import terminal_approval
from explorer.cli.screens.output import INTERRUPTED, say
from explorer.cli.screens.run_summary import SummaryPrinter
from explorer.cli.screens.screen import Screen, screen_for, tap_for
from explorer.cli.session import Session, SessionEnd, Work
from explorer.cli.settings.configuration import Configuration
from explorer.cli.settings.options import AskOptions, GivenOptions, RunOptions
from explorer.cli.settings.untrusted import within
from explorer.cli.settings.values import Origin
from explorer.cli.telemetry import show_logs, traced
from explorer.documents.corpus.folder import MAX_FILE_BYTES
from explorer.documents.corpus.reading import PARSED, readable_kind
from explorer.journal.codec import is_own
from explorer.journal.control import Inbox
from explorer.journal.listing import find_run, holder, read_records
from explorer.journal.run_state import RunState
from explorer.observe.run_view import RunView
from explorer.run.hooks import RunHooks
from explorer.run.run import RunResult, resume, start
from explorer.sandbox.confinement import SandboxTier
from explorer.schema.approvals import Approve
from explorer.schema.errors import ConfigError, NotFoundError, RunLockedError
from explorer.schema.events import RunStarted, Status
from explorer.schema.plan import PlanDecision
from explorer.schema.settings import Settings
from explorer.workspace.user_key import open_key

WAIT_S = 2.0
"""A pipe that holds nothing for so long, and is not closed, is a script's own and nobody's input."""
SUFFIXES = {kind: f".{kind}" for kind in PARSED}
"""Suffix of a kind that is not plain text."""
NOTHING = "nothing came from standard input, though it is open; the question is asked without it"


def piped_files(say: Callable[[str], None], wait_s: float = WAIT_S) -> dict[str, bytes]:
    """Read stdin; return its bytes by their name in the run, such as `stdin.txt` or `stdin.pdf`, or nothing.

    Nothing is read from a terminal, a device such as /dev/null, or a closed stdin.

    Args:
        say: Is told when a pipe stayed open and silent.
        wait_s: How long the first byte of a pipe is waited for.

    Raises:
        ConfigError: It is too much.
    """
    body = _body(say, wait_s)
    if not body.strip():
        return {}
    if len(body) > MAX_FILE_BYTES:
        raise ConfigError(
            f"standard input has more than {MAX_FILE_BYTES:,} bytes", hint="give the part that matters, or --corpus DIR"
        )
    return {f"stdin{SUFFIXES.get(readable_kind(body, 'stdin'), '.txt')}": body}


def _body(say: Callable[[str], None], wait_s: float) -> bytes:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - None where it was closed at the start
        return b""
    try:
        return sys.stdin.buffer.read(MAX_FILE_BYTES + 1) if _holds_something(say, wait_s) else b""
    except (OSError, ValueError):
        # Closed, or opened for writing only.
        return b""


def _holds_something(say: Callable[[str], None], wait_s: float) -> bool:
    """Return whether stdin is a file, or a pipe with something in it or closed at its other end."""
    try:
        descriptor = sys.stdin.fileno()
    except io.UnsupportedOperation:
        # An embedding program's own stream: it holds what it holds.
        return True
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return stat.S_ISREG(mode)
    is_ready = bool(select.select([descriptor], [], [], wait_s)[0])
    if not is_ready:
        say(NOTHING)
    return is_ready


LAST_RESORT_S = 5.0
CONFINED = frozenset({SandboxTier.BUBBLEWRAP, SandboxTier.LANDLOCK})


def _piped(options: RunOptions) -> dict[str, bytes]:
    """Return what is piped in next to a question, by name; of stdin that is the question itself nothing is left."""
    if not isinstance(options, AskOptions) or options.from_stdin:
        return {}
    return piped_files(say if not options.quiet else lambda _words: None)


@dataclass(frozen=True)
class Shown:
    """Where a run is shown, for a command that shows more than one."""

    screen: Screen
    view: RunView
    approve: Approve | None
    """Asks the user about calls; None: nobody is at a terminal."""


def start_run(question: str, configuration: Configuration, options: RunOptions, shown: Shown | None = None) -> int:
    """Start a run, or print the plan of one, and report how it ended."""
    files = input_files(options.files) if isinstance(options, GivenOptions) else ()
    settings = configuration.settings.model_copy(update={"files": files, **_since(options, configuration.settings)})
    check_before_paying(options)
    piped = _piped(options)
    if isinstance(options, AskOptions) and options.dry_run:
        return print_plan(question, settings, options, piped)
    tools = named_tools(options, settings)
    check_team(settings, tools)

    async def work(hooks: RunHooks) -> RunResult:
        return await start(question, settings, replace(hooks, files=piped, tools=tools))

    session = _session(options, replace(configuration, settings=settings), shown)
    later = replace(options, files=()) if isinstance(options, GivenOptions) else options
    after = _AfterSession(configuration, later, Notifier.of(options.notify, settings), shown is None)
    return after.finish(drive(work, session, options))


def _since(options: RunOptions, settings: Settings) -> dict[str, str]:
    """Return the earlier run by its whole id."""
    if not isinstance(options, AskOptions) or options.since_run is None:
        return {}
    folder = find_run(settings.workspace, options.since_run)
    if folder.parent.resolve() != settings.workspace.resolve():
        hint = f"explore in the same folder: --workspace {shlex.quote(str(folder.parent))}"
        raise ConfigError(f"the earlier run {folder} is in another workspace than {settings.workspace}", hint=hint)
    return {"since_run": folder.name}


def continue_run(
    folder: Path,
    said: str | PlanDecision,
    configuration: Configuration,
    options: RunOptions,
    shown: Shown | None = None,
) -> int:
    """Resume a run with a message, which may be empty, or the decision about its plan; report how it ended."""
    check_before_paying(options)
    if _piped(options):
        hint = "start a run with it: leave out -c; or make it the follow-up itself: explorer -c -"
        raise ConfigError("text is piped in, and files are given when a run starts, not when it is resumed", hint=hint)
    settings = settings_to_continue(folder, configuration)
    if folder.parent.resolve() != settings.workspace.resolve():
        # The run was given by its path: all that is said of it names its own workspace.
        settings = settings.model_copy(update={"workspace": folder.parent})
        options = replace(options, workspace=str(folder.parent))
    tools = named_tools(options, settings)
    if options.approval:
        check_rules(settings, tools)
    session = _session(options, replace(configuration, settings=settings), shown)
    _refuse_second_process(folder)
    Inbox(folder / ".explorer").drop_stops()

    async def work(hooks: RunHooks) -> RunResult:
        message, decision = (said, None) if isinstance(said, str) else ("", said)
        return await resume(folder, settings, message, replace(hooks, tools=tools, plan_decision=decision))

    configuration = replace(configuration, settings=settings)
    after = _AfterSession(configuration, options, Notifier.of(options.notify, settings), shown is None)
    return after.finish(drive(work, session, options))


@dataclass(frozen=True)
class _AfterSession:
    """What a command does when a session has ended."""

    configuration: Configuration
    options: RunOptions
    notifier: Notifier
    may_ask: bool
    """Whether the terminal is this command's own."""

    def finish(self, ending: SessionEnd) -> int:
        """Print how a session ended; where a plan waits and a user is at the terminal, ask about it and continue."""
        result = ending.result
        may_ask = self.may_ask and is_at_terminal(self.options)
        if may_ask and result is not None and result.status is Status.WAITING and result.plan is not None:
            session = ending.view.session
            limit = session.limits.get("max_cost_usd") if session is not None else None
            decision = ask_about(result.plan, limit.value if limit is not None else None)
            if decision is not None:
                return continue_run(result.folder, decision, self.configuration, self.options)
        return SummaryPrinter(self.options, self.configuration.settings.workspace, self.notifier).print_end(ending)


def settings_to_continue(folder: Path, configuration: Configuration) -> Settings:
    """Return the settings that a run is continued with.

    Raises:
        ConfigError: A file of settings alone would take the sandbox from a run that had one, or that was carried here.
    """
    _refuse_unsafe_by_file(folder, configuration)
    settings, of_stranger = configuration.settings, configuration.of_stranger
    return _within_recorded(settings, of_stranger, folder) if of_stranger else settings


def _within_recorded(settings: Settings, of_folder: Collection[str], folder: Path) -> Settings:
    """Return the settings without limits of a folder that is not trusted which are above those of the run."""
    started = next((record.event for record in read_records(folder) if isinstance(record.event, RunStarted)), None)
    return within(settings, of_folder, Settings.recorded(started.settings)) if started else settings


def _refuse_unsafe_by_file(folder: Path, configuration: Configuration) -> None:
    """Refuse a file of settings that alone takes the sandbox from a carried run, or from one that had a sandbox.

    Raises:
        ConfigError: It would.
    """
    shell = next(value for value in configuration.values if value.name == "shell")
    if configuration.settings.shell != "unsafe" or shell.level in {Origin.FLAG, Origin.ENVIRONMENT}:
        return
    before = RunState.of_records(read_records(folder)).sandbox
    why = f"this run's commands were confined by {before}" if before in CONFINED else ""
    if not is_own(folder, open_key(configuration.settings.state_dir)):
        why = "nothing proves that you started this run"
    if why:
        command = f"explorer resume {folder.name}"
        raise ConfigError(
            f"{why}, and only {shell.origin} lets commands run without a sandbox",
            hint=f"say it for this run: {command} --unsafe-shell; or use the sandbox: EXPLORER_SHELL=auto {command}",
        )


def _refuse_second_process(folder: Path) -> None:
    """Refuse a second process on a run, and say what can be done instead; the journal's lock would refuse it, too."""
    process = holder(folder)
    if process is not None:
        name = folder.name
        ways = (f'say it to that: explorer steer {name} "..."', f"stop it: explorer stop {name}")
        raise RunLockedError(f"process {process} is working on this run", hint="\n  → ".join(ways))


def drive(work: Work, session: Session, options: RunOptions) -> SessionEnd:
    """Do the work of a run in an event loop of its own, and return how it ended."""
    show_logs(options.verbose)
    resort = LastResort()
    session.last_resort = resort.begin
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            ending = runner.run(session.drive(work))
            # All is on disk, and what is left is to be printed: the interpreter's own way would lose it.
            before = signal.signal(signal.SIGINT, lambda _number, _frame: resort.begin(INTERRUPTED))
        signal.signal(signal.SIGINT, before)
        return ending
    finally:
        resort.cancel()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the loop of uvloop where it is installed, for 3 to 14 % less CPU; None for Python's own."""
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
        self.cancel()
        self._timer = threading.Timer(LAST_RESORT_S, os._exit, (code,))
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Stop the timer: nothing hung."""
        if self._timer is not None:
            self._timer.cancel()


def _session(options: RunOptions, configuration: Configuration, shown: Shown | None = None) -> Session:
    """Return what one run is driven with."""
    if shown is None:
        screen = screen_for(options)
        shown = Shown(screen, RunView(), terminal_approval(screen, options))
    session = Session(
        shown.screen, tap_for(options), origins=configuration.origins, view=shown.view, approve=shown.approve
    )
    return traced(session, configuration.settings)


def input_files(names: Sequence[str]) -> tuple[Path, ...]:
    """Return the files that are given to a run.

    Raises:
        NotFoundError: One is not there.
        ConfigError: One cannot be read.
    """
    paths = tuple(Path(name).expanduser() for name in names)
    for path in paths:
        if not path.exists():
            raise NotFoundError(f"there is no file {path}", hint="check the path given to --file")
        if not path.is_file() or not os.access(path, os.R_OK):
            raise ConfigError(f"{path} is not a readable file", hint="give a file that you may read: --file PATH")
    return paths


def check_before_paying(options: RunOptions) -> None:
    """Find now what would otherwise fail after the money is spent."""
    if options.output is not None:
        check_target(options.output, overwrite=options.overwrite)
