"""Parsing in processes of its own, so that a document made to harm ends one of them and never the engine."""

import asyncio
import contextlib
import sys
from types import TracebackType
from typing import Protocol, Self

from explorer.documents.parsing.document import Document
from explorer.documents.parsing.kinds import KINDS, TEXT
from explorer.documents.parsing.reading import read_document
from explorer.documents.parsing.wire import ParseRequest
from explorer.documents.parsing.worker_process import ParserLimits, WorkerDiedError, WorkerProcess
from explorer.schema.errors import ToolError

WORKERS = 2
"""At most, at a time; the second one is started when two documents are read at once."""


PATIENCE_S = 0.5
"""For a busy worker to be done, before another one is started."""


class DocumentParser(Protocol):
    """What reads documents."""

    async def parse(self, kind: str, body: bytes, *, url: str = "", content_type: str = "") -> Document:
        """The text of a document; see `Parser.parse`."""
        ...


class TrustingParser:
    """Reads documents in a thread of this process, without limits: for those that come with explorer itself."""

    async def parse(self, kind: str, body: bytes, *, url: str = "", content_type: str = "") -> Document:
        """The text of a document; see `Parser.parse`."""
        return await asyncio.to_thread(read_document, kind, body, url=url, content_type=content_type)


class Parser:
    """Reads documents in worker processes that are started when needed, kept, and renewed; opened once a run.

    `python` is the interpreter they run in, which has to have what this one has.
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
        """Open; no process is started yet."""
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
        """Read a document of one of the kinds `html`, `pdf`, `text`, `json`, `feed`.

        `url` makes links whole and is named in errors; `content_type` is what the server said.

        Raises:
            ToolError: It has no text, is damaged, or took too much time or memory to read; the engine is unharmed.
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
        """One that is idle, or will be in a moment: most documents take less time than starting another worker."""
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
