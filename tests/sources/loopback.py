"""Web servers on loopback, scripted by a table of paths, and what tests need around them."""

import atexit
import contextlib
import json
import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from explorer.network.guard import Guard
from explorer.network.transport import GuardedTransport
from explorer.schema.events import AnyEvent
from explorer.sources.http.fetch import Web
from explorer.workspace.source_store import SourceStore
from tool_call import NO_RUN

DATA = Path(__file__).parents[2].parent / "shared" / "data"
NOW = datetime(2026, 8, 10, 20, 0, tzinfo=UTC)
AT_ONCE = """
import runpy, socketserver, sys
socketserver.StreamRequestHandler.disable_nagle_algorithm = True
socketserver.TCPServer.request_queue_size = 128
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a server's script so that nobody waits: 40 ms for a body, or a second for a connection that was one too many."""


@dataclass(frozen=True)
class Answer:
    """What a path answers."""

    body: bytes = b""
    status: int = 200
    content_type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def as_json(value: object, status: int = 200) -> Answer:
    """A JSON answer."""
    return Answer(json.dumps(value).encode(), status, "application/json")


Handler = BaseHTTPRequestHandler
Route = Answer | Callable[[Handler], Answer | None]
"""An answer, or a function that gives one, or writes to the connection itself and gives None."""


@dataclass
class Asked:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    """Connections that wait to be accepted; one too many is silently let drop, and tries again after a second."""


class Site:
    """A running server: what was asked, and where it is."""

    def __init__(self, routes: Mapping[str, Route]) -> None:
        self.routes = dict(routes)
        self.asked: list[Asked] = []
        self.closing = threading.Event()
        self.port = 0

    @property
    def url(self) -> str:
        """Its address, without a trailing slash."""
        return f"http://127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        """All paths asked for, in order."""
        return [asked.path for asked in self.asked]

    def route(self, path: str) -> Route:
        """By the whole path, else by the path without its query, else 404."""
        return self.routes.get(path) or self.routes.get(path.partition("?")[0]) or Answer(b"not found", 404)


@contextlib.contextmanager
def serving(routes: Mapping[str, Route]) -> Generator[Site]:
    """Serve while the block runs."""
    site = Site(routes)

    class Connection(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True  # else a body waits 40 ms for the receipt of its head

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            site.asked.append(Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            route = site.route(self.path)
            with contextlib.suppress(ConnectionError):
                answer = route if isinstance(route, Answer) else route(self)
                if answer:
                    self._send(answer)

        do_POST = do_GET  # noqa: N815 - the library's name
        do_HEAD = do_GET  # noqa: N815 - the same

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

    server = _Server(("127.0.0.1", 0), Connection)
    server.handle_error = lambda *_: None  # type: ignore[method-assign] - clients hang up on purpose
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def kept_port(port: int = 0) -> Generator[int]:
    """A port, any one for 0, that refuses connections until a server is started there, and is kept for that server.

    One that was free a moment ago may have been given to any connection of the machine when the server wants it.
    """
    with socket.socket() as keeper:
        # Servers ask for the same, so that they get the port all the same: this one does not listen.
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", port))
        yield keeper.getsockname()[1]


@cache
def closed_port() -> int:
    """A port that refuses every connection until the tests of this process have ended."""
    kept = contextlib.ExitStack()
    atexit.register(kept.close)
    return kept.enter_context(kept_port())


@contextlib.contextmanager
def replaying(*options: str) -> Generator[str]:
    """The recorded services beside the checkout; the test is skipped where they are absent."""
    script = DATA / "replay.py"
    if not script.exists():
        pytest.skip(f"recordings are not here: {script}")
    with kept_port() as port:
        process = subprocess.Popen(
            [sys.executable, "-c", AT_ONCE, str(script), "--port", str(port), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert process.stdout
            assert process.stdout.readline()
            for _ in range(100_000):  # it says so just before it listens
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
                    break
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.communicate()


async def no_pause(_seconds: float) -> None:
    """Wait for nothing between attempts."""


def open_web(**options: Any) -> Web:
    """A web that may reach loopback and does not wait between attempts."""
    return Web(Guard(["127.0.0.1"]), pause=options.pop("pause", no_pause), **options)


def open_plain_web() -> Web:
    """The same without certificates: to load them takes longer than a test of plain HTTP needs altogether."""
    guard = Guard(["127.0.0.1"])
    transport = GuardedTransport(guard, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    return Web(guard, transport=transport, pause=no_pause)


class Ledger:
    """A store of sources whose files are kept at hand."""

    def __init__(self, *, is_compared: bool = False) -> None:
        self.files: dict[str, str] = {}
        read = self._read if is_compared else None
        self.source_store = SourceStore(self._append, self._write, lambda: NOW, read=read)
        self.store = self.source_store.store
        self.context = replace(NO_RUN, store=self.store, now=lambda: NOW)

    async def _append(self, event: AnyEvent) -> None:
        pass

    async def _write(self, path: str, text: str) -> None:
        self.files[path] = text

    async def _read(self, path: str) -> str:
        return self.files[path]

    def text(self, source_id: str) -> str:
        """The stored file of a source."""
        return self.files[f".explorer/sources/{source_id}.md"]


def unfenced(content: str) -> str:
    """What stands between the marks of untrusted text."""
    match = re.search(r"<<untrusted ([0-9a-f]{16})>>\n(.*)\n<<end \1>>", content, re.DOTALL)
    assert match, content
    return match[2]
