"""Which services answer: asked all at once, each for at most a few seconds."""

import asyncio
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Any, Literal
from urllib.parse import urlsplit

from explorer.cli.settings.configuration import DEFAULT, Configuration
from explorer.llm.models import models_at
from explorer.llm.vendors import Vendor
from explorer.network.client import GuardedClient
from explorer.network.exchange import ExchangeError, HttpRequest
from explorer.network.guard import Guard, NoSuchSiteError
from explorer.observe.formatting import counted
from explorer.run.extensions import installed_extensions
from explorer.run.settings_parts import model_setup, search_setup
from explorer.schema.errors import ConfigError, ExplorerError
from explorer.schema.network import Network
from explorer.schema.setting import extension_place
from explorer.schema.settings import Settings
from explorer.schema.version import __version__
from explorer.sources.search.selection import plan_search

PROBE_S = 3.0
LOCAL_PROBE_S = 1.0

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class CheckResult:
    """One checked thing."""

    name: str
    level: Level
    words: str
    fix: str = ""
    """What fixes it; empty when nothing is wrong."""


@dataclass(frozen=True)
class Probe:
    """A service to ask."""

    name: str
    url: str
    setting: str
    """Name of the setting whose origin says whether the user chose the address."""


class Asker(Thread):
    """Asks in a thread that nobody waits for longer than agreed.

    Name resolution can take half a minute and cannot be cancelled; an event loop would wait for it at its end.
    """

    def __init__(self, ask: Callable[[], str]) -> None:
        super().__init__(daemon=True)
        self._ask = ask
        self.answer: str | None = None
        """None while nobody answered."""
        self.start()

    def run(self) -> None:
        """Ask."""
        self.answer = self._ask()


def probe_services(configuration: Configuration) -> list[CheckResult]:
    """Ask every service the settings lead to, and the usual local model servers, all at once."""
    probes = _probes(configuration)
    asked = [Asker(partial(problem_at, configuration.settings.network, probe.url)) for probe in probes]
    vendors = installed_extensions().vendors.values()
    local = [Asker(partial(_models_at, vendor, name)) for vendor in vendors for name in sorted(vendor.local_servers)]
    deadline = time.monotonic() + PROBE_S
    for asker in (*asked, *local):
        asker.join(max(0.0, deadline - time.monotonic()))
    findings = [_finding(configuration, probe, asker.answer) for probe, asker in zip(probes, asked, strict=True)]
    answering = [asker.answer for asker in local if asker.answer]
    return [*findings, CheckResult("local models", "ok", ", ".join(answering) or "no local server answers")]


def _probes(configuration: Configuration) -> list[Probe]:
    probes = [*_site_probes(configuration.settings), *_search_probes(configuration.settings)]
    if reader := configuration.settings.reader_address:
        probes.append(Probe("reader", reader, "services.reader_url"))
    return [*probes, *_model_probes(configuration.settings)]


def _model_probes(settings: Settings) -> list[Probe]:
    """Return the servers of models that could be asked."""
    ready = [one for one in model_setup(settings).vendors.values() if one.is_ready and one.server.url]
    return [
        Probe(one.vendor.name, one.server.url, extension_place(one.vendor.name, one.vendor.url, is_secret=False))
        for one in ready
    ]


def _site_probes(settings: Settings) -> list[Probe]:
    """Return the services that sites are read through."""
    return [
        Probe(probe.name, probe.url, extension_place(site.name, probe.field, is_secret=False))
        for site in installed_extensions().sites
        for probe in site.probes(settings.extension(site.name, site.settings))
    ]


def _search_probes(settings: Settings) -> list[Probe]:
    """Return the search engines that would be asked, the first under the name of the whole."""
    try:
        asked = plan_search(search_setup(settings)).asked
    except ConfigError:  # the check of the settings reports it
        return []
    named = [(one.name if number else "web search", *one.address) for number, one in enumerate(asked)]
    return [Probe(name, url, setting) for name, url, setting in named if url]


def problem_at(network: Network, url: str) -> str:
    """Return why no server answers there; empty when one does: any status counts, a refusal too."""
    try:
        asyncio.run(_ask(network, url))
    except NoSuchSiteError:
        why = f"the host name {urlsplit(url).hostname} cannot be resolved"
    except ExchangeError as error:
        if error.is_proxy:
            return str(error)
        why = str(error) or error.kind
    except ExplorerError as error:  # of the guard, or of the user's proxies and certificates
        why = error.message
    except ValueError as error:
        why = str(error)
    else:
        return ""
    return "; ".join(part for part in (why, _way(network, url)) if part)


async def _ask(network: Network, url: str) -> None:
    """Send one request to a server that the user chose, which may be at a private address."""
    guard = Guard([urlsplit(url).hostname or ""], resolve=_resolve)
    client = GuardedClient(guard, f"explorer/{__version__}", network, seconds=PROBE_S)
    try:
        await client.send(HttpRequest("HEAD", url))
    finally:
        await client.aclose()


async def _resolve(host: str, port: int) -> list[str]:
    """Look a name up in this very thread, which nobody waits for: the loop's own threads are waited for at its end."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[4][0]) for address in found]


def _way(network: Network, url: str) -> str:
    """Return what connections go through; empty when they are direct."""
    try:
        proxy = network.proxy_for(url)
    except ConfigError as error:
        return error.hint
    return f"asked through {proxy}" if proxy else ""


def _models_at(vendor: Vendor[Any], name: str) -> str:
    """Return a local server and how many models it has; empty when none answers there."""
    url = vendor.local_servers[name]
    models = asyncio.run(models_at(vendor, url, LOCAL_PROBE_S))
    return f"{name} at {url} ({counted(len(models), 'model')})" if models else ""


def _finding(configuration: Configuration, probe: Probe, problem: str | None) -> CheckResult:
    if problem == "":
        return CheckResult(probe.name, "ok", "answers")
    words = f"does not answer: {problem}" if problem else f"does not answer within {PROBE_S:.0f} s"
    origin = configuration.origin(probe.setting)
    # An address the user wrote is meant to work; a default may just be out of reach today.
    if origin == DEFAULT:
        return CheckResult(probe.name, "warn", words, "check the network; without one: explorer demo")
    return CheckResult(probe.name, "fail", words, f"check the address: {origin}")
