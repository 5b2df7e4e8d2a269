"""The command `repl`: a session of questions and follow-ups, with commands that begin with a slash."""

import os
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.commands.report import report
from explorer.cli.commands.runs import runs
from explorer.cli.commands.show import show
from explorer.cli.commands.trust import settings_to_run
from explorer.cli.commands.verify import verify
from explorer.cli.launch import Shown, continue_run, input_files, start_run
from explorer.cli.plan_approval import decision_in
from explorer.cli.question import as_asked
from explorer.cli.screens.approval import terminal_approval
from explorer.cli.screens.output import HUNG_UP, TERMINATED, aligned, emit_page, print_error, say
from explorer.cli.screens.plan_page import plan_page, progress_page
from explorer.cli.screens.prompt import LineSource, PipedLines, TypedLines
from explorer.cli.screens.screen import screen_for
from explorer.cli.settings.configuration import configured, looks_at_runs
from explorer.cli.settings.options import GIVEN, GivenOptions
from explorer.cli.settings.user_folders import state_folder
from explorer.cli.typo import closest
from explorer.journal.control import ControlKind, Inbox
from explorer.journal.listing import find_run, read_records
from explorer.observe.formatting import counted, one_line
from explorer.observe.run_view import RunView
from explorer.schema.errors import ConfigError, ExplorerError, NotFoundError
from explorer.schema.plan import PlanDecision
from explorer.schema.version import __version__
from explorer.workspace.source_store import stored_at
from explorer.workspace.workspace import Workspace

HISTORY = "repl_history"
GREETING = f"explorer {__version__}: type a question; /help lists commands, /quit leaves"
LIMITS = {"cost": "max_cost", "time": "max_time", "steps": "max_steps", "tokens": "max_tokens", "agents": "max_agents"}
ENDED_BY_SIGNAL = frozenset({TERMINATED, HUNG_UP})


@dataclass
class Conversation:
    """A session of the command `repl`: the run that it is about, and the options of its next run."""

    options: GivenOptions
    lines: LineSource
    folder: Path | None = None
    """The run that follow-ups go to; None: the next words are a new question."""
    view: RunView = field(default_factory=RunView)
    """What is known of the run that is at work, or was last."""
    is_working: bool = False
    code: int = 0
    """The exit code of the latest run."""
    is_over: bool = False

    def talk(self) -> None:
        """Take lines until there are no more."""
        is_leaving = False
        while not self.is_over:
            try:
                line = self.lines.line()
            except KeyboardInterrupt:
                if is_leaving:
                    return
                is_leaving = True
                say("Ctrl-C once more, Ctrl-D or /quit leaves")
                continue
            if line is None:
                return
            is_leaving = False
            self.take(line)

    def take(self, line: str) -> None:
        """Do what a line says; an error is shown, and the session continues."""
        try:
            if line.startswith("/"):
                self._command(line)
            elif line and self.is_working:
                steer(self, line)
            elif line:
                self.ask(line)
        except ExplorerError as error:
            print_error(error, verbose=self.options.verbose)

    def _command(self, line: str) -> None:
        name, _, words = line.partition(" ")
        command = COMMANDS.get(name)
        if command is None:
            near = closest(name, COMMANDS, 2)
            hint = f"did you mean {near}? All commands: /help" if near else "all commands: /help"
            raise ConfigError(f"there is no command {one_line(name, 40)}", hint=f"{hint}; to ask it: /new {line}")
        if self.is_working and not command.while_working:
            raise ConfigError(f"{name} waits for the end of the run", hint="/stop ends it with a report")
        command.act(self, words.strip())

    def ask(self, words: str, decision: PlanDecision | None = None) -> None:
        """Start a run with a question, or ask the run a follow-up; or tell it what is decided about its plan."""
        words = as_asked(words)
        shown = self._shown()
        self.view, self.is_working = shown.view, True
        try:
            if self.folder is None:
                configuration = settings_to_run(self.options)
                preset = configuration.settings.preset
                question = words or (preset.question if preset else "")
                if not question:
                    raise ConfigError("there is no question", hint="type one, or /help")
                self.code = start_run(question, configuration, self.options, shown)
            else:
                # A run keeps its preset as its journal has it, and its files.
                options = replace(self.options, preset=None, files=())
                self.code = continue_run(self.folder, decision or words, settings_to_run(options), options, shown)
        finally:
            self.is_working = False
            if shown.view.run_id and self.folder is None:
                workspace = configured(self.options, looks_at_runs).settings.workspace
                self.folder = find_run(workspace, shown.view.run_id)
        self.is_over = self.code in ENDED_BY_SIGNAL

    def _shown(self) -> Shown:
        live = self.lines.screen(self.take)
        if live is not None:
            return Shown(live, RunView(), live.approve)
        screen = screen_for(self.options)
        return Shown(screen, RunView(), terminal_approval(screen, self.options))

    def place(self) -> Path:
        """Return the folder of the run.

        Raises:
            NotFoundError: There is none yet.
        """
        if self.folder is not None:
            return self.folder
        if self.view.run_id:
            return find_run(configured(self.options, looks_at_runs).settings.workspace, self.view.run_id)
        raise NotFoundError("there is no run yet", hint="type a question, or /open RUN")


def leave(session: Conversation, _words: str) -> None:
    """End the session."""
    session.is_over = True


def new(session: Conversation, words: str) -> None:
    """Start a new run: now with a question, else with the next words."""
    session.folder, session.view = None, RunView()
    preset = session.options.preset
    if words or preset:
        session.ask(words)
    else:
        say("the next question starts a new run")


def open_run(session: Conversation, words: str) -> None:
    """Make an earlier run the one that follow-ups go to."""
    found = find_run(configured(session.options, looks_at_runs).settings.workspace, words or "latest")
    view = RunView()
    for record in read_records(found):
        view.apply(record)
    session.folder, session.view = found, view
    say(f"{found.name} ({view.status}): {one_line(view.question, 200)}")


def resume(session: Conversation, _words: str) -> None:
    """Continue the run where it stopped."""
    session.folder = session.place()
    session.ask("")


def plan(session: Conversation, words: str) -> None:
    """Show how far the plan is; with approve, reject or a file, decide about a plan that waits."""
    session.folder = session.place()
    decision = decision_in(words or None)
    facts = session.view.plan.summary()
    if decision is not None:
        session.ask("", decision)
    elif facts is not None:
        emit_page(plan_page(facts) if session.view.plan.is_waiting else progress_page(facts))
    else:
        say("this run has no plan (--plan, --reflect)")


def status(session: Conversation, _words: str) -> None:
    """Say how far the run is."""
    session.place()
    view = session.view
    agents = ", ".join(f"{agent.id} {agent.status}" for agent in view.agents.values()) or "none yet"
    found = (("source", len(view.sources)), ("file", len(view.files)), ("step", view.steps))
    counts = ", ".join(counted(number, word) for word, number in found)
    state = "at work" if session.is_working else view.status
    reason = f" ({one_line(view.reason)})" if view.reason else ""
    say(f"{view.run_id}: {state}{reason}; {counts}\n  agents: {agents}")


def sources(session: Conversation, words: str) -> None:
    """List the sources, all or those with words in title or address; with an id, print the stored text of one."""
    place = session.place()
    if words in session.view.sources:
        emit_page(Workspace(place).read_text(stored_at(words)))
        return
    wanted = words.casefold()
    rows = [
        (source.id, source.kind, one_line(source.title, 100), source.url)
        for source in session.view.sources.values()
        if wanted in f"{source.title} {source.url}".casefold()
    ]
    emit_page(aligned(("ID", "KIND", "TITLE", "ADDRESS"), rows) if rows else "no such sources")


def steer(session: Conversation, words: str) -> None:
    """Send words to the run that is at work."""
    _order(session, ControlKind.STEER, as_asked(words))
    say(f"sent to the run: {one_line(words, 100)}")


def stop(session: Conversation, _words: str) -> None:
    """Make the run write its report from what was found, and stop."""
    _order(session, ControlKind.STOP, "stopped by the user")
    say("asked to stop: the report comes within half a minute")


def _order(session: Conversation, kind: ControlKind, words: str) -> None:
    if not session.is_working or not session.view.run_id:
        raise ConfigError("no run is at work", hint="without a command, your message is a follow-up")
    if not words:
        raise ConfigError("there is no message to send", hint='write: /steer "your message"')
    Inbox(session.place() / ".explorer").leave(kind, words, time.time_ns)


def choose_model(session: Conversation, words: str) -> None:
    """Choose the model of the next run or follow-up: NAME, or ROLE=NAME; empty: what the settings say."""
    session.options = replace(session.options, model=tuple(words.split()))
    say(f"model: {words or 'as the settings say'}")


def choose_preset(session: Conversation, words: str) -> None:
    """Choose the preset of the next new run; empty: none."""
    session.options = replace(session.options, preset=words or None)
    settings_to_run(session.options)
    say(f"preset of the next new run: {words or 'none'}")


def choose_files(session: Conversation, words: str) -> None:
    """Choose the files of the next new runs; empty: none."""
    try:
        names = tuple(shlex.split(words))
    except ValueError as error:
        raise ConfigError(f"{one_line(words, 40)}: {error}", hint="put a path with spaces into quotes") from error
    input_files(names)
    session.options = replace(session.options, files=names)
    say(f"files of the next new run: {', '.join(names) or 'none'}")


def limit(session: Conversation, words: str) -> None:
    """Set a limit of the next run or follow-up: cost 2, time 10m, steps 100, tokens 500000, agents 6."""
    name, _, value = words.partition(" ")
    if name not in LIMITS or not value.strip():
        raise ConfigError(f"{one_line(words, 40) or 'nothing'} is not a limit", hint="for example: /limit cost 2")
    changed = replace(session.options, **{LIMITS[name]: value.strip()})
    settings_to_run(changed)
    session.options = changed
    say(f"limit of {name}: {value.strip()}")


def help_page(_session: Conversation, _words: str) -> None:
    """List these commands."""
    rows = [(f"{name} {command.takes}".strip(), command.help) for name, command in COMMANDS.items()]
    say(aligned(("COMMAND", "WHAT IT DOES"), rows))
    say("Other words are a question, a follow-up to the run, or, while it works, a message to it.")


@dataclass(frozen=True)
class SlashCommand:
    """What a line that begins with a slash does."""

    act: Callable[[Conversation, str], None]
    help: str
    takes: str = ""
    while_working: bool = False


def _shows(kind: str) -> Callable[[Conversation, str], None]:
    def act(session: Conversation, _words: str) -> None:
        flags = {kind: True} if kind else {}
        show(str(session.place()), options=session.options, **flags)

    return act


COMMANDS = {
    "/help": SlashCommand(help_page, "list these commands", while_working=True),
    "/status": SlashCommand(status, "how far the run is", while_working=True),
    "/sources": SlashCommand(
        sources, "the sources, all or with words; with an id: its text", "[WORDS]", while_working=True
    ),
    "/files": SlashCommand(
        _shows("files"), "the files of the run: who wrote each, when, citing what", while_working=True
    ),
    "/report": SlashCommand(lambda one, _: _done(report(str(one.place()), options=one.options)), "print the report"),
    "/verify": SlashCommand(
        lambda one, _: _done(verify(str(one.place()), options=one.options)), "look quotes and figures up"
    ),
    "/cost": SlashCommand(_shows("costs"), "tokens, money and time by role and agent", while_working=True),
    "/show": SlashCommand(_shows(""), "the run: agents, files, sources, how it went", while_working=True),
    "/timeline": SlashCommand(_shows("timeline"), "every record of the run", while_working=True),
    "/steer": SlashCommand(steer, "send an instruction to the run at work", "MESSAGE", while_working=True),
    "/stop": SlashCommand(stop, "have the report written from what there is", while_working=True),
    "/resume": SlashCommand(resume, "continue the run where it stopped"),
    "/plan": SlashCommand(plan, "the plan; decide about one that waits", "[approve|reject|FILE]"),
    "/new": SlashCommand(new, "start a new run", "[QUESTION]"),
    "/open": SlashCommand(open_run, "ask follow-ups of an earlier run", "[RUN]"),
    "/runs": SlashCommand(
        lambda one, _: _done(runs(options=one.options)), "list runs, newest last", while_working=True
    ),
    "/model": SlashCommand(choose_model, "model of the next run or follow-up", "[NAME]"),
    "/preset": SlashCommand(choose_preset, "preset of the next new run", "[NAME]"),
    "/file": SlashCommand(choose_files, "files that the next new run is about", "[PATH...]"),
    "/limit": SlashCommand(limit, "limit of the next run: cost, time, steps, tokens, agents", "NAME VALUE"),
    "/quit": SlashCommand(leave, "leave; the runs stay"),
    "/exit": SlashCommand(leave, "the same"),
}
"""All commands of a session, by name."""


def _done(_code: int) -> None:
    """Drop an exit code: a session has its own."""


def repl(
    run: Annotated[str, Parameter(help="A run to continue: its id, the beginning of one, or `latest`.")] = "",
    /,
    *,
    options: GivenOptions = GIVEN,
) -> int:
    """Ask questions and follow-ups in a session, with commands such as /sources, /verify and /steer.

    While a run works, what you type is sent to it. Ctrl-C once: its report within half a minute; twice: it stops at
    once, and the session continues. Without a terminal, lines are read from stdin, each after the end of the run
    before; the exit code is that of the last run. Each new run gets the files of `--file` and the folder of `--corpus`.

    Example: `explorer repl latest`
    """
    is_terminal = sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "") not in {"", "dumb"}
    state = state_folder(os.environ)
    helps = {name: command.help for name, command in COMMANDS.items()}
    is_plain = not is_terminal or options.quiet or options.output_format != "text"
    lines = PipedLines() if is_plain else TypedLines(state / HISTORY if state else None, helps)
    settings_to_run(options)
    if run and options.files:
        raise ConfigError(
            "files are given when a run starts, not when it is resumed", hint=f"leave out --file, or {run}"
        )
    input_files(options.files)
    # Trusted once, as the files are now: what they become during the session is not.
    session = Conversation(replace(options, trust=False), lines)
    if not options.quiet:
        say(GREETING)
    if run:
        open_run(session, run)
    session.talk()
    return session.code if is_plain or session.code in ENDED_BY_SIGNAL else 0
