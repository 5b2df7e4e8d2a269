"""Chooses the model of each role: the one that the user named, else the best one available."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from explorer.llm.vendors import ConfiguredVendor, Vendor, with_prefix
from explorer.schema.errors import ConfigError, CredentialsError, ModelError
from explorer.schema.model_options import Price, Tier
from explorer.schema.network import Network

OFFLINE = "offline"
OWN = "own"
"""What is recorded as the model where a client of the embedding program answers."""
AUTO = "auto"
PROBE_S = 0.5
"""Seconds to wait for a server on this machine, which answers at once or not at all."""
LIST_S = 15.0
"""Seconds to wait for the list of models of a server that the user named."""
DIRECT = Network()
"""The network between programs of this machine."""


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A model of a provider."""

    provider: str
    """A vendor's prefix, which may select one of its APIs, or `offline`."""
    name: str
    """The provider's name for it."""

    def __str__(self) -> str:
        """Return the text that `parse_model` reads."""
        return OFFLINE if self.provider == OFFLINE else f"{self.provider}:{self.name}"


@dataclass(frozen=True, slots=True)
class ModelSetup:
    """The user's choice of models, and the vendors."""

    model: str = AUTO
    """The model of all roles, as `parse_model` reads it; `auto`: the best one available."""
    role_models: Mapping[str, str] = field(default_factory=dict[str, str])
    """The model of each role here; it goes before `model`."""
    vendors: Mapping[str, ConfiguredVendor] = field(default_factory=dict[str, ConfiguredVendor])
    """The vendors by name, in the order of the automatic choice."""
    price: Price | None = None
    """The price of models without a known one."""
    network: Network = field(default_factory=Network)
    """The proxies and authorities of the user's network."""
    max_parallel_requests: int = 9
    """The number of parallel requests to one model."""

    @property
    def known(self) -> list[Vendor[Any]]:
        """The vendors without their settings."""
        return [one.vendor for one in self.vendors.values()]

    def vendor_of(self, provider: str) -> ConfiguredVendor | None:
        """Return the vendor of a prefix; None without one."""
        found = with_prefix(self.known, provider)
        return self.vendors[found.name] if found else None

    def contact_of(self, provider: str) -> str:
        """Return the name that all prefixes of a vendor share: its server is the same."""
        found = with_prefix(self.known, provider)
        return found.name if found else provider


@dataclass(frozen=True, slots=True)
class Choice:
    """The models of a run."""

    models: Mapping[str, ModelRef]
    """The model of each role."""
    why: str
    """The reason of the choice, for people."""
    found: Mapping[str, str] = field(default_factory=dict[str, str])
    """The address of a server that was found on this machine, by vendor; empty: those of the settings."""
    variable: str = ""
    """The variable that decided; empty: none did."""


@dataclass(frozen=True, slots=True)
class _Default:
    """The model of roles without one of their own."""

    model_of: Callable[[Tier], ModelRef]
    why: str
    found: Mapping[str, str] = field(default_factory=dict[str, str])
    variable: str = ""


class LocalServer(NamedTuple):
    """A server that answered, with its models."""

    vendor: ConfiguredVendor
    url: str
    models: Sequence[str]


def parse_model(text: str, vendors: Collection[Vendor[Any]]) -> ModelRef:
    """Read `offline`, `PREFIX:NAME` with the prefix of a vendor, or a bare name, which a vendor may claim.

    Names may contain colons (`gpt-oss:20b`), so only the vendors' prefixes are prefixes.

    Raises:
        ConfigError: The name is empty, or no vendor claims a bare one.
    """
    provider, colon, name = text.strip().partition(":")
    if provider == OFFLINE:
        return ModelRef(OFFLINE, OFFLINE)
    if not colon or with_prefix(vendors, provider) is None:
        name = text.strip()
        provider = _claimed_by(name, vendors)
    if not name.strip():
        raise ConfigError(f"the model {text!r} has no name", hint="write it behind the prefix: --model VENDOR:NAME")
    return ModelRef(provider, name.strip())


def _claimed_by(name: str, vendors: Collection[Vendor[Any]]) -> str:
    """Return the vendor that claims a bare name by its beginning."""
    claims = [(len(start), one.name) for one in vendors for start in one.bare_names if name.startswith(start)]
    if not claims:
        raise ConfigError(f"the model {name!r} has no vendor", hint="write it with a prefix: --model VENDOR:NAME")
    return max(claims, key=lambda claim: claim[0])[1]


async def choose(setup: ModelSetup, tiers: Mapping[str, Tier], local_urls: Sequence[str] | None = None) -> Choice:
    """Choose a model for every role: the role's own, else the one for all roles, else the tier's default.

    Args:
        setup: The user's models and vendors.
        tiers: The tier of every role.
        local_urls: The addresses of servers on this machine to try when no vendor is ready; None: the default ones.

    Raises:
        CredentialsError: A named model needs a key that is not set.
        ModelError: The server that the user named does not list its models.
    """
    named = {role: parse_model(text, setup.known) for role, text in setup.role_models.items() if _is_named(text)}
    if tiers.keys() <= named.keys():
        default = _always(ModelRef(OFFLINE, OFFLINE), "every role has a model of its own")
    elif _is_named(setup.model):
        model = parse_model(setup.model, setup.known)
        default = _always(model, f"{model} was asked for")
    else:
        default = await _automatic(setup, local_urls)
    models = {role: named.get(role) or default.model_of(tier) for role, tier in tiers.items()}
    lacking = _without_access(setup, models.values(), default.found)
    found = await _local_for(lacking, setup, local_urls) if lacking else default.found
    return Choice(models, default.why, found, default.variable)


def _is_named(text: str) -> bool:
    return text.strip() not in {"", AUTO}


async def _automatic(setup: ModelSetup, local_urls: Sequence[str] | None) -> _Default:
    """Choose the first vendor that is ready, preferably one with a model in its settings; else a local server."""
    ready = [one for one in setup.vendors.values() if one.is_automatic and one.is_ready]
    if not ready:
        return await _local(setup, local_urls)
    chosen = next((one for one in ready if one.model), ready[0])
    vendor, models = chosen.vendor, chosen.server.models
    given = vendor.variable(vendor.needs if chosen.has_needed and models else vendor.url)
    if chosen.model:
        why = f"{given} is set, and {vendor.variable(vendor.model)} names the model"
        return _always(ModelRef(vendor.name, chosen.model), why, given)
    if models:
        return _Default(lambda tier: ModelRef(vendor.name, models[tier]), f"{given} is set", variable=given)
    assert vendor.list_models is not None
    names = await vendor.list_models(chosen.settings, setup.network, LIST_S)
    return _always(ModelRef(vendor.name, names[0]), f"the first model of {given}", given)


async def _local(setup: ModelSetup, local_urls: Sequence[str] | None) -> _Default:
    """Choose a server on this machine, with the model in its vendor's settings if it has that; else offline."""
    server = await _find_local_server(setup.vendors.values(), local_urls)
    if server is None:
        return _always(ModelRef(OFFLINE, OFFLINE), _nothing_found(setup, local_urls))
    vendor = server.vendor
    name = vendor.model if vendor.model in server.models else server.models[0]
    ref = ModelRef(vendor.vendor.name, name)
    return _Default(lambda _tier: ref, f"a server answers at {server.url}", {vendor.vendor.name: server.url})


async def _find_local_server(
    vendors: Iterable[ConfiguredVendor], local_urls: Sequence[str] | None
) -> LocalServer | None:
    """Return the first server on this machine that answers with models; None without one."""
    for one in vendors:
        for url in _urls(one, local_urls):
            if models := await models_at(one.vendor, url, PROBE_S):
                return LocalServer(one, url, models)
    return None


async def models_at(vendor: Vendor[Any], url: str, timeout_s: float) -> Sequence[str]:
    """Return the models of a server on this machine, which gets no key; empty when it does not answer in time."""
    if vendor.list_models is None:
        return ()
    try:
        return await vendor.list_models(vendor.settings.model_validate({vendor.url: url}), DIRECT, timeout_s)
    except ModelError:
        return ()


def _urls(one: ConfiguredVendor, local_urls: Sequence[str] | None) -> Sequence[str]:
    own = tuple(one.vendor.local_servers.values())
    return own if local_urls is None or not own else local_urls


def _nothing_found(setup: ModelSetup, local_urls: Sequence[str] | None) -> str:
    """Return the reason that no vendor and no local server was found."""
    vendors = [one for one in setup.vendors.values() if one.is_automatic]
    ports = ", ".join(str(urlsplit(url).port) for one in vendors for url in _urls(one, local_urls))
    fields = ([(one.vendor, one.vendor.needs) for one in vendors], [(one.vendor, one.vendor.url) for one in vendors])
    *settings, last = [name for pairs in fields for vendor, of in pairs if (name := vendor.variable(of))]
    return f"no {', '.join(settings)} or {last} is set, and no local server answers at port {ports}"


def _always(model: ModelRef, why: str, variable: str = "") -> _Default:
    return _Default(lambda _tier: model, why, variable=variable)


def _without_access(setup: ModelSetup, models: Iterable[ModelRef], found: Mapping[str, str]) -> list[ModelRef]:
    """Return the models whose vendor cannot be used: it has no key, and no server that works without."""

    def has_access(model: ModelRef) -> bool:
        one = setup.vendor_of(model.provider)
        return one is None or one.vendor.name in found or one.is_ready

    return [model for model in models if not has_access(model)]


async def _local_for(
    lacking: Sequence[ModelRef], setup: ModelSetup, local_urls: Sequence[str] | None
) -> Mapping[str, str]:
    """Return the server on this machine that has the models, so that `--model llama3.2` works with Ollama."""
    vendors = {setup.contact_of(model.provider) for model in lacking}
    if len(vendors) == 1:
        server = await _find_local_server([setup.vendors[name] for name in vendors], local_urls)
        if server is not None and all(model.name in server.models for model in lacking):
            return {server.vendor.vendor.name: server.url}
    raise _no_key(lacking[0], setup)


def _no_key(model: ModelRef, setup: ModelSetup) -> CredentialsError:
    one = setup.vendor_of(model.provider)
    assert one is not None
    setting = one.vendor.variable(one.vendor.needs)
    message = f"{model} needs a key; {setting} in the environment and in .env: not found"
    return CredentialsError(message, hint=f'set {setting}, or go without a key: explorer --model offline "..."')
