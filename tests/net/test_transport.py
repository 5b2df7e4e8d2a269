"""TLS on a pinned address: the certificate is checked against the name, and the name is what is sent."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpcore2
import pytest

from explorer.errors import ToolError
from explorer.net.fetch import Web
from explorer.net.guard import Guard
from explorer.net.transport import GuardedBackend, GuardedTransport
from net.loopback import no_pause


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for shop.example, key and certificate in one file."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not here")
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out cert.pem -subj /CN=shop.example"
    subprocess.run(
        [*command.split(), "-addext", "subjectAltName=DNS:shop.example"], cwd=folder, check=True, capture_output=True
    )
    both = folder / "both.pem"
    both.write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return both


@asynccontextmanager
async def tls_server(certificate: Path, names: list[str]) -> AsyncGenerator[int]:
    """A server that answers every request and notes the names asked for."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        names.append(next(line for line in head.decode().split("\r\n") if line.lower().startswith("host:")))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _socket, name, _context: names.append(f"sni: {name}")
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def loopback(host: str, port: int) -> Sequence[str]:
    """Every name is here."""
    del host, port
    return ["127.0.0.1"]


def trusting(context: ssl.SSLContext | None) -> Web:
    """A web that trusts what the context trusts."""
    guard = Guard(["shop.example", "other.example"], loopback)
    return Web(guard, transport=GuardedTransport(guard, context), pause=no_pause)


async def test_the_name_is_kept(certificate: Path) -> None:
    """Connected to an address, we still ask for and check the name."""
    names: list[str] = []
    context = ssl.create_default_context(cafile=str(certificate))
    async with tls_server(certificate, names) as port, trusting(context) as web:
        assert (await web.get(f"https://shop.example:{port}/")).body == b"hello"
    assert names == ["sni: shop.example", f"Host: shop.example:{port}"]


async def test_a_wrong_certificate_is_refused(certificate: Path) -> None:
    """A certificate of another name, or of nobody we know, ends it before anything is asked."""
    names: list[str] = []
    async with tls_server(certificate, names) as port:
        async with trusting(ssl.create_default_context(cafile=str(certificate))) as web:
            with pytest.raises(ToolError, match="certificate"):
                await web.get(f"https://other.example:{port}/")
        async with trusting(None) as web:
            with pytest.raises(ToolError, match="certificate"):
                await web.get(f"https://shop.example:{port}/")
    assert not [name for name in names if name.lower().startswith("host")]


async def test_no_socket_files() -> None:
    """The backend connects to hosts only."""
    backend = GuardedBackend(Guard())
    with pytest.raises(httpcore2.ConnectError):
        await backend.connect_unix_socket("/run/x.sock")
    await backend.sleep(0)
