"""The part of `doctor` on what models can do: their profiles, made by `--probe` and removed by `--forget`."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from urllib.parse import urlsplit

from explorer.cli.commands.probes import CheckResult
from explorer.llm.clients import Clients
from explorer.llm.models import OFFLINE, ModelRef
from explorer.llm.profiles import ModelProbe, ModelProfile, forget_profiles, store_profile, stored_profiles
from explorer.network.client import GuardedClient, HttpRequest
from explorer.network.exchange import ExchangeError
from explorer.network.guard import Guard
from explorer.observe.formatting import counted
from explorer.run.resources import choose_models, load_roles, with_servers
from explorer.run.settings_parts import model_setup, vendor_of
from explorer.schema.errors import ExplorerError, StorageError
from explorer.schema.settings import Settings
from explorer.schema.version import __version__

PROBE_S = 5.0
"""Seconds for a server to say how long its window is."""
NAME = "model"
NOT_MEASURED = "measure what it can do: explorer doctor --probe"


def check_profiles(settings: Settings) -> list[CheckResult]:
    """Show what was measured of models."""
    profiles = stored_profiles(settings.state_dir)
    return [_finding(one) for one in profiles] or [CheckResult(NAME, "ok", f"no profile; {NOT_MEASURED}")]


def forget_all(settings: Settings) -> CheckResult:
    """Remove all profiles.

    Raises:
        StorageError: The disk refused.
    """
    try:
        count = forget_profiles(settings.state_dir)
    except OSError as error:
        raise StorageError(f"the profiles in {settings.state_dir} cannot be removed: {error.strerror}") from error
    return CheckResult(NAME, "ok", f"{counted(count, 'profile')} removed")


def probe_models(settings: Settings) -> list[CheckResult]:
    """Measure each model that roles would use now, and store its profile.

    Raises:
        ConfigError: A model or an address cannot be used.
        ModelError: The server that the user named does not list its models.
        StorageError: The disk refused.
    """
    return asyncio.run(_probe_all(settings))


async def _probe_all(settings: Settings) -> list[CheckResult]:
    choice = await choose_models(settings, load_roles(settings))
    settings = with_servers(settings, choice.found)
    refs = _distinct(choice.models.values())
    async with Clients(model_setup(settings)) as clients:
        await clients.open(refs)
        found = [await _probe(ref, settings, clients) for ref in refs]
    return found or [CheckResult(NAME, "ok", f"nothing to measure: {choice.why}")]


async def _probe(ref: ModelRef, settings: Settings, clients: Clients) -> CheckResult:
    vendor = vendor_of(ref, settings)
    url = vendor.server.url if vendor else ""
    client = GuardedClient(
        Guard([urlsplit(url).hostname or ""]), f"explorer/{__version__}", settings.network, seconds=PROBE_S
    )

    async def fetch(address: str) -> str:
        try:
            answer = await client.send(HttpRequest("GET", address))
        except (ExchangeError, ExplorerError, ValueError):
            return ""
        return answer.body.decode("utf-8", "replace")

    try:
        profile = await ModelProbe(clients.client_for(ref), url, ref.name).profile(fetch, datetime.now(UTC))
    except ExplorerError as error:
        return CheckResult(NAME, "fail", f"{ref}: {error.message}", error.hint)
    finally:
        await client.aclose()
    if settings.state_dir is None:
        return CheckResult(NAME, "warn", f"{ref}: {profile.words}", "not kept: set HOME to a folder of yours")
    try:
        store_profile(settings.state_dir, profile)
    except OSError as error:
        raise StorageError(f"the profile cannot be stored in {settings.state_dir}: {error.strerror}") from error
    return _finding(profile)


def _distinct(refs: Iterable[ModelRef]) -> list[ModelRef]:
    return [ref for ref in dict.fromkeys(refs) if ref.provider != OFFLINE]


def _finding(profile: ModelProfile) -> CheckResult:
    mode = f"; lean mode, because of {profile.why_lean}" if profile.why_lean else "; the whole team"
    return CheckResult(NAME, "ok", f"{profile.model} at {profile.url}: {profile.words}{mode}")
