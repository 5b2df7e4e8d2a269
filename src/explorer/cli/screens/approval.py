"""The question of an approval rule, asked in the terminal below the run: what exactly will be done, and one key."""

import asyncio
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from explorer.cli.screens.screen import Screen
from explorer.cli.settings.options import CommonOptions
from explorer.observe.formatting import approval_words
from explorer.schema.approvals import Approval, ApprovalRequest, Approve

ANSWERS = {
    "y": Approval(is_allowed=True),
    "a": Approval(is_allowed=True, for_run=True),
    "n": Approval(is_allowed=False),
}
MAX_KEYS = 1_024


def terminal_approval(screen: Screen, options: CommonOptions) -> Approve | None:
    """Return what asks the user in the terminal; None where nobody sees a question, or can answer it."""
    is_seen = sys.stderr.isatty() and not options.quiet and options.output_format == "text"
    return TerminalApproval(screen, sys.stdin.fileno()) if is_seen and sys.stdin.isatty() else None


@dataclass(frozen=True)
class TerminalApproval:
    """Asks on a screen, and reads one key of its terminal."""

    screen: Screen
    terminal: int
    """The file descriptor of the terminal."""

    async def __call__(self, request: ApprovalRequest) -> Approval | None:
        """Ask, until a key answers; None where the terminal is gone, or belongs to another program now."""
        if not _is_foreground(self.terminal):
            return None
        self.screen.say(approval_words(request))
        self.screen.ask(f"{request.agent}: {request.tool}?  y: yes   n: no   a: always in this run")
        try:
            with _single_keys(self.terminal):
                while (keys := await _keys(self.terminal)) is not None:
                    # Only the first key counts: a pasted text is no answer.
                    if keys[:1].lower() in ANSWERS:
                        return ANSWERS[keys[:1].lower()]
        finally:
            self.screen.ask("")
        return None


def _is_foreground(terminal: int) -> bool:
    """Return whether keys come to this program; one in the background would be stopped for reading them."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return True  # a terminal without job control has no background


@contextmanager
def _single_keys(terminal: int) -> Generator[None]:
    """Read keys as they are pressed, without showing them; keys pressed before the question are dropped."""
    import termios  # noqa: PLC0415 - not on Windows
    import tty  # noqa: PLC0415 - the same

    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal, termios.TCSAFLUSH)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


async def _keys(terminal: int) -> str | None:
    """Return the keys that are pressed next; None at the end of the terminal."""
    loop = asyncio.get_running_loop()
    pressed: asyncio.Future[str | None] = loop.create_future()

    def read() -> None:
        try:
            keys = os.read(terminal, MAX_KEYS)
        except OSError:
            keys = b""
        if not pressed.done():
            pressed.set_result(keys.decode("utf-8", "replace") or None)

    loop.add_reader(terminal, read)
    try:
        return await pressed
    finally:
        loop.remove_reader(terminal)
