"""Which model each role asks: what the user named, else the best that is at hand."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic import SecretStr

from explorer.llm.hosts import is_official
from explorer.llm.model_list import LOCAL_URLS, find_local_server, list_models
from explorer.llm.options import ModelSetup, check_url
from explorer.llm.vendors import ConfiguredVendor
from explorer.schema.errors import ConfigError, CredentialsError
from explorer.schema.model_options import Tier

ANTHROPIC = "anthropic"
OPENAI = "openai"
OPENAI_RESPONSES = "openai-responses"
OPENAI_CHAT = "openai-chat"
OFFLINE = "offline"
AUTO = "auto"

TIER_DEFAULTS: Mapping[str, Mapping[Tier, str]] = {
    ANTHROPIC: {
        Tier.STRONG: "claude-opus-5-5",
        Tier.BALANCED: "claude-sonnet-5-5",
        Tier.FAST: "claude-haiku-5-5",
    },
    OPENAI: {
        Tier.STRONG: "gpt-6.1-sol",
        Tier.BALANCED: "gpt-6.1-terra",
        Tier.FAST: "gpt-6-luna",
    },
}
"""The model of each provider for each tier; a test checks that the SDKs know them."""

OPENAI_APIS = frozenset({OPENAI, OPENAI_RESPONSES, OPENAI_CHAT})
"""Ways to ask a server of OpenAI's kind: through the API that fits the server, or through the named one."""

KEY_SETTINGS: Mapping[str, str] = {ANTHROPIC: "ANTHROPIC_API_KEY", OPENAI: "OPENAI_API_KEY"}
MODEL_SETTINGS: Mapping[str, str] = {ANTHROPIC: "ANTHROPIC_MODEL", OPENAI: "OPENAI_MODEL"}


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A model of a provider."""

    provider: str
    """`anthropic`, `openai` (and every compatible server), `openai-responses` or `openai-chat` where the API is chosen
    by the user, or `offline`."""
    name: str
    """As the provider knows it."""

    @property
    def vendor(self) -> str:
        """Whose kind of server is asked, whichever of its APIs: `anthropic`, `openai` or `offline`."""
        return OPENAI if self.provider in OPENAI_APIS else self.provider

    def __str__(self) -> str:
        """Write it so that `parse_model` reads it back."""
        return OFFLINE if self.provider == OFFLINE else f"{self.provider}:{self.name}"


@dataclass(frozen=True, slots=True)
class Choice:
    """The models of a run."""

    models: Mapping[str, ModelRef]
    """By role."""
    why: str
    """What decided, in words for people."""
    openai_url: str = ""
    """The local server that was found; empty: the settings' own URL holds."""


@dataclass(frozen=True, slots=True)
class _Default:
    """What roles without a model of their own get."""

    model_of: Callable[[Tier], ModelRef]
    why: str
    openai_url: str = ""


def parse_model(text: str, vendors: Collection[str] = ()) -> ModelRef:
    """Read `offline`, `anthropic:NAME`, `openai:NAME`, or a bare name (`claude-...` is Anthropic's).

    `openai-responses:NAME` and `openai-chat:NAME` say, too, which of OpenAI's two APIs the server is asked through.

    Names may hold colons themselves (`gpt-oss:20b`), so only known prefixes are prefixes: those, and `vendors`.

    Raises:
        ConfigError: No name is left.
    """
    provider, colon, name = text.strip().partition(":")
    if provider == OFFLINE:
        return ModelRef(OFFLINE, OFFLINE)
    if not colon or provider not in {ANTHROPIC, *OPENAI_APIS, *vendors}:
        name = text.strip()
        provider = ANTHROPIC if name.startswith("claude-") else OPENAI
    if not name.strip():
        raise ConfigError(f"the model {text!r} has no name", hint="for example --model anthropic:claude-opus-5-5")
    return ModelRef(provider, name.strip())


async def choose(setup: ModelSetup, tiers: Mapping[str, Tier], local_urls: Sequence[str] = LOCAL_URLS) -> Choice:
    """Choose a model for every role: the role's own, else the one named, else the tier's default.

    Args:
        setup: Models, keys and URLs as the user set them.
        tiers: Every role with how strong a model it asks for.
        local_urls: Where to look for a server on this machine when nothing else is set.

    Raises:
        CredentialsError: A named model needs a key that is not there.
        ModelError: The server the user named cannot be asked for its models.
    """
    named = {role: parse_model(text, setup.vendors) for role, text in setup.role_models.items() if _is_named(text)}
    if tiers.keys() <= named.keys():
        default = _Default(lambda _tier: ModelRef(OFFLINE, OFFLINE), "every role has a model of its own")
    elif _is_named(setup.model):
        model = parse_model(setup.model, setup.vendors)
        default = _Default(lambda _tier: model, f"{model} was asked for")
    else:
        default = await _automatic(setup, local_urls)
    models = {role: named.get(role) or default.model_of(tier) for role, tier in tiers.items()}
    lacking = _without_access(setup, models.values(), default.openai_url)
    url = await _local_url(lacking, local_urls, setup.vendors) if lacking else default.openai_url
    return Choice(models, default.why, url)


def _is_named(text: str) -> bool:
    return text.strip() not in {"", AUTO}


async def _automatic(setup: ModelSetup, local_urls: Sequence[str]) -> _Default:
    """Take the first that is at hand: Anthropic's key, OpenAI's key or URL, a local server, offline."""
    is_elsewhere = bool(setup.openai_url) and not is_official(setup.openai_url)
    has_openai = is_elsewhere or _is_set(setup.openai_key)
    names_openai = bool(setup.openai_model) and not setup.anthropic_model and has_openai
    if (_is_set(setup.anthropic_key) or setup.anthropic_url) and not names_openai:
        given = "ANTHROPIC_API_KEY" if _is_set(setup.anthropic_key) else "ANTHROPIC_BASE_URL"
        return _named(ANTHROPIC, setup.anthropic_model, given) or _by_tier(ANTHROPIC, f"{given} is set")
    if is_elsewhere:
        check_url(setup.openai_url, "OPENAI_BASE_URL")
        named = _named(OPENAI, setup.openai_model, "OPENAI_BASE_URL")
        return named or _first_of(await list_models(setup.openai_url, setup.openai_key, network=setup.network))
    if has_openai:
        named = _named(OPENAI, setup.openai_model, "OPENAI_API_KEY")
        return named or _by_tier(OPENAI, "OPENAI_API_KEY is set")
    return await _local(setup, local_urls)


async def _local(setup: ModelSetup, local_urls: Sequence[str]) -> _Default:
    """Take a server on this machine, with the model that OPENAI_MODEL names where it has that; else offline."""
    server = await find_local_server(local_urls)
    if server is None:
        return _always(ModelRef(OFFLINE, OFFLINE), _nothing_found(local_urls))
    name = setup.openai_model if setup.openai_model in server.models else server.models[0]
    found = _always(ModelRef(OPENAI, name), f"a server answers at {server.url}")
    return _Default(found.model_of, found.why, server.url)


def _first_of(names: Sequence[str]) -> _Default:
    return _always(ModelRef(OPENAI, names[0]), "the first model of OPENAI_BASE_URL")


def _named(provider: str, name: str, given: str) -> _Default | None:
    """The model that the vendor's own variable names for all roles; None when it names none."""
    if not name:
        return None
    return _always(ModelRef(provider, name), f"{given} is set, and {MODEL_SETTINGS[provider]} names the model")


def _nothing_found(local_urls: Sequence[str]) -> str:
    """What was looked for in vain, by name."""
    ports = ", ".join(str(urlsplit(url).port) for url in local_urls)
    settings = ", ".join((*KEY_SETTINGS.values(), "ANTHROPIC_BASE_URL"))
    return f"no {settings} or OPENAI_BASE_URL is set, and no local server answers at port {ports}"


def _by_tier(provider: str, why: str) -> _Default:
    return _Default(lambda tier: ModelRef(provider, TIER_DEFAULTS[provider][tier]), why)


def _always(model: ModelRef, why: str) -> _Default:
    return _Default(lambda _tier: model, why)


def _without_access(setup: ModelSetup, models: Iterable[ModelRef], local_url: str) -> list[ModelRef]:
    """Return the models whose provider cannot be asked: no key, and no other server that may do without."""
    openai_url = local_url or setup.openai_url
    has_access = {
        ANTHROPIC: _is_set(setup.anthropic_key) or bool(setup.anthropic_url),
        OPENAI: _is_set(setup.openai_key) or (bool(openai_url) and not is_official(openai_url)),
        OFFLINE: True,
        **{name: vendor.is_ready for name, vendor in setup.vendors.items()},
    }
    return [model for model in models if not has_access[model.vendor]]


async def _local_url(
    lacking: Sequence[ModelRef], local_urls: Sequence[str], vendors: Mapping[str, ConfiguredVendor]
) -> str:
    """Return the server on this machine that has the models: `--model llama3.2` just works beside Ollama."""
    if all(model.vendor == OPENAI for model in lacking):
        server = await find_local_server(local_urls)
        if server is not None and all(model.name in server.models for model in lacking):
            return server.url
    raise _no_key(lacking[0], vendors)


def _no_key(model: ModelRef, vendors: Mapping[str, ConfiguredVendor]) -> CredentialsError:
    own = vendors.get(model.vendor)
    needed = own.vendor.needed if own else None
    setting = needed.variable if needed else KEY_SETTINGS[model.vendor]
    message = f"{model} needs a key; {setting} in the environment and in .env: not found"
    return CredentialsError(message, hint=f'set {setting}, or go without a key: explorer --model offline "..."')


def _is_set(secret: SecretStr) -> bool:
    return bool(secret.get_secret_value().strip())
