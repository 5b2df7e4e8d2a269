"""A process that parses documents of one kind, seen from the engine."""

import asyncio
import contextlib
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import TypeAdapter

from explorer.documents.parsing.document import (
    ANSWER,
    FLAGS,
    MAX_ANSWER_BYTES,
    PROBLEMS,
    ConfinementReport,
    ParseReply,
    ParseRequest,
    question_bytes,
)
from explorer.documents.parsing.judgement import LANGUAGE

TOO_LONG = "it took too long to read"
TOO_LARGE = "it took too much memory to read"
OUT_OF_TIME = frozenset({-signal.SIGXCPU, -signal.SIGALRM})
OUT_OF_MEMORY = frozenset({-signal.SIGKILL, -signal.SIGABRT})
"""Exit codes that mean a lack of memory: the system ended the process, or a library in C aborted it."""
WORDS_OF_MEMORY = ("MemoryError", "bad_alloc", "memory allocation", "Cannot allocate memory")
ERROR_NAME = re.compile(r"\s*([A-Za-z_][\w.]{0,60})(?::|$)")
"""The class of an exception at the start of a traceback's last line; the rest of that line may quote the document."""
LAST_WORDS = 4_000
END_S = 2.0
"""The longest time in seconds that a process may take to end after it closed its pipes."""

ANSWERS = TypeAdapter(ParseReply)


@dataclass(frozen=True)
class ParserLimits:
    """Limits for one worker."""

    memory_bytes: int = 1_000_000_000
    """The largest address space in bytes."""
    cpu_s: int = 20
    """The CPU time in seconds for one document."""
    wall_s: float = 30.0
    """The time in seconds for one document, including the start of the process."""
    documents: int = 200
    """The number of documents after which a worker is replaced."""
    worn_bytes: int = 400_000_000
    """The peak memory in bytes after which a worker is replaced, because a worker does not free all of its memory."""


class WorkerDiedError(Exception):
    """A worker did not start or gave no valid answer; the message says why."""


def worker_command(python: str, kind: str, limits: ParserLimits) -> tuple[str, ...]:
    """Return the command that starts a worker for a kind."""
    # -P: the folder the user happens to be in holds no modules of ours.
    program = str(Path(__file__).with_name("launch.py"))
    return (python, "-P", "-W", "ignore", program, kind, str(limits.memory_bytes), str(limits.cpu_s))


def worker_environment() -> dict[str, str]:
    """Return a worker's environment: only the import path and the UTF-8 mode of Python, and no keys."""
    return {"PYTHONPATH": os.pathsep.join(folder for folder in sys.path if folder), "PYTHONUTF8": "1"}


class WorkerProcess:
    """A running process of `worker.py`."""

    def __init__(self, process: Process, limits: ParserLimits) -> None:
        self._process = process
        self._limits = limits
        self._confinement: ConfinementReport | None = None
        self._documents = 0

    @classmethod
    async def start(cls, python: str, kind: str, limits: ParserLimits) -> Self:
        """Start a worker for a kind.

        Raises:
            WorkerDiedError: The system cannot start the process.
        """
        if not python:
            raise WorkerDiedError("there is no Python to start that reads documents")
        try:
            process = await asyncio.create_subprocess_exec(
                *worker_command(python, kind, limits),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=worker_environment(),
                start_new_session=True,  # Ctrl-C in the terminal is the engine's affair
            )
        except OSError as error:
            raise WorkerDiedError(f"the process that reads documents cannot be started ({error})") from error
        return cls(process, limits)

    @property
    def is_worn(self) -> bool:
        """Whether the worker has reached a limit after which it is replaced."""
        return self._documents >= self._limits.documents or _peak_bytes(self._process.pid) >= self._limits.worn_bytes

    @property
    def is_running(self) -> bool:
        """Whether the process is running, according to the system, which knows of its end before the event loop."""
        if self._process.returncode is not None:
            return False
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            return False

    async def confinement(self) -> ConfinementReport:
        """Return what confines the worker, as it found it before it reads anything.

        Raises:
            WorkerDiedError: It did not start.
        """
        async with self._answering():
            return await self._ready()

    async def ask(self, question: ParseRequest, body: bytes) -> ParseReply:
        """Parse a document in the worker and return the reply.

        Raises:
            WorkerDiedError: No valid answer came; the worker cannot be used again.
        """
        async with self._answering():
            self._streams[0].write(question_bytes(question, body))
            await self._ready()
            await self._streams[0].drain()
            answer = await self._answer()
        self._documents += 1
        return answer

    @contextlib.asynccontextmanager
    async def _answering(self) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(self._limits.wall_s):
                yield
        except TimeoutError as error:
            raise WorkerDiedError(TOO_LONG) from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise WorkerDiedError(await self._reason()) from error
        except ValueError as error:
            raise WorkerDiedError("its parser gave no sensible answer") from error

    async def _ready(self) -> ConfinementReport:
        if self._confinement is None:
            self._confinement = (await self._answer()).confinement
        if self._confinement is None:
            raise ValueError
        return self._confinement

    def kill(self) -> None:
        """End the process at once with a signal that it cannot ignore."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def wait_end(self) -> None:
        """Wait until an ended process is gone and its pipes are closed."""
        questions, answers = self._streams
        questions.close()
        assert self._process.stderr
        await answers.read()
        await self._process.stderr.read()
        await self._process.wait()
        with contextlib.suppress(ConnectionError):
            await questions.wait_closed()

    @property
    def _streams(self) -> tuple[asyncio.StreamWriter, asyncio.StreamReader]:
        assert self._process.stdin
        assert self._process.stdout
        return self._process.stdin, self._process.stdout

    async def _answer(self) -> ParseReply:
        _, answers = self._streams
        (size,) = ANSWER.unpack(await answers.readexactly(ANSWER.size))
        if size > MAX_ANSWER_BYTES:
            raise WorkerDiedError("it has more text than can be taken")
        return _sensible(ANSWERS.validate_json(await answers.readexactly(size)))

    async def _reason(self) -> str:
        """Return why the process ended by itself, from its exit code and the end of its stderr."""
        assert self._process.stderr
        try:
            async with asyncio.timeout(END_S):
                code = await self._process.wait()
        except TimeoutError:
            self.kill()
            code = await self._process.wait()
        words = (await self._process.stderr.read())[-LAST_WORDS:].decode("utf-8", "replace")
        if code in OUT_OF_TIME:
            return TOO_LONG
        if code in OUT_OF_MEMORY or any(sign in words for sign in WORDS_OF_MEMORY):
            return TOO_LARGE
        last = words.strip().rpartition("\n")[2][:300]
        if self._confinement is None:
            return f"the process that reads documents did not start ({last or f'exit code {code}'})"
        error = ERROR_NAME.match(last)
        return f"its parser failed on it ({error[1] if error else f'exit code {code}'})"


def _sensible(reply: ParseReply) -> ParseReply:
    """Return a reply that a parser could have given: a document may have captured the process.

    Raises:
        ValueError: It has a problem, a flag or a language that no parser knows.
    """
    document = reply.document
    if document is None and reply.confinement is None and reply.problem not in PROBLEMS:
        raise ValueError
    if document and not (FLAGS.issuperset(document.flags) and LANGUAGE.fullmatch(document.language)):
        raise ValueError
    return reply


def _peak_bytes(process: int) -> int:
    """Return the peak memory of a process in bytes; 0 where the system does not report it."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
