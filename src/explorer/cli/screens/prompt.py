"""Where the lines of a session come from: a pipe, or a terminal with editing, history and a run's live view above."""

import asyncio
import io
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console

from explorer.cli.screens.approval import ANSWERS
from explorer.cli.screens.live import LiveView
from explorer.observe.formatting import approval_words
from explorer.observe.run_view import RunView
from explorer.schema.approvals import Approval, ApprovalRequest
from explorer.workspace.safe_open import FILE_MODE, make_private_folder, open_private

PROMPT = "> "
RUNNING_KEYS = "Enter: send to the run; /help; Ctrl-C: stop, report in 30 s; twice: stop now"
REFRESH_S = 0.25
MAX_LINE_BYTES = 1_000_000
MAX_HISTORY_BYTES = 1_000_000
OnLine = Callable[[str], None]


class LineSource(Protocol):
    """Gives the lines that a user types, one after another."""

    def line(self) -> str | None:
        """Return the next line; None at the end.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed where there was nothing to clear.
        """
        ...

    def screen(self, on_line: OnLine) -> "PromptScreen | None":
        """Return a screen on which lines are taken while a run works; None where they wait for its end."""
        ...


class PipedLines:
    """Reads lines from a pipe, a file, or a terminal that cannot move its cursor."""

    def line(self) -> str | None:
        """Return the next line; bytes that are no UTF-8 are replaced."""
        if sys.stdin.isatty():
            print(PROMPT, end="", file=sys.stderr, flush=True)
        read = sys.stdin.buffer.readline(MAX_LINE_BYTES)
        return read.decode("utf-8", "replace").strip() if read else None

    def screen(self, on_line: OnLine) -> "PromptScreen | None":  # noqa: ARG002 - of the protocol
        """Return None: what is piped in is for after the run."""
        return None


class TypedLines:
    """Reads lines from a terminal: with editing, completion of commands, and a history that lasts.

    Args:
        history: The file of the history; None: it ends with the session.
        commands: Help by command, for the completion.
    """

    def __init__(self, history: Path | None, commands: Mapping[str, str]) -> None:
        kept, completer = _history(history), _Commands(commands)
        self._idle: PromptSession[str] = PromptSession(history=kept, completer=completer, key_bindings=_clearing())
        self._running: PromptSession[str] = PromptSession(
            history=kept, completer=completer, key_bindings=_interrupting(), erase_when_done=True
        )

    def line(self) -> str | None:
        """Return the next line, which begins with what was typed and not sent when a run ended."""
        left = self._running.default_buffer.text
        self._running.default_buffer.reset()
        try:
            return self._idle.prompt(PROMPT, default=left).strip()
        except EOFError:
            return None

    def screen(self, on_line: OnLine) -> "PromptScreen":
        """Return the live view of a run with the prompt below it."""
        console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        return PromptScreen(console, self._running, on_line)


class PromptScreen(LiveView):
    """The live view of a run, above a prompt whose lines go to the run."""

    def __init__(self, console: Console, session: PromptSession[str], on_line: OnLine) -> None:
        super().__init__(console, RUNNING_KEYS)
        self._session = session
        self._on_line = on_line
        self._answer: asyncio.Future[Approval] | None = None
        """The answer that a call waits for."""

    def shown(self, view: RunView) -> AbstractContextManager[object]:
        """Remember the view: it is drawn with the prompt."""
        self._view = view
        return nullcontext()

    async def approve(self, request: ApprovalRequest) -> Approval | None:
        """Ask the user about a call: a line of one letter answers, any other one is a message as ever."""
        self.say(approval_words(request))
        self.ask(f"{request.agent}: {request.tool}?  Type y: yes, n: no, or a: always in this run")
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        finally:
            self._answer = None
            self.ask("")

    def _take(self, line: str) -> None:
        if self._answer is not None and line.lower() in ANSWERS:
            self._answer.set_result(ANSWERS[line.lower()])
            self._answer = None
        elif line:
            self._on_line(line)

    async def keep_fresh(self) -> None:
        """Draw the view and take lines until cancelled, which leaves nothing of both on the terminal."""
        with patch_stdout(raw=True):
            while True:
                try:
                    line = await self._session.prompt_async(
                        self._message, refresh_interval=REFRESH_S, handle_sigint=False
                    )
                except EOFError:
                    self.say("the run is at work: /stop ends it with a report, Ctrl-C twice at once")
                    continue
                self._take(line.strip())

    def _message(self) -> ANSI:
        size = self._console.size
        drawn = Console(
            file=io.StringIO(), force_terminal=True, width=size.width, height=size.height, highlight=False, emoji=False
        )
        with drawn.capture() as captured:
            drawn.print(self.drawn(drawn))
        return ANSI(f"{captured.get()}{PROMPT}")


class _Commands(Completer):
    """Completes the name of a command at the beginning of a line."""

    def __init__(self, commands: Mapping[str, str]) -> None:
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
        """Yield the commands that begin as the line does."""
        typed = document.text_before_cursor
        if typed.startswith("/") and " " not in typed:
            for name, words in self._commands.items():
                if name.startswith(typed):
                    yield Completion(name, start_position=-len(typed), display_meta=words)


def _clearing() -> KeyBindings:
    """Return the keys of the idle prompt: Ctrl-C clears the line, and interrupts where there is none."""
    keys = KeyBindings()

    @keys.add("c-c")
    def clear(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt())

    return keys


def _interrupting() -> KeyBindings:
    """Return the keys of the prompt under a run: Ctrl-C does what it does in every run."""
    keys = KeyBindings()

    @keys.add("c-c")
    def interrupt(_event: KeyPressEvent) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    return keys


def _history(path: Path | None) -> History:
    """Return the history in a file that is its owner's alone; only of this session where there is no such file."""
    if path is None:
        return InMemoryHistory()
    try:
        make_private_folder(path.parent)
        open_private(path, "a").close()
        path.chmod(FILE_MODE)
        if path.stat().st_size > MAX_HISTORY_BYTES:
            path.replace(path.with_suffix(".old"))
            open_private(path, "a").close()
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
