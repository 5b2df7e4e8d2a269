"""The question of an approval rule, asked in the terminal below the run: what exactly will be done, and one key."""

import asyncio
import os
import sys
import unicodedata
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from explorer.cli.screens.formatting import counted
from explorer.cli.screens.screen import Screen
from explorer.cli.settings.options import CommonOptions
from explorer.schema.approvals import Approval, ApprovalRequest, Approve

MAX_SHOWN_CHARS = 24_000
"""The characters of one argument that are shown: more than any command for a shell has."""
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
        self.screen.say(described(request))
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


def described(request: ApprovalRequest) -> str:
    """Return what exactly an agent wants to do: each argument whole, with what cannot be seen as an escape."""
    lines = [f"{request.agent} needs your approval: {request.tool} (your rule: {exact(request.rule)})"]
    for name, value in request.arguments.items():
        text = exact(value if isinstance(value, str) else repr(value))
        first, *more = text[:MAX_SHOWN_CHARS].split("\n")
        lines += [f"  {name}: {first}", *(f"  {'':<{len(name)}}| {line}" for line in more)]
        if len(text) > MAX_SHOWN_CHARS:
            lines.append(f"  and {counted(len(text) - MAX_SHOWN_CHARS, 'character')} more that are not shown")
    return "\n".join(lines)


def exact(text: str) -> str:
    """Return a text in which control, format and other unseen characters are escapes: what is shown is what is done."""
    return "".join(
        c if c == "\n" or unicodedata.category(c)[0] not in {"C", "Z"} or c == " " else _escaped(c) for c in text
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


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
