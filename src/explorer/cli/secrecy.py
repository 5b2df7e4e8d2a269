"""Keys stay in the engine: out of the environment once read, out of reach of other processes, out of what is shown."""

import ctypes
import io
import os
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from typing import TextIO

from explorer.cli.settings.values import all_settings
from explorer.schema.network import VARIABLES as NETWORK_VARIABLES
from explorer.schema.settings import Settings
from explorer.text.sanitize import Redactor

SET_DUMPABLE = 4


class RedactingStream(io.TextIOBase):
    """A stream that shows no key, also none that comes in pieces."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._redactor = Redactor()
        self._held = ""

    def learn(self, redactor: Redactor) -> None:
        """Take over the keys that are not to be shown."""
        self._redactor = redactor

    def write(self, text: str) -> int:
        """Write what cannot be part of a key; its beginning waits for what comes next."""
        whole = self._redactor.clean(self._held + text)
        start = self._redactor.begins_at(whole)
        self._held = whole[start:]
        self._stream.write(whole[:start])
        return len(text)

    def flush(self) -> None:
        """Write what was held back too: nothing came that would have made a key of it."""
        held, self._held = self._held, ""
        self._stream.write(held)
        self._stream.flush()

    def isatty(self) -> bool:
        """Return whether stdout is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor below."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return True: it is always writable."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Encoding of the wrapped stream."""
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """How the stream below treats what its encoding lacks."""
        return self._stream.errors

    def reconfigure(self, *, errors: str) -> None:
        """Change that."""
        change = getattr(self._stream, "reconfigure", None)
        if change is not None:
            change(errors=errors)


def guard_streams() -> None:
    """Replace stdout and stderr by streams that know the keys and show none."""
    sys.stdout, sys.stderr = RedactingStream(sys.stdout), RedactingStream(sys.stderr)


def keep_secret(settings: Settings, environment: MutableMapping[str, str]) -> None:
    """Forget the environment's keys and proxies once the settings are read, and show no key and no password.

    Programs that are started inherit none either, and on Linux no other process of this user can look into this one.
    """
    for setting in all_settings():
        if setting.is_secret:
            environment.pop(setting.variable, None)
    for name in NETWORK_VARIABLES:
        environment.pop(name, None)
    redactor = Redactor(settings.secret_texts())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, RedactingStream):
            stream.learn(redactor)
    if sys.platform == "linux" and environment is os.environ:
        # The environment a process was started with stays readable in /proc, whatever it forgets later.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(SET_DUMPABLE, 0, 0, 0, 0)
