"""Connections of other users of the machine to a server: without a token, a word, an end, or a look at the answer.

The product is the web page's server with small bounds, over an application that answers every request; a control is the
same server with bounds that nothing here reaches. The run that an exhausted server loses is tried with a real process.
"""

import asyncio
import json
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.request import Request, urlopen

from starlette.types import Receive, Scope, Send

from attacks.attack import Attack
from command import environment
from explorer.network.server_connections import ConnectionBounds
from explorer.server.listening import PageServer, open_socket

CLOSE = ConnectionBounds(connections=20, ask_s=0.2, read_s=0.2)
"""Small, so that no attempt takes long."""
FAR = ConnectionBounds(connections=1_000, ask_s=600, read_s=600, head_bytes=1 << 40)
PATIENCE_S = {CLOSE: 30.0, FAR: 1.0}
"""How long a connection that the server should end is watched; where nothing ends it, a moment says so."""
ASK = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
BODY = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n"
HEAD_BYTES = 8_000_000
"""More than a head has, and than what sockets hold."""
Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Connected]]
Try = Callable[[Connect, float], Awaitable[bool]]


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer without a look at the body, as what refuses a request without a token does; `/long` is a long answer."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send({"type": "http.response.start", "status": 401, "headers": []})
    for _ in range(400 if scope["path"] == "/long" else 0):
        await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
    await send({"type": "http.response.body", "body": b"A token is needed."})


@asynccontextmanager
async def _serving(bounds: ConnectionBounds) -> AsyncGenerator[Connect]:
    with closing(open_socket("127.0.0.1", 0)) as listening:
        server = PageServer(listening, _answer, lambda: None, bounds)
        host, port = listening.getsockname()
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve())
            try:
                yield partial(asyncio.open_connection, host, port)
            finally:
                server.end()


async def _is_kept(reader: asyncio.StreamReader, patience_s: float) -> bool:
    """Whether the server keeps a connection on which nothing more comes."""
    try:
        async with asyncio.timeout(patience_s):
            with suppress(ConnectionError):
                while await reader.read(65_536):
                    pass
            return False
    except TimeoutError:
        return True


async def _says_nothing(connect: Connect, patience_s: float, *, words: bytes = b"") -> bool:
    reader, writer = await connect()
    writer.write(words)
    kept = await _is_kept(reader, patience_s)
    writer.close()
    return kept


async def _drips(connect: Connect, patience_s: float, *, words: bytes) -> bool:
    """Send a request byte by byte; return whether it is taken so long."""
    reader, writer = await connect()
    writer.write(words)

    async def drip() -> None:
        with suppress(ConnectionError):
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)

    async with asyncio.TaskGroup() as group:
        dripping = group.create_task(drip())
        kept = await _is_kept(reader, patience_s)
        dripping.cancel()
    writer.close()
    return kept


async def _sends_head_without_end(connect: Connect, patience_s: float) -> bool:
    """Send a head without an end; return whether all of it is taken."""
    reader, writer = await connect()
    writer.write(ASK[:-2])
    line = b"X-Filler: " + b"x" * 8_000 + b"\r\n"
    try:
        async with asyncio.timeout(max(patience_s, 20)):
            for _ in range(HEAD_BYTES // len(line)):
                writer.write(line)
                await writer.drain()
            writer.write(b"\r\n")
            return b"A token is needed." in await reader.read(65_536)
    except (ConnectionError, TimeoutError):
        return False
    finally:
        writer.close()


async def _never_reads(connect: Connect, patience_s: float) -> bool:
    """Ask for a long answer and read none of it; return whether the server keeps all of that."""
    _, writer = await connect()
    writer.write(ASK.replace(b"/ ", b"/long "))
    # Whether the connection ended is seen by writing: to read would free the server.
    try:
        async with asyncio.timeout(patience_s):
            while True:
                writer.write(b"\r\n")
                await writer.drain()
                await asyncio.sleep(0.05)
    except ConnectionError:
        return False
    except TimeoutError:
        return True
    finally:
        writer.transport.abort()


async def _takes_all_places(connect: Connect, patience_s: float) -> bool:
    """Open more connections than there is room for; return whether all are kept."""
    opened = [await connect() for _ in range(60)]
    async with asyncio.TaskGroup() as group:
        looks = [group.create_task(_is_kept(reader, patience_s)) for reader, _ in opened]
    for _, writer in opened:
        writer.close()
    return all(look.result() for look in looks)


def _tried(_folder: Path, do: Try, bounds: ConnectionBounds) -> bool:
    async def try_it() -> bool:
        async with _serving(bounds) as connect:
            return await do(connect, PATIENCE_S[bounds])

    return asyncio.run(try_it())


FILES = 128
"""Open files that the server's process may have; the usual number is 1,024, or 256."""
SERVER = """
import sys
sys.argv = ["explorer", "serve", "--model", "offline", "--port", "0"]
import explorer.network.server_connections as connections
{guard}
from explorer.__main__ import main
sys.exit(main())
"""
ADDRESS = re.compile(r"http://([\d.]+):(\d+)/\?token=(\S+)")
NO_GUARD = "connections.most_connections = lambda: 1_000_000"


@contextmanager
def _process(folder: Path, guard: str) -> Generator[tuple[str, int, str]]:
    """Start `explorer serve` with few open files; yield its host, its port and its token."""
    words = shlex.join([sys.executable, "-c", SERVER.format(guard=guard)])
    said = folder / "said.txt"
    with said.open("w") as file:
        command = ["/bin/sh", "-c", f"ulimit -n {FILES}; exec {words}"]
        process = subprocess.Popen(command, cwd=folder, env=environment(folder, {}), stderr=file)
    try:
        while (found := ADDRESS.search(said.read_text())) is None:
            assert process.poll() is None, "the server did not start"
            time.sleep(0.1)
        yield found[1], int(found[2]), found[3]
    finally:
        process.kill()
        process.wait()


def _takes_all_files(folder: Path, guard: str = "") -> bool:
    """Open more connections than the server may have files; return whether its user can order nothing any more."""
    with _process(folder, guard) as (host, port, token), ExitStack() as strangers:
        for _ in range(FILES + 40):
            stranger = strangers.enter_context(socket.socket())
            stranger.setblocking(False)  # noqa: FBT003 - the name of its parameter is not public
            with suppress(BlockingIOError):
                stranger.connect((host, port))
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        body = json.dumps({"question": "What do the ropes cost?"}).encode()
        order = Request(f"http://{host}:{port}/api/runs", body, headers)
        try:
            with urlopen(order, timeout=5 if guard else 30) as answer:
                return "run_id" not in json.load(answer)
        except OSError:
            return True


ATTACKS = [
    *(
        Attack(f"connection-{name}", tried, partial(_tried, do=do, bounds=CLOSE), partial(_tried, do=do, bounds=FAR))
        for name, tried, do in (
            ("silent", "A connection is opened, and nothing is said.", _says_nothing),
            ("half-asked", "Half the head of a request is sent, and no more.", partial(_says_nothing, words=ASK[:30])),
            ("slow-head", "The head of a request is sent byte by byte.", partial(_drips, words=ASK[:-2] + b"X: ")),
            ("slow-body", "The body is sent on, byte by byte, after the answer.", partial(_drips, words=BODY)),
            ("endless-head", "A request has a head without end.", _sends_head_without_end),
            ("unread", "A long answer is asked for and never read.", _never_reads),
            ("places", "More connections are opened than there is room for.", _takes_all_places),
        )
    ),
    Attack(
        "connection-files",
        "Another user opens more connections than the server may have files, while a run is ordered.",
        _takes_all_files,
        partial(_takes_all_files, guard=NO_GUARD),
    ),
]
