"""A forward proxy on loopback, and certificates of an authority of its own: a user's network in small."""

import asyncio
import base64
import ssl
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import SecretStr

from explorer.schema.network import Network, Proxy

PASSWORD = "p4ssw0rd-of-the-proxy"
KEY = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"


@dataclass
class ForwardProxy:
    """A proxy that tunnels and forwards to the ports that stand for hosts; it resolves names by that table alone."""

    hosts: Mapping[str, int]
    """By host; every port of it is the same server."""
    login: str = ""
    """`user:password`; empty: everybody may use it."""
    is_tls: bool = False
    port: int = 0
    seen: list[str] = field(default_factory=list[str])
    """The first line of each request."""
    _open: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])

    @property
    def url(self) -> str:
        """Its address."""
        return f"https://localhost:{self.port}" if self.is_tls else f"http://127.0.0.1:{self.port}"

    def network(self, *, login: str = "", ca: Path | None = None, no_proxy: tuple[str, ...] = ()) -> Network:
        """The network of a user behind it."""
        address = self.url.replace("//", f"//{login}@") if login else self.url
        return Network(
            http_proxy=Proxy(url=SecretStr(address), variable="HTTP_PROXY"),
            https_proxy=Proxy(url=SecretStr(address), variable="HTTPS_PROXY"),
            no_proxy=no_proxy,
            ca_file=str(ca or ""),
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one connection."""
        self._open.add(writer)
        try:
            await self._serve(reader, writer)
        finally:
            self._open.discard(writer)

    async def close(self) -> None:
        """Hang up on everybody, and wait until nobody is served."""
        while self._open:
            for writer in self._open:
                writer.close()
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            line, *headers = head.decode().split("\r\n")
            self.seen.append(line)
            method, target, _ = line.split(" ")
            if not self._may_use(headers):
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            elif method == "CONNECT":
                await self._pass_on(target.rpartition(":")[0], b"", reader, writer)
            else:
                authority, _, path = target.removeprefix("http://").partition("/")
                rest = [one for one in headers if one and not one.lower().startswith(("proxy-", "connection"))]
                first = "\r\n".join([f"{method} /{path} HTTP/1.1", *rest, "Connection: close", "", ""])
                await self._pass_on(authority.partition(":")[0], first.encode(), reader, writer)
        with suppress(OSError):
            await writer.drain()
            writer.close()

    def _may_use(self, headers: list[str]) -> bool:
        expected = base64.b64encode(self.login.encode()).decode()
        sent = [one.partition(": ")[2] for one in headers if one.lower().startswith("proxy-authorization:")]
        return not self.login or sent == [f"Basic {expected}"]

    async def _pass_on(
        self, host: str, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if host not in self.hosts:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.hosts[host])
        if first:
            there_writer.write(first)
        else:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        async with asyncio.TaskGroup() as group:
            group.create_task(_pump(reader, there_writer))
            group.create_task(_pump(there_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(OSError):
            while chunk := await reader.read(65_536):
                writer.write(chunk)
                await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def proxy_to(
    hosts: Mapping[str, int], login: str = "", certificate: Path | None = None
) -> AsyncGenerator[ForwardProxy]:
    """A running proxy; with a certificate of `localhost` it is itself spoken to over TLS."""
    proxy = ForwardProxy(hosts, login, is_tls=certificate is not None)
    context = None
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=context)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()


@dataclass
class TlsServer:
    """A server that gives every request the same answer."""

    port: int
    heads: list[str]


@asynccontextmanager
async def tls_server(certificate: Path, body: bytes, content_type: str) -> AsyncGenerator[TlsServer]:
    """Answer every request with a body, over TLS."""
    heads: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            heads.append(head)
            lengths = [line for line in head.lower().split("\r\n") if line.startswith("content-length:")]
            await reader.readexactly(int(lengths[0].partition(":")[2]) if lengths else 0)
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n".encode())
            writer.write(f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
            await writer.drain()
            writer.close()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    # A client that does not trust the certificate goes without a word, and would be waited for.
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context, ssl_shutdown_timeout=0.1)
    try:
        yield TlsServer(server.sockets[0].getsockname()[1], heads)
    finally:
        server.close()


def certify(folder: Path, *names: str) -> None:
    """Write `ca.pem`, an authority, and `server.pem`, a key and what that authority certified for some names."""

    def openssl(line: str) -> None:
        subprocess.run(["openssl", *line.split()], cwd=folder, check=True, capture_output=True)

    (folder / "names").write_text("subjectAltName=" + ",".join(f"DNS:{name}" for name in names) + "\n")
    authority = "-addext basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign"
    openssl(f"req -x509 {KEY} -days 2 -keyout ca.key -out ca.pem -subj /CN=authority {authority}")
    openssl(f"req {KEY} -keyout server.key -out server.csr -subj /CN={names[0]}")
    signing = "-CA ca.pem -CAkey ca.key -CAcreateserial -extfile names"
    openssl(f"x509 -req -in server.csr -days 2 {signing} -out server.crt")
    (folder / "server.pem").write_text((folder / "server.key").read_text() + (folder / "server.crt").read_text())
