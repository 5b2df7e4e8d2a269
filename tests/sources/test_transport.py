"""TLS on a pinned address: the certificate is checked against the name, and the name is what is sent."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpcore2
import pytest

from explorer.network.guard import Guard
from explorer.network.transport import GuardedBackend, GuardedTransport
from explorer.schema.errors import ConfigError, ToolError
from explorer.schema.network import Network
from explorer.sources.http.fetch import Web
from sources.loopback import Answer, serving
from sources.public_network import PublicNetwork

KEY = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
SHOP, OTHER, PUBLIC = "shop.example", "other.example", "93.184.215.14"


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, `ca.pem`, and what it and nobody certified: `good`, `expired`, `self_signed`, key included."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not here")
    folder = tmp_path_factory.mktemp("tls")

    def openssl(line: str) -> None:
        subprocess.run(["openssl", *line.split()], cwd=folder, check=True, capture_output=True)

    (folder / "names").write_text(f"subjectAltName=DNS:{SHOP}\n")
    authority = "-addext basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign"
    openssl(f"req -x509 {KEY} -days 2 -keyout ca.key -out ca.pem -subj /CN=authority {authority}")
    openssl(f"req {KEY} -keyout shop.key -out shop.csr -subj /CN={SHOP}")
    for name, days in (("good", 2), ("expired", -1)):
        signing = "-CA ca.pem -CAkey ca.key -CAcreateserial -extfile names"
        openssl(f"x509 -req -in shop.csr -days {days} {signing} -out {name}.crt")
    openssl("x509 -req -in shop.csr -days 2 -signkey shop.key -extfile names -out self_signed.crt")
    for name in ("good", "expired", "self_signed"):
        (folder / f"{name}.pem").write_text((folder / "shop.key").read_text() + (folder / f"{name}.crt").read_text())
    return folder


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


def web_to(port: int, context: ssl.SSLContext | None) -> Web:
    """A web that trusts what the context trusts, and for which both shops stand behind one public address."""
    network = PublicNetwork({SHOP: [[PUBLIC]], OTHER: [[PUBLIC]]}, {PUBLIC: port})
    return network.web(ssl_context=context)


def trusting(papers: Path) -> ssl.SSLContext:
    """As a browser does, with one authority."""
    return ssl.create_default_context(cafile=str(papers / "ca.pem"))


@pytest.mark.slow
async def test_the_name_is_kept(papers: Path) -> None:
    """Connected to an address, we still ask for and check the name."""
    names: list[str] = []
    async with tls_server(papers / "good.pem", names) as port, web_to(port, trusting(papers)) as web:
        assert (await web.get(f"https://{SHOP}/")).body == b"hello"
    assert names == [f"sni: {SHOP}", f"Host: {SHOP}"]


@pytest.mark.parametrize(
    ("certificate", "host", "knows_authority"),
    [
        ("good", OTHER, True),
        ("good", SHOP, False),
        ("expired", SHOP, True),
        ("self_signed", SHOP, True),
        ("self_signed", SHOP, False),
    ],
)
async def test_a_wrong_certificate_is_refused(
    papers: Path, certificate: str, host: str, *, knows_authority: bool
) -> None:
    """Of another name, of nobody we know, out of date or its own witness: it ends before anything is asked."""
    names: list[str] = []
    context = trusting(papers) if knows_authority else None
    async with tls_server(papers / f"{certificate}.pem", names) as port, web_to(port, context) as web:
        with pytest.raises(ToolError, match="certificate"):
            await web.get(f"https://{host}/")
    assert not [name for name in names if name.lower().startswith("host")]


async def test_who_does_not_check_is_deceived(papers: Path) -> None:
    """A client that takes any certificate asks the same servers, so that the refusals above mean something."""
    names: list[str] = []
    blind = ssl.create_default_context()
    blind.check_hostname = False
    blind.verify_mode = ssl.CERT_NONE
    for certificate in ("expired", "self_signed"):
        async with tls_server(papers / f"{certificate}.pem", names) as port, web_to(port, blind) as web:
            assert (await web.get(f"https://{OTHER}/")).body == b"hello"


async def test_only_tls_asks_for_certificates() -> None:
    """A plain page is read without loading them, which takes longer than the rest; a page over TLS is not."""
    with serving({"/": Answer(b"hello")}) as site:
        network = PublicNetwork({SHOP: [[PUBLIC]]}, {PUBLIC: site.port})
        of_no_file = Network(ca_file="/no/such/file.pem")
        transport = GuardedTransport(network.guard(), network=network, outbound=of_no_file)
        async with Web(network.guard(), transport=transport) as web:
            assert (await web.get(f"http://{SHOP}/")).body == b"hello"
            with pytest.raises(ConfigError, match=r"/no/such/file\.pem"):
                await web.get(f"https://{SHOP}/")


async def test_no_socket_files() -> None:
    """The backend connects to hosts only."""
    backend = GuardedBackend(Guard())
    with pytest.raises(httpcore2.ConnectError):
        await backend.connect_unix_socket("/run/x.sock")
    await backend.sleep(0)
