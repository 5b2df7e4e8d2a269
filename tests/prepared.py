"""Processes that have imported the product before they are asked for: each is a fork of one that waits.

Half of the processor time of the tests that start the command line went into imports, the same ones each time. A fork
is a process of its own as any other: it has its own folder, environment, files, signals and exit code, and it ends as
an interpreter ends. It differs from a fresh one in two things: modules are there before they are asked for, and all
forks of one process order their sets alike. So tests of imports and start-up, and those in which an outsider has
planted modules, start fresh ones.
"""

import array
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

STATUS = array.array("i", [0]).itemsize
"""Bytes of an exit status, as `waitpid` returns it."""
INHERITED = 3
"""How many files are standard ones."""


class Source:
    """A process that has imported modules, and forks when it is asked to."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str], before: Sequence[str] = ()) -> None:
        """Start it.

        Args:
            modules: What it imports.
            environment: What the interpreter itself reads of its environment.
            before: A command that runs the rest of its words with this interpreter; empty: this interpreter alone.
        """
        self._asking, asked = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with asked:
            self._process = subprocess.Popen(
                [*(before or [sys.executable]), __file__, str(asked.fileno()), *modules],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[asked.fileno()],
            )

    def fork(self, asked_for: Mapping[str, Any], files: Sequence[int]) -> tuple[int, socket.socket]:
        """Return the number of a new process, and where its exit status will be told."""
        told, telling = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with telling, os.fdopen(os.memfd_create("asked_for"), "w+b") as text:
            text.write(json.dumps(asked_for).encode("utf-8", "surrogateescape"))
            text.flush()
            text.seek(0)
            socket.send_fds(self._asking, [b"."], [*files, telling.fileno(), text.fileno()])
        number = told.recv(STATUS)
        if not number:
            raise ChildProcessError("the process that forks others has ended")
        return array.array("i", number)[0], told

    def close(self) -> None:
        """Let it end."""
        self._asking.close()
        self._process.wait()


class Forked(subprocess.Popen[str]):
    """A fork of a prepared process, with the methods of one that was started."""

    def __init__(self, source: Source, words: Sequence[str], cwd: Path, env: Mapping[str, str], **files: Any) -> None:
        """Start it; `words` are a module or the path of a program, and arguments."""
        self._source, self._told = source, socket.socket()
        self._asked_for = {"words": list(map(str, words)), "cwd": str(cwd), "env": dict(env)}
        super().__init__(words, text=True, **files)

    def _execute_child(self, *arguments: Any) -> None:
        # The places of the files are the same in every Python from 3.11 on.
        given_in, _, _, out, _, err = pipes = arguments[10:16]
        files = [given if given != -1 else usual for usual, given in enumerate((given_in, out, err))]
        self._told.close()
        self.pid, self._told = self._source.fork(self._asked_for, files)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if wait_flags & os.WNOHANG and not select.select([self._told], [], [], 0)[0]:
            return 0, 0
        status = self._told.recv(STATUS)
        self._told.close()
        return self.pid, array.array("i", status)[0] if status else signal.SIGKILL

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._child_created:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def serve(asking: socket.socket, modules: Sequence[str]) -> dict[str, Any]:
    """Import, and fork for each message; return in the forked process, with what it is to do."""
    for module in modules:
        import_module(module)
    gc.freeze()
    signal.signal(signal.SIGCHLD, wait_for_ended)
    while True:
        message, files, _, _ = socket.recv_fds(asking, 1, INHERITED + 2)
        if not message:
            wait_for_ended(0, None)
            os._exit(0)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            asking.close()
            return forked(files)
        for file in files:
            os.close(file)


def wait_for_ended(_number: int, _frame: FrameType | None) -> None:
    """Take note of the processes that ended, so that their processor time counts as that of the tests."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def forked(files: list[int]) -> dict[str, Any]:
    """Fork once more, and tell of that process, whose parent is not the one who asked; return in it."""
    *standard, telling, text = files
    ready, go = os.pipe()
    number = os.fork()
    if number:
        for file in (*standard, text, ready):
            os.close(file)
        with socket.socket(fileno=telling) as told, suppress(BrokenPipeError):
            told.send(array.array("i", [number]))
            os.close(go)
            _, status = os.waitpid(number, 0)
            told.send(array.array("i", [status]))
        os._exit(0)
    os.close(go)
    os.close(telling)
    os.read(ready, 1)
    os.close(ready)
    for usual, file in enumerate(standard):
        os.dup2(file, usual)
        os.close(file)
    with os.fdopen(text, "rb") as asked_for:
        return json.loads(asked_for.read())


def _opened(stream: TextIO, mode: str) -> TextIO:
    """Open what a stream stands for anew: whether it can be moved in, and is a terminal, was found out at the start."""
    raw = os.fdopen(stream.fileno(), mode + "b", closefd=False)
    is_by_line = stream is sys.stderr or raw.isatty()
    return io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=is_by_line)


def become(asked_for: Mapping[str, Any]) -> None:
    """Be the program that was asked for, to its end."""
    os.environ.clear()
    os.environ.update(asked_for["env"])
    os.chdir(asked_for["cwd"])
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = _opened(getattr(sys, name), mode)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    if any(name.startswith("COVERAGE_PROCESS_") for name in os.environ):
        import_module("coverage").process_startup(force=True)
    program, *words = asked_for["words"]
    sys.argv = [program, *words]
    if program.endswith(".py"):
        sys.path[0] = str(Path(program).parent)
        runpy.run_path(program, run_name="__main__")
    elif Path(program).is_absolute():
        # A script of the package that was installed for its entry point.
        sys.path[0] = str(Path(program).parent)
        sys.exit(import_module(f"{Path(program).name}.__main__").main())
    else:
        sys.path[0] = asked_for["cwd"]
        runpy.run_module(program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    become(serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:]))
