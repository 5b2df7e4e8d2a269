"""One worker process, seen from the engine: asked, timed, and ended."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from dataclasses import dataclass
from typing import Self

from pydantic import TypeAdapter, ValidationError

from explorer.documents.parsing.wire import ANSWER, MAX_ANSWER_BYTES, ParseReply, ParseRequest, question_bytes

TOO_LONG = "it took too long to read"
TOO_LARGE = "it took too much memory to read"
OUT_OF_TIME = frozenset({-signal.SIGXCPU, -signal.SIGALRM})
OUT_OF_MEMORY = frozenset({-signal.SIGKILL, -signal.SIGABRT})
"""The system's own judgement, and how libraries in C end that are refused memory."""
WORDS_OF_MEMORY = ("MemoryError", "bad_alloc", "memory allocation", "Cannot allocate memory")
LAST_WORDS = 4_000
END_S = 2.0
"""For a process that closed its pipes to be gone."""

ANSWERS = TypeAdapter(ParseReply)


@dataclass(frozen=True)
class ParserLimits:
    """What one worker may use."""

    memory_bytes: int = 1_000_000_000
    """Of its address space."""
    cpu_s: int = 20
    """For one document."""
    wall_s: float = 30.0
    """For one document, the start of the process included."""
    documents: int = 200
    """After so many it is replaced by a fresh one."""
    worn_bytes: int = 400_000_000
    """The same, once it has had so much memory: it is not given back."""


class WorkerDiedError(Exception):
    """A worker ended, or was ended, before it had answered; the message says why."""


class WorkerProcess:
    """A running `explorer.documents.parsing.worker`."""

    def __init__(self, process: Process, limits: ParserLimits) -> None:
        self._process = process
        self._limits = limits
        self._is_ready = False
        self._documents = 0
        self._peak_bytes = 0

    @classmethod
    async def start(cls, python: str, limits: ParserLimits) -> Self:
        """Start one, with an environment that tells it where the code is and nothing else.

        Raises:
            WorkerDiedError: The system does not let it start.
        """
        if not python:
            raise WorkerDiedError("there is no Python to start that reads documents")
        # -P: the folder the user happens to be in holds no modules of ours.
        command = (python, "-P", "-W", "ignore", "-m", "explorer.documents.parsing.worker")
        folders = os.pathsep.join(folder for folder in sys.path if folder)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                str(limits.memory_bytes),
                str(limits.cpu_s),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env={"PYTHONPATH": folders, "PYTHONUTF8": "1"},
                start_new_session=True,  # Ctrl-C in the terminal is the engine's affair
            )
        except OSError as error:
            raise WorkerDiedError(f"the process that reads documents cannot be started ({error})") from error
        return cls(process, limits)

    @property
    def is_worn(self) -> bool:
        """Whether it has done enough and is to be replaced."""
        return self._documents >= self._limits.documents or self._peak_bytes >= self._limits.worn_bytes

    @property
    def is_running(self) -> bool:
        """Whether it has not ended; asked of the system, which knows before the event loop does."""
        if self._process.returncode is not None:
            return False
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            return False

    async def ask(self, question: ParseRequest, body: bytes) -> ParseReply:
        """Have a document read.

        Raises:
            WorkerDiedError: No answer came; the process is of no use any more.
        """
        try:
            async with asyncio.timeout(self._limits.wall_s):
                self._streams[0].write(question_bytes(question, body))
                if not self._is_ready:
                    await self._answer()
                    self._is_ready = True
                await self._streams[0].drain()
                answer = await self._answer()
        except TimeoutError as error:
            raise WorkerDiedError(TOO_LONG) from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise WorkerDiedError(await self._reason()) from error
        except ValidationError as error:
            raise WorkerDiedError("its parser gave no sensible answer") from error
        self._documents += 1
        self._peak_bytes = answer.peak_bytes
        return answer

    def kill(self) -> None:
        """End it at once; the system does so without its help."""
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
        return ANSWERS.validate_json(await answers.readexactly(size))

    async def _reason(self) -> str:
        """Why it ended by itself, from its exit code and its last words."""
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
        last = words.strip().rpartition("\n")[2][:300] or f"exit code {code}"
        if not self._is_ready:
            return f"the process that reads documents did not start ({last})"
        return f"its parser failed on it ({last})"
