"""The user's own network: proxies, hosts that need none, and certificate authorities.

The command line reads it from the environment, once; other packages get it with the settings. It is never read from a
file of a run, never recorded, and no process that is started inherits it.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, SecretStr

from explorer.schema.errors import ConfigError

HTTP_PROXY = ("http_proxy", "HTTP_PROXY")
HTTPS_PROXY = ("https_proxy", "HTTPS_PROXY")
ALL_PROXY = ("all_proxy", "ALL_PROXY")
NO_PROXY = ("no_proxy", "NO_PROXY")
CA_FILE = "SSL_CERT_FILE"
CA_DIR = "SSL_CERT_DIR"
VARIABLES = (*HTTP_PROXY, *HTTPS_PROXY, *ALL_PROXY, *NO_PROXY, CA_FILE, CA_DIR)
"""All variables that are read; the lower-case form of a name goes before the other, as in curl."""

DEFAULT_PORTS = {"http": 80, "https": 443}
ENTRY = re.compile(r"^(?P<host>\[[0-9a-f:.]+\]|[^:\[\]]+)(:(?P<port>\d{1,5}))?$")


class Proxy(BaseModel):
    """One proxy, and the variable that names it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: SecretStr
    """The URL in the variable, with `http://` if it has no scheme; it may contain a user name and a password."""
    variable: str

    def __str__(self) -> str:
        """Return its name for people, without user name and password."""
        return f"the proxy {self.address} ({self.variable})"

    @property
    def address(self) -> str:
        """Its URL without user name and password.

        Raises:
            ConfigError: It is not the URL of a proxy that can be used.
        """
        try:
            parts = urlsplit(self.url.get_secret_value())
            host, port = parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
        except ValueError as error:
            raise self._unusable("it is not a valid URL") from error
        if parts.scheme not in DEFAULT_PORTS:
            raise self._unusable(f"{parts.scheme}:// proxies are not supported")
        if not host or not (host.isascii() and host.isprintable()) or " " in host:
            raise self._unusable("it names no host")
        return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def login(self) -> tuple[str, str] | None:
        """User name and password; None when it has none."""
        parts = urlsplit(self.url.get_secret_value())
        if parts.username is None:
            return None
        return unquote(parts.username), unquote(parts.password or "")

    def _unusable(self, why: str) -> ConfigError:
        # Never with its value: a password may be in it.
        hint = f"write it like {self.variable}=http://HOST:PORT, unset it, or list hosts that need no proxy in NO_PROXY"
        return ConfigError(f"{self.variable} cannot be used: {why}", hint=hint)


class Network(BaseModel):
    """How connections leave this machine. Without values: directly, trusting the system's authorities."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    http_proxy: Proxy | None = None
    """The proxy for `http://` addresses."""
    https_proxy: Proxy | None = None
    """The proxy for `https://` addresses."""
    no_proxy: tuple[str, ...] = ()
    """Hosts, domains, addresses and networks that are connected to directly; `*`: all."""
    ca_file: str = ""
    """A PEM file with the certificate authorities that replace the system's."""
    ca_dir: str = ""
    """A folder of certificate authorities, with the names that OpenSSL expects."""

    def proxy_for(self, url: str) -> Proxy | None:
        """Return the proxy that connections to a URL go through; None when they are direct.

        Connections to this machine never go through one: no proxy would find it.

        Raises:
            ConfigError: The proxy cannot be used.
        """
        parts = urlsplit(url)
        proxy = self.https_proxy if parts.scheme == "https" else self.http_proxy
        host = (parts.hostname or "").rstrip(".")
        if proxy is None or is_this_machine(host):
            return None
        if _is_listed(host, parts.port or DEFAULT_PORTS.get(parts.scheme, 0), self.no_proxy):
            return None
        assert proxy.address  # raises for one that cannot be used
        return proxy

    def secrets(self) -> list[str]:
        """Return the passwords of its proxies, so that they are kept out of everything that is written."""
        found: list[str] = []
        for proxy in (self.http_proxy, self.https_proxy):
            if proxy and (login := _login_of(proxy)):
                raw = urlsplit(proxy.url.get_secret_value()).netloc.rpartition("@")[0].partition(":")[2]
                found += [login[1], raw]
        return list(dict.fromkeys(text for text in found if text))


def network_of(environment: Mapping[str, str]) -> Network:
    """Read the variables that curl, Python and most programs share; a value is not judged before it is used."""
    every = _proxy(environment, ALL_PROXY)
    # In a CGI script, HTTP_PROXY is a header that a stranger sent (httpoxy).
    of_http = HTTP_PROXY[:1] if "REQUEST_METHOD" in environment else HTTP_PROXY
    return Network(
        http_proxy=_first(environment, of_http, every),
        https_proxy=_first(environment, HTTPS_PROXY, every),
        no_proxy=tuple(entry.lower() for entry in re.split(r"[\s,]+", _value(environment, NO_PROXY)[0]) if entry),
        ca_file=environment.get(CA_FILE, "").strip(),
        ca_dir=environment.get(CA_DIR, "").strip(),
    )


def is_this_machine(host: str) -> bool:
    """Return whether a host is this machine by its name or address."""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = ip_address_of(name)
    return address is not None and address.is_loopback


def _first(environment: Mapping[str, str], names: Iterable[str], otherwise: Proxy | None) -> Proxy | None:
    """Return the proxy of one kind of address; a variable that is set and empty asks for none."""
    names = tuple(names)
    return _proxy(environment, names) if any(name in environment for name in names) else otherwise


def _proxy(environment: Mapping[str, str], names: Iterable[str]) -> Proxy | None:
    value, variable = _value(environment, names)
    if not value:
        return None
    return Proxy(url=SecretStr(value if "://" in value else f"http://{value}"), variable=variable)


def _value(environment: Mapping[str, str], names: Iterable[str]) -> tuple[str, str]:
    """Return the value of the first name that is set, and that name."""
    return next(((environment[name].strip(), name) for name in names if name in environment), ("", ""))


def _login_of(proxy: Proxy) -> tuple[str, str] | None:
    try:
        return proxy.login
    except ValueError:
        return None


def _is_listed(host: str, port: int, entries: Iterable[str]) -> bool:
    """Return whether NO_PROXY names a host: as itself, a domain above it, its address, or a network around that."""
    host, address = host.lower(), ip_address_of(host)
    for entry in entries:
        if entry == "*" or (address is not None and _is_within(address, entry)):
            return True
        match = ENTRY.match(entry)
        if match is None or (match["port"] and int(match["port"]) != port):
            continue
        name = match["host"].strip("[]").removeprefix("*").removeprefix(".").rstrip(".")
        if name and (host == name or (address is None and host.endswith(f".{name}"))):
            return True
    return False


def ip_address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that a host is; None for a name, and for any spelling but the canonical one."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_within(address: ipaddress.IPv4Address | ipaddress.IPv6Address, entry: str) -> bool:
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


SECRET_PARAMETERS = re.compile(
    r"(.*[-_.])?(api-?_?key|key|token|secret|signature|sig|password|passwd|pwd|auth|authorization|credential|session)",
    re.IGNORECASE,
)
"""Names of parameters of a query whose values open something."""
DATABASE_PASSWORD = re.compile(r"://[^:/@]*:(.*)@", re.DOTALL)
"""Up to the last `@`: the library of the database takes passwords that are not written as in a URL."""
LEFT_OUT = "***"
"""In an address that is written down or shown, in the place of a secret."""


def secrets_in(url: str) -> list[str]:
    """Return what opens something in an address: a user's name and password, and values of parameters named so."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    login, is_there, _ = parts.netloc.rpartition("@")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    return [login] * bool(is_there) + [value for name, value in pairs if SECRET_PARAMETERS.fullmatch(name)]


def secrets_in_database(url: str) -> list[str]:
    """Return what may not be shown of a database's address: nothing of one with the name of a user only."""
    password = match[1] if (match := DATABASE_PASSWORD.search(url)) else ""
    parameters = (value for name, value in parse_qsl(url.partition("?")[2]) if "pass" in name.lower())
    found = {password, unquote(password), *parameters} - {""}
    return [url, *found] if found else []


def without_secrets(url: str) -> str:
    """Return an address as it may be written down and shown; any other text as it is."""
    if not secrets_in(url):
        return url
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    query = "&".join(
        f"{name}={LEFT_OUT}" if SECRET_PARAMETERS.fullmatch(unquote_plus(name)) else pair
        for pair in parts.query.split("&")
        for name in [pair.partition("=")[0]]
    )
    netloc = f"{LEFT_OUT}@{host}" if "@" in parts.netloc else host
    return urlunsplit((parts.scheme, netloc, parts.path, query, parts.fragment))
