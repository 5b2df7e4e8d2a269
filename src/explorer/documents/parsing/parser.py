"""Parsing in separate processes, so that a harmful document can end one of them but not the engine."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

from pydantic import TypeAdapter, ValidationError

from explorer.documents.parsing.document import (
    ANSWER,
    FLAGS,
    MAX_ANSWER_BYTES,
    MAX_PIECE_CHARS,
    PROBLEMS,
    ConfinementReport,
    Document,
    ParseReply,
    ParseRequest,
    question_bytes,
)
from explorer.documents.parsing.judgement import LANGUAGE
from explorer.documents.parsing.kinds import JSON, KINDS, TEXT, VALUES
from explorer.documents.parsing.reading import again_as, read_document
from explorer.schema.errors import ToolError
from explorer.text.rendering import own

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


WORKERS = 2
"""The largest number of workers that read at a time; the second one starts when two documents are read at once."""
KEPT = 4
"""The number of workers from which idle ones of other kinds make room for a new one."""

PATIENCE_S = 0.5
"""The time in seconds to wait for a busy worker before another one is started."""


class DocumentParser(Protocol):
    """Parses documents."""

    async def parse(self, kind: str, body: bytes, *, url: str = "", content_type: str = "") -> Document:
        """Return a document with its text; see `Parser.parse`."""
        ...

    async def prepare(self, kind: str) -> None:
        """Begin to load what parsing documents of a kind takes, and do not wait for it."""
        ...


class TrustingParser:
    """Parses documents in a thread of this process without limits; only for documents that are part of explorer."""

    async def parse(self, kind: str, body: bytes, *, url: str = "", content_type: str = "") -> Document:
        """Return a document with its text; see `Parser.parse`."""
        return await asyncio.to_thread(read_document, kind, body, url=url, content_type=content_type)

    async def prepare(self, kind: str) -> None:
        """Do nothing: there is no process to start."""


@dataclass
class _Pool:
    """The workers of one kind."""

    choosing: asyncio.Lock = field(default_factory=asyncio.Lock)
    idle: asyncio.Queue[WorkerProcess] = field(default_factory=asyncio.Queue[WorkerProcess])
    living: set[WorkerProcess] = field(default_factory=set[WorkerProcess])


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
        self._pools: defaultdict[str, _Pool] = defaultdict(_Pool)
        self._ended: list[WorkerProcess] = []

    async def __aenter__(self) -> Self:
        """Return the parser; no process is started yet."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all workers and wait until they are gone."""
        for pool in self._pools.values():
            for worker in [*pool.living]:
                self._end(pool, worker)
        for worker in self._ended:
            await worker.wait_end()

    async def confinement(self) -> ConfinementReport:
        """Return what confines the processes that parse, found out by starting one.

        Raises:
            ToolError: None can be started.
        """
        pool = self._pools[JSON]
        try:
            worker = await self._worker(JSON, pool)
            found = await worker.confinement()
            pool.idle.put_nowait(worker)
        except WorkerDiedError as error:
            raise ToolError(str(error)) from error
        return found

    async def prepare(self, kind: str) -> None:
        """Start a worker for a kind if none is there: it loads its libraries while the network is waited for."""
        pool = self._pools[kind]
        async with pool.choosing:
            if not pool.living:
                with contextlib.suppress(WorkerDiedError):  # `parse` reports it
                    pool.idle.put_nowait(await self._started(kind, pool))

    async def parse(self, kind: str, body: bytes, *, url: str = "", content_type: str = "") -> Document:
        """Return a document of one of `KINDS` or `VALUES` with its text.

        `url` makes links absolute and is named in errors; `content_type` is the value of the server's header.

        Raises:
            ToolError: The document has no text, is damaged, or needs too much time or memory; the engine is unharmed.
        """
        if kind not in KINDS | VALUES:
            raise ToolError.of("{name} is {kind}, which is not read.", name=_name(url), kind=kind[:80])
        if kind == TEXT:  # nothing is parsed there
            return read_document(kind, body, url=url, content_type=content_type)
        question = ParseRequest(kind, url, content_type)
        async with self._places:
            reply = await self._in_worker(question, body)
            if again := again_as(kind, reply.document, reply.problem):
                second = await self._in_worker(ParseRequest(again, url, content_type), body)
                reply = reply if second.document is None and reply.document else second
        if reply.document is None:
            raise _unreadable(url, reply.problem)
        return reply.document

    async def _in_worker(self, question: ParseRequest, body: bytes) -> ParseReply:
        pool = self._pools[question.kind]
        worker: WorkerProcess | None = None
        is_whole = False
        try:
            async with pool.choosing:
                worker = await self._worker(question.kind, pool)
            answer = await worker.ask(question, body)
            is_whole = not worker.is_worn
        except WorkerDiedError as error:
            raise _unreadable(question.url, error) from error
        finally:  # also when the caller is cancelled: nobody waits for the answer any more
            if worker and is_whole:
                pool.idle.put_nowait(worker)
            elif worker:
                self._end(pool, worker)
        return answer

    async def _worker(self, kind: str, pool: _Pool) -> WorkerProcess:
        """Return an idle worker, or a new one after a short wait: most documents take less time than a start."""
        while self._ended:
            await self._ended.pop().wait_end()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while pool.living:
                    worker = await pool.idle.get()
                    if worker.is_running:
                        return worker
                    self._end(pool, worker)
        return await self._started(kind, pool)

    async def _started(self, kind: str, pool: _Pool) -> WorkerProcess:
        self._make_room()
        worker = await WorkerProcess.start(self._python, kind, self._limits)
        pool.living.add(worker)
        return worker

    def _make_room(self) -> None:
        """End idle workers while there are too many; they are of other kinds than the one that is needed."""
        excess = sum(len(pool.living) for pool in self._pools.values()) - KEPT + 1
        for pool in self._pools.values():
            while excess > 0 and not pool.idle.empty():
                self._end(pool, pool.idle.get_nowait())
                excess -= 1

    def _end(self, pool: _Pool, worker: WorkerProcess) -> None:
        worker.kill()
        pool.living.discard(worker)
        self._ended.append(worker)


def _unreadable(url: str, why: str | WorkerDiedError) -> ToolError:
    return ToolError.of("{name} could not be read: {why}. Use another source.", name=_name(url), why=why)


def _name(url: str) -> str:
    return url or own("The document")


BATCH_CHARS = 800_000
"""The number of characters from which pieces go into another request: each has a limit of time, its reply of size."""
TEXTS = TypeAdapter(list[str])


async def texts_of(parser: DocumentParser, kind: str, pieces: Iterable[str | None]) -> Mapping[str, str]:
    """Return the text of each piece of HTML by the piece; `kind` is `COMMENTS` or `POSTS`.

    Raises:
        ToolError: They need too much time or memory; the engine is unharmed.
    """
    found: dict[str, str] = {"": ""}
    for batch in _batches(dict.fromkeys(piece for piece in pieces if piece)):
        body = json.dumps([piece[: MAX_PIECE_CHARS + 1] for piece in batch]).encode()
        found |= zip(batch, _texts(await parser.parse(kind, body), len(batch)), strict=True)
    return found


def _batches(pieces: Iterable[str]) -> Iterator[Sequence[str]]:
    batch: list[str] = []
    size = 0
    for piece in pieces:
        if batch and size + min(len(piece), MAX_PIECE_CHARS) > BATCH_CHARS:
            yield batch
            batch, size = [], 0
        batch.append(piece)
        size += min(len(piece), MAX_PIECE_CHARS)
    if batch:
        yield batch


def _texts(document: Document, count: int) -> Sequence[str]:
    """Return the texts in a reply, which is checked: a comment may have captured the process."""
    try:
        texts = TEXTS.validate_json(document.text)
    except ValidationError as error:
        raise ToolError.of("The comments could not be read. Use another source.") from error
    if len(texts) != count:
        raise ToolError.of("The comments could not be read. Use another source.")
    return texts
