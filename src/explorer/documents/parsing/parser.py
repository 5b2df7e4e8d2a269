"""Parsing in separate processes, so that a harmful document can end one of them but not the engine."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from pydantic import TypeAdapter, ValidationError

from explorer.documents.parsing.document import (
    ANSWER,
    MAX_ANSWER_BYTES,
    Document,
    ParseReply,
    ParseRequest,
    question_bytes,
)
from explorer.documents.parsing.kinds import KINDS, TEXT
from explorer.documents.parsing.reading import read_document
from explorer.schema.errors import ToolError

TOO_LONG = "it took too long to read"
TOO_LARGE = "it took too much memory to read"
OUT_OF_TIME = frozenset({-signal.SIGXCPU, -signal.SIGALRM})
OUT_OF_MEMORY = frozenset({-signal.SIGKILL, -signal.SIGABRT})
"""Exit codes that mean a lack of memory: the system ended the process, or a library in C aborted it."""
WORDS_OF_MEMORY = ("MemoryError", "bad_alloc", "memory allocation", "Cannot allocate memory")
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


class WorkerProcess:
    """A running process of `explorer.documents.parsing.worker`."""

    def __init__(self, process: Process, limits: ParserLimits) -> None:
        self._process = process
        self._limits = limits
        self._is_ready = False
        self._documents = 0
        self._peak_bytes = 0

    @classmethod
    async def start(cls, python: str, limits: ParserLimits) -> Self:
        """Start a worker; its environment contains only the import path and the UTF-8 mode of Python.

        Raises:
            WorkerDiedError: The system cannot start the process.
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
        """Whether the worker has reached a limit after which it is replaced."""
        return self._documents >= self._limits.documents or self._peak_bytes >= self._limits.worn_bytes

    @property
    def is_running(self) -> bool:
        """Whether the process is running, according to the system, which knows of its end before the event loop."""
        if self._process.returncode is not None:
            return False
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            return False

    async def ask(self, question: ParseRequest, body: bytes) -> ParseReply:
        """Parse a document in the worker and return the reply.

        Raises:
            WorkerDiedError: No valid answer came; the worker cannot be used again.
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
        return ANSWERS.validate_json(await answers.readexactly(size))

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
        last = words.strip().rpartition("\n")[2][:300] or f"exit code {code}"
        if not self._is_ready:
            return f"the process that reads documents did not start ({last})"
        return f"its parser failed on it ({last})"


WORKERS = 2
"""The largest number of workers at a time; the second one starts when two documents are read at once."""


PATIENCE_S = 0.5
"""The time in seconds to wait for a busy worker before another one is started."""


class DocumentParser(Protocol):
    """Parses documents."""

    async def parse(self, kind: str, body: bytes, *, url: str = "", content_type: str = "") -> Document:
        """Return a document with its text; see `Parser.parse`."""
        ...


class TrustingParser:
    """Parses documents in a thread of this process without limits; only for documents that are part of explorer."""

    async def parse(self, kind: str, body: bytes, *, url: str = "", content_type: str = "") -> Document:
        """Return a document with its text; see `Parser.parse`."""
        return await asyncio.to_thread(read_document, kind, body, url=url, content_type=content_type)


class Parser:
    """Parses documents in worker processes that are started when needed, reused and replaced; opened once per run.

    `python` is the interpreter of the workers; it must have the same packages as this one.
    """

    def __init__(
        self, limits: ParserLimits | None = None, *, workers: int = WORKERS, python: str = sys.executable
    ) -> None:
        self._limits = limits or ParserLimits()
        self._python = python
        self._places = asyncio.Semaphore(workers)
        self._choosing = asyncio.Lock()
        self._idle: asyncio.Queue[WorkerProcess] = asyncio.Queue()
        self._living: set[WorkerProcess] = set()
        self._ended: list[WorkerProcess] = []

    async def __aenter__(self) -> Self:
        """Return the parser; no process is started yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all workers and wait until they are gone."""
        for worker in [*self._living]:
            self._end(worker)
        for worker in self._ended:
            await worker.wait_end()

    async def parse(self, kind: str, body: bytes, *, url: str = "", content_type: str = "") -> Document:
        """Return a document of one of the kinds `html`, `pdf`, `text`, `json`, `feed`, with its text.

        `url` makes links absolute and is named in errors; `content_type` is the value of the server's header.

        Raises:
            ToolError: The document has no text, is damaged, or needs too much time or memory; the engine is unharmed.
        """
        if kind not in KINDS:
            raise ToolError(f"{url or 'The document'} is {kind[:80]}, which is not read.")
        if kind == TEXT:  # nothing is parsed there
            return read_document(kind, body, url=url, content_type=content_type)
        async with self._places:
            return await self._in_worker(ParseRequest(kind, url, content_type), body)

    async def _in_worker(self, question: ParseRequest, body: bytes) -> Document:
        name = question.url or "The document"
        worker: WorkerProcess | None = None
        is_whole = False
        try:
            async with self._choosing:
                worker = await self._worker()
            answer = await worker.ask(question, body)
            is_whole = not worker.is_worn
        except WorkerDiedError as error:
            raise ToolError(f"{name} could not be read: {error}. Use another source.") from error
        finally:  # also when the caller is cancelled: nobody waits for the answer any more
            if worker and is_whole:
                self._idle.put_nowait(worker)
            elif worker:
                self._end(worker)
        if answer.document is None:
            raise ToolError(f"{name} could not be read: {answer.problem}. Use another source.")
        return answer.document

    async def _worker(self) -> WorkerProcess:
        """Return an idle worker, or a new one after a short wait: most documents take less time than a start."""
        while self._ended:
            await self._ended.pop().wait_end()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while self._living:
                    worker = await self._idle.get()
                    if worker.is_running:
                        return worker
                    self._end(worker)
        worker = await WorkerProcess.start(self._python, self._limits)
        self._living.add(worker)
        return worker

    def _end(self, worker: WorkerProcess) -> None:
        worker.kill()
        self._living.discard(worker)
        self._ended.append(worker)
