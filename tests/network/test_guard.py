"""Which URLs and addresses may be fetched."""

import ipaddress
import random
import socket
from collections.abc import Callable, Sequence

import pytest
import ssrfguard

from explorer.network.guard import REFUSED_V4, REFUSED_V6, Guard, UrlRefusedError, refusal
from explorer.schema.errors import ToolError

REFUSED_URLS = [
    "ftp://example.com/file",
    "file:///etc/passwd",
    "gopher://example.com/1",
    "data:text/html,hello",
    "javascript:alert(1)",
    "//example.com/x",
    "example.com/x",
    "/x",
    "",
    "http://",
    "http:///x",
    "http://user@example.com/",
    "http://user:word@example.com/",
    "http://@example.com/",
    "http://:@example.com/",
    "http://example.com\\@127.0.0.1/",
    "http://example.com /x",
    "http://exa\nmple.com/",
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.0.1./",
    "http://0/",
    "http://0.0.0.0/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://127.0.0.0x1/",
    "http://1\u20e327.0.0.1/",
    "http://\u2460\u2461\u2466.0.0.1/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::a00:1]/",
    "http://[64:ff9b:1::1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[fd00::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fd00:ec2::254]/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://100.100.100.200/",
    "http://169.254.169.254/latest/meta-data/",
    "http://168.63.129.16/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://192.0.2.1/",
    "http://localhost/",
    "http://LOCALHOST:8080/",
    "http://app.localhost/",
    "http://localhost./",
    "http://metadata.google.internal/",
    "http://printer.local/",
    "http://nas.lan/",
    "http://router.home.arpa/",
    "http://intranet/",
    "http://example.com./",
    "http://ex%61mple.com/",
    "http://127%2e0%2e0%2e1/",
    "http://example.com:22/",
    "http://example.com:25/",
    "http://example.com:6379/",
    "http://example.com:0/",
]

FINE_URLS = [
    "http://example.com/",
    "https://example.com",
    "HTTPS://EXAMPLE.COM/Path?q=1#part",
    "https://sub.domain.example.co.uk:8443/x",
    "http://example.com:80/",
    "http://example.com:8080/",
    "https://b\u00fccher.example/",
    "https://xn--bcher-kva.example/",
    "https://my_host.example.com/",
    "http://93.184.215.14/",
    "http://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/",
    "http://[64:ff9b::5db8:d70e]/",
    "https://example.com/a@b",
    "https://internal.example.com/",
]

REFUSED_ADDRESSES = [
    *("0.0.0.1", "0.1.2.3", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1", "127.255.255.254"),
    *("169.254.0.1", "172.31.255.255", "192.0.0.170", "192.0.2.5", "192.88.99.1", "192.168.0.1", "198.18.0.1"),
    *("198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1"),
    *("255.255.255.255", "::", "::1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "100::1"),
    *("2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:a00:1::", "3fff::1", "fc00::1"),
    *("fdff::1", "fe80::1", "fec0::1", "ff02::1", "5f00::1", "2620:4f:8000::1", "2606:4700::5efe:a00:1"),
    *("", "example.com", "1.2.3", "1.2.3.4.5", "01.2.3.4", "::g"),
]

FINE_ADDRESSES = [
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"),
    *("128.0.0.1", "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0"),
    *("198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8"),
]


def answering(*addresses: str) -> Guard:
    """A guard whose resolver gives these addresses for every name but the allowed `inner.example`."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        del host, port
        return addresses

    return Guard(["inner.example", "[::1]"], resolve)


@pytest.mark.parametrize("url", REFUSED_URLS)
def test_refused_url(url: str) -> None:
    """A URL that is not plainly a public web page's is refused as it is written."""
    with pytest.raises(UrlRefusedError, match=r"^Not fetched"):
        Guard().check_url(url)


@pytest.mark.parametrize("url", FINE_URLS)
def test_fine_url(url: str) -> None:
    """An ordinary URL passes."""
    assert Guard().check_url(url).scheme in {"http", "https"}


@pytest.mark.parametrize("address", REFUSED_ADDRESSES)
def test_refused_address(address: str) -> None:
    """Every address that is not publicly routable is refused with a reason."""
    assert refusal(address)


@pytest.mark.parametrize("address", FINE_ADDRESSES)
def test_fine_address(address: str) -> None:
    """The neighbours of the refused ranges are public."""
    assert refusal(address) == ""


def test_allowed_hosts() -> None:
    """A host the user named passes in any port and spelling of case; nothing else changes."""
    guard = Guard(["127.0.0.1", "Nas.LAN", "[::1]"])
    for url in ("http://127.0.0.1:22/x", "http://nas.lan/", "http://NAS.lan:8080/", "http://[::1]:9/"):
        guard.check_url(url)
    for url in ("http://127.0.0.2/", "http://sub.nas.lan/", "ftp://127.0.0.1/", "http://user@127.0.0.1/"):
        with pytest.raises(UrlRefusedError):
            guard.check_url(url)


async def test_addresses() -> None:
    """A name's public addresses pass as a whole; one internal answer among them refuses all."""
    assert await answering("8.8.8.8", "2606:4700::1111").addresses("shop.example", 443) == [
        "8.8.8.8",
        "2606:4700::1111",
    ]
    for answers in (["10.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["8.8.8.8", "::1"]):
        with pytest.raises(UrlRefusedError, match="leads to"):
            await answering(*answers).addresses("shop.example", 443)


async def test_allowed_host_resolves_inward() -> None:
    """A host the user named may lead inward, and a literal address is not looked up."""
    assert await answering("10.0.0.1").addresses("inner.example", 80) == ["10.0.0.1"]
    assert await answering("10.0.0.1").addresses("::1", 80) == ["::1"]
    assert await answering("10.0.0.1").addresses("8.8.8.8", 80) == ["8.8.8.8"]


async def test_no_such_name() -> None:
    """A name without addresses is told as such; a name server that fails for now is a network error."""

    async def unknown(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, f"{host}:{port}")

    async def failing(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_AGAIN, f"{host}:{port}")

    for guard in (answering(), Guard(resolve=unknown)):
        with pytest.raises(ToolError, match=r"no site shop\.example"):
            await guard.addresses("shop.example", 80)
    with pytest.raises(OSError, match="shop"):
        await Guard(resolve=failing).addresses("shop.example", 80)


@pytest.fixture(scope="module")
def points() -> list[str]:
    """40,000 addresses: the edges of every block either table knows, points in and around them, and anywhere."""
    chance = random.Random(20_260_810)  # noqa: S311 - a seed, so that it is the same every time
    blocks = [block.network for block in ssrfguard.DEFAULT_DENIED.blocks]
    blocks += [ipaddress.ip_network(text) for text in (*REFUSED_V4, *REFUSED_V6)]
    points: set[str] = set()
    for block in blocks:
        kind, top = (ipaddress.IPv4Address, 2**32) if block.version == 4 else (ipaddress.IPv6Address, 2**128)
        first, last = int(block.network_address), int(block.broadcast_address)
        near = [first - 1, first, first + 1, last - 1, last, last + 1]
        inside = [chance.randint(first, last) for _ in range(120)]
        points |= {str(kind(place)) for place in (*near, *inside) if 0 <= place < top}
    prefixes = ["::ffff:0:0", "64:ff9b::", "2002::", "2001::", "::"]
    while len(points) < 40_000:
        v4 = chance.getrandbits(32)
        points.add(str(ipaddress.IPv4Address(v4)))
        points.add(str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(chance.choice(prefixes))) | v4)))
        points.add(str(ipaddress.IPv6Address((0b001 << 125) | chance.getrandbits(125))))
    return sorted(points)[:40_000]


def _weaker(points: Sequence[str], judge: Callable[[str], str]) -> list[str]:
    """Addresses that the other table refuses and this judge lets pass."""
    table = ssrfguard.DEFAULT_DENIED
    return [point for point in points if not judge(point) and table.classify(point).blocked]


@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_never_weaker_than_another_table(step: int, points: list[str]) -> None:
    """Of 40,000 addresses, a tenth every day, whatever a table made by others refuses is refused by ours too."""
    assert len(points) == 40_000
    assert _weaker(points[::step], refusal) == []


def test_the_comparison_sees_a_weaker_table(points: list[str]) -> None:
    """Python's own notion of a private address, which many guards rely on, is caught as weaker."""
    assert len(_weaker(points[::10], lambda one: "private" if ipaddress.ip_address(one).is_private else "")) > 10
