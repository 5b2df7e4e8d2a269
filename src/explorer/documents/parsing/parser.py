"""Parsing in separate processes, so that a harmful document can end one of them but not the engine."""

import asyncio
import contextlib
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from explorer.documents.parsing.document import ConfinementReport, Document, ParseReply, ParseRequest
from explorer.documents.parsing.kinds import JSON, KINDS, TEXT, VALUES
from explorer.documents.parsing.reading import again_as, read_document
from explorer.documents.parsing.worker_process import ParserLimits, WorkerDiedError, WorkerProcess
from explorer.schema.errors import ToolError
from explorer.text.rendering import own

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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
            raise ToolError(own("{name} is {kind}, which is not read.", name=_name(url), kind=kind[:80]))
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
    return ToolError(own("{name} could not be read: {why}. Use another source.", name=_name(url), why=why))


def _name(url: str) -> str:
    return url or own("The document")
