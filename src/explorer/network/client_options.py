"""The options of HTTP clients: the user's proxies and authorities from the settings, not from the environment."""

import ssl
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict
from urllib.parse import urlsplit

import httpx2

from explorer.schema.errors import ConfigError
from explorer.schema.network import CA_DIR, CA_FILE, Network, Proxy, is_this_machine

UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
"""The part of a TLS error's text that shows that a certificate authority is missing."""
PROXY_LOGIN_REQUIRED = 407


class ClientWays(TypedDict):
    """Arguments of any httpx2 client."""

    verify: ssl.SSLContext
    proxy: httpx2.Proxy | None
    trust_env: bool


def client_ways(network: Network, url: str) -> ClientWays:
    """Return the options of a client for one server: its proxy, and the authorities it trusts.

    Raises:
        ConfigError: A proxy or a file of certificates cannot be used.
    """
    # Loading the certificates takes longer than anything else here, and a plain server on this machine needs none.
    # An empty context trusts no authority: if the server redirects to TLS, that connection is refused.
    parts = urlsplit(url)
    is_plain = parts.scheme == "http" and is_this_machine(parts.hostname or "")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else ssl_context(network)
    proxy = network.proxy_for(url)
    return {"verify": context, "proxy": httpx_proxy(proxy, context) if proxy else None, "trust_env": False}


def httpx_proxy(proxy: Proxy, context: ssl.SSLContext) -> httpx2.Proxy:
    """Return a proxy as httpx2 needs it."""
    is_tls = proxy.address.startswith("https:")
    return httpx2.Proxy(proxy.address, auth=proxy.login, ssl_context=context if is_tls else None)


def ssl_context(network: Network) -> ssl.SSLContext:
    """Return a context that trusts the user's authorities if they are set, else the system's.

    Raises:
        ConfigError: The file or the folder cannot be used.
    """
    if not network.ca_file and not network.ca_dir:
        return httpx2.create_ssl_context(trust_env=False)
    for variable, path, is_there in (
        (CA_FILE, network.ca_file, Path.is_file),
        (CA_DIR, network.ca_dir, Path.is_dir),
    ):
        if path and not is_there(Path(path)):
            raise _unusable(variable, path, "there is no such " + ("file" if variable == CA_FILE else "folder"))
    try:
        return ssl.create_default_context(cafile=network.ca_file or None, capath=network.ca_dir or None)
    except (ssl.SSLError, OSError) as error:
        raise _unusable(CA_FILE, network.ca_file, "it contains no certificates in PEM form") from error


@contextmanager
def authorities_file(network: Network) -> Generator[str | None]:
    """Provide the user's authorities as one file, for libraries that accept nothing else; None without any.

    Raises:
        ConfigError: The file or the folder cannot be used.
    """
    if not network.ca_dir:
        yield network.ca_file or None
        return
    try:
        paths = [Path(network.ca_file)] if network.ca_file else []
        paths += [path for path in sorted(Path(network.ca_dir).iterdir()) if path.is_file()]
        certificates = b"\n".join(path.read_bytes() for path in dict.fromkeys(path.resolve() for path in paths))
    except OSError as error:
        raise _unusable(CA_DIR, network.ca_dir, error.strerror or "it cannot be read") from error
    with tempfile.NamedTemporaryFile(prefix="explorer-authorities-", suffix=".pem") as file:
        file.write(certificates)
        file.flush()
        yield file.name


def check_network(network: Network) -> None:
    """Check, before a run starts, that the user's network settings can be used.

    Raises:
        ConfigError: One cannot be used; the message has its variable.
    """
    for proxy in (network.http_proxy, network.https_proxy):
        if proxy is not None:
            assert proxy.address
    if network.ca_file or network.ca_dir:
        ssl_context(network)


def advice(network: Network, why: str) -> str:
    """Return how to fix a failed connection, by the text of its error; empty when that does not show it."""
    if UNTRUSTED not in why:
        return ""
    if network.ca_file or network.ca_dir:
        where = " and ".join(
            f"{name}={path}" for name, path in ((CA_FILE, network.ca_file), (CA_DIR, network.ca_dir)) if path
        )
        return f"add the authority that signed it to {where}"
    return f"set {CA_FILE} to a file with the authority of your network, if that signs certificates itself"


def login_problem(proxy: Proxy) -> str:
    """Return what a proxy's status 407 means: a password is missing or wrong."""
    if proxy.login is None:
        return f"{proxy} needs a user name and a password: set {proxy.variable}=http://USER:PASSWORD@HOST:PORT"
    return f"{proxy} does not accept the user name and password in {proxy.variable}"


def _unusable(variable: str, path: str, why: str) -> ConfigError:
    return ConfigError(f"{variable} cannot be used: {why}: {path}", hint=f"correct {variable}, or unset it")
