"""Checks which addresses may be fetched: public web servers, and hosts that the user named; nothing else.

A page, a search hit or a model can name any address, also one that only this machine can reach: a cloud's
metadata service, a router, a database. So a URL is checked twice: its text (`check_url`), and every address that its
host resolves to (`addresses`); the caller then connects to exactly those addresses.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from urllib.parse import urlsplit

import httpx2

from explorer.schema.errors import RefusedCallError, ToolError
from explorer.schema.network import ip_address_of, without_secrets
from explorer.text.rendering import own

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Return a host's addresses; raise OSError when it has none."""


REFUSED_V4 = {
    "0.0.0.0/8": "this machine",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "carrier-grade NAT",
    "127.0.0.0/8": "loopback",
    "168.63.129.16/32": "a cloud's metadata service",
    "169.254.0.0/16": "link-local",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "reserved",
    "192.0.2.0/24": "documentation",
    "192.31.196.0/24": "reserved",
    "192.52.193.0/24": "reserved",
    "192.88.99.0/24": "a 6to4 relay",
    "192.168.0.0/16": "private",
    "192.175.48.0/24": "reserved",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
}
"""IANA's special-purpose registry, and one metadata address in public space."""

REFUSED_V6 = {
    "2001::/23": "a protocol assignment (Teredo and others)",
    "2001:db8::/32": "documentation",
    "2002::/16": "6to4",
    "2620:4f:8000::/48": "reserved",
    "3fff::/20": "documentation",
}
"""Refused networks within global unicast; everything outside `GLOBAL_V6` is refused anyway."""

GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
MAPPED_V4 = ipaddress.IPv6Network("::ffff:0:0/96")
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""The prefix through which networks without IPv4 reach every IPv4 host, so the embedded address decides."""

_V4 = tuple((ipaddress.IPv4Network(network), reason) for network, reason in REFUSED_V4.items())
_V6 = tuple((ipaddress.IPv6Network(network), reason) for network, reason in REFUSED_V6.items())

ISATAP = re.compile(r"^(0000|0200):5efe:")
"""The lower half of an IPv6 address that tunnels to an IPv4 one."""

REFUSED_NAMES = re.compile(
    r"(^|\.)(localhost|localdomain|local|internal|intranet|private|corp|home|lan|home\.arpa|onion)$"
)
NUMBERS_ONLY = re.compile(r"^(0x[0-9a-f]*|\d+)(\.(0x[0-9a-f]*|\d+))*$")
HOST_NAME = re.compile(r"^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+$")

FIRST_FREE_PORT = 1024
WEB_PORTS_BELOW_1024 = frozenset({80, 81, 443})
DATABASE_PORTS = frozenset({2049, 3306, 3389, 5432, 5900, 6000, 6379, 11211, 27017, *range(6665, 6670)})
"""Refused like low ports: mail, shells, databases. They serve no pages, but could read a request as a command."""


LOOKUP_S = 3.0
"""Seconds to look up a name that a proxy will look up again: behind some proxies no resolver answers."""
UNRESOLVED_S = 60.0
"""Seconds for which a name that cannot be resolved is not looked up again."""
MAX_UNRESOLVED = 5_000


class UrlRefusedError(RefusedCallError):
    """A URL that must not be fetched, whatever server answers."""


class NoSuchSiteError(ToolError):
    """A host whose name cannot be resolved."""


async def system_resolve(host: str, port: int) -> list[str]:
    """Return the addresses that the system's resolver finds."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def refusal(address: str) -> str:
    """Return why an address must not be connected to; empty when it may.

    Only the canonical form is accepted: what `ipaddress` does not read is refused.
    """
    parsed = ip_address_of(address)
    if parsed is None:
        return "not an address"
    if isinstance(parsed, ipaddress.IPv4Address):
        return _refusal_v4(parsed)
    return _refusal_v6(parsed)


def _refusal_v4(address: ipaddress.IPv4Address) -> str:
    return next((reason for network, reason in _V4 if address in network), "")


def _refusal_v6(address: ipaddress.IPv6Address) -> str:
    if address in MAPPED_V4 or address in NAT64:
        return _refusal_v4(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    if address == ipaddress.IPv6Address("::1"):
        return "loopback"
    if address not in GLOBAL_V6 or address.scope_id:
        return "not public (loopback, private, link-local, multicast or reserved)"
    for network, reason in _V6:
        if address in network:
            return reason
    return "an ISATAP tunnel" if ISATAP.match(address.exploded[20:]) else ""


class Guard:
    """Checks URLs and addresses. `allow_hosts` are hosts that the user allows, whatever they resolve to."""

    def __init__(self, allow_hosts: Iterable[str] = (), resolve: Resolver = system_resolve) -> None:
        self._allowed = frozenset(host.strip("[] ").lower() for host in allow_hosts)
        self._resolve = resolve
        self._unresolved: dict[str, float] = {}

    def is_allowed_host(self, host: str) -> bool:
        """Return whether the user allows this host."""
        return host.lower() in self._allowed

    def check_url(self, text: str) -> httpx2.URL:
        """Check the text of a URL, and return it parsed.

        Raises:
            UrlRefusedError: Not http(s), with a user or password, an odd spelling, or an internal name or address.
        """
        url = _parsed(text)
        if self.is_allowed_host(url.host):
            return url
        host = url.raw_host.decode("ascii")
        if problem := _host_problem(host) or _port_problem(url.port):
            raise _refused(text, problem)
        return url

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses to connect to, all of them checked.

        A host with one public and one internal address is refused: honest sites have no such addresses.

        Raises:
            UrlRefusedError: One of the addresses is internal.
            NoSuchSiteError: The name does not exist.
            OSError: The name could not be looked up just now.
        """
        found = [host] if ip_address_of(host) is not None else await self._looked_up(host, port)
        if not self.is_allowed_host(host):
            for address in found:
                if reason := refusal(address):
                    raise _refused(host, f"it leads to {address} ({reason})")
        return found

    async def check_behind_proxy(self, host: str, port: int) -> None:
        """Check a host that a proxy will connect to: its name, and every address it has here.

        A name that cannot be resolved here is accepted if it is the full name of a public site: behind many proxies
        only the proxy can resolve it.

        Raises:
            UrlRefusedError: The host, or one of its addresses, is internal.
        """
        if self.is_allowed_host(host):
            return
        if problem := _host_problem(host):
            raise _refused(host, problem)
        now = asyncio.get_running_loop().time()
        if now < self._unresolved.get(host, 0.0):
            return
        try:
            async with asyncio.timeout(LOOKUP_S):
                await self.addresses(host, port)
        except (NoSuchSiteError, OSError):  # a TimeoutError is an OSError
            if len(self._unresolved) >= MAX_UNRESOLVED:
                self._unresolved.clear()
            self._unresolved[host] = now + UNRESOLVED_S

    async def _looked_up(self, host: str, port: int) -> list[str]:
        try:
            found = list(await self._resolve(host, port))
        except socket.gaierror as error:
            if error.errno not in {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}:
                raise
            raise _unknown(host) from error
        if not found:
            raise _unknown(host)
        return found


def _parsed(text: str) -> httpx2.URL:
    if any(character.isspace() or character == "\\" for character in text):
        raise _refused(text, "a URL has no spaces and no backslashes")
    try:
        url, authority = httpx2.URL(text), urlsplit(text).netloc
    except (httpx2.InvalidURL, ValueError) as error:
        raise _refused(text, f"it is not a valid URL: {error}") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise _refused(text, "only absolute http:// and https:// URLs can be read")
    if url.userinfo or "@" in authority:
        raise _refused(without_secrets(text), "a URL with a user name or password is not read")
    return url


def _host_problem(host: str) -> str:
    if ip_address_of(host) is not None:
        reason = refusal(host)
        return f"its address is not a public one ({reason})" if reason else ""
    if NUMBERS_ONLY.match(host):
        return "its host is an odd spelling of an address"
    if REFUSED_NAMES.search(host):
        return "its host is a name of an internal network"
    if not HOST_NAME.match(host):
        return "its host is not the full name of a public site"
    return ""


def _port_problem(port: int | None) -> str:
    if port is None or port in WEB_PORTS_BELOW_1024:
        return ""
    return f"port {port} is not a web server's" if port < FIRST_FREE_PORT or port in DATABASE_PORTS else ""


def _unknown(host: str) -> NoSuchSiteError:
    return NoSuchSiteError.of(
        "There is no site {host}: the name cannot be resolved. Check its spelling, or use another source.", host=host
    )


def _refused(what: str, problem: str) -> UrlRefusedError:
    return UrlRefusedError(
        own(
            "Not fetched: {what}: {problem}. Only public web pages can be read; use another source.",
            what=what[:300],
            problem=problem,
        ),
        hint="the user can allow a host with EXPLORER_ALLOW_HOSTS",
    )
