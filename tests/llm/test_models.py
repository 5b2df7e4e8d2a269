from collections.abc import Mapping
from typing import get_args

import pytest
from anthropic.types import Model
from openai.types.shared.chat_model import ChatModel
from pydantic import SecretStr

from explorer.llm.anthropic.vendor import TIER_MODELS as ANTHROPIC_MODELS
from explorer.llm.clients import Clients
from explorer.llm.models import OFFLINE, ModelRef, choose
from explorer.llm.models import parse_model as parse
from explorer.llm.openai.vendor import NAME as OPENAI
from explorer.llm.openai.vendor import TIER_MODELS as OPENAI_MODELS
from explorer.llm.vendors import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES
from explorer.run.extensions import installed_extensions
from explorer.run.settings_parts import model_setup
from explorer.run.team import with_servers
from explorer.schema.errors import ConfigError, CredentialsError, ModelError, ModelFault
from explorer.schema.messages import Request, StopKind, Turn, UserText
from explorer.schema.model_options import Tier
from explorer.schema.settings import Secrets, Services, Settings
from model_servers import AnthropicServer, OpenAIServer, Reply
from sources.loopback import closed_port

TIERS: Mapping[str, Tier] = {"orchestrator": Tier.STRONG, "searcher": Tier.FAST}
ANTHROPIC_KEY = Secrets(anthropic_key=SecretStr("a"))
OPENAI_KEY = Secrets(openai_key=SecretStr("o"))
BOTH_KEYS = Secrets(anthropic_key=SecretStr("a"), openai_key=SecretStr("o"))


def parse_model(text: str) -> ModelRef:
    """Read a model with the vendors that there are."""
    return parse(text, installed_extensions().vendors.values())


def nowhere() -> str:
    """Return the URL of a port on which nothing listens."""
    return f"http://127.0.0.1:{closed_port()}/v1"


@pytest.mark.parametrize(
    ("text", "provider", "name"),
    [
        ("claude-opus-5-5", ANTHROPIC, "claude-opus-5-5"),
        ("anthropic:claude-x", ANTHROPIC, "claude-x"),
        ("openai:claude-x", OPENAI, "claude-x"),
        ("gpt-6-luna", OPENAI, "gpt-6-luna"),
        ("gpt-oss:20b", OPENAI, "gpt-oss:20b"),
        ("openai:gpt-oss:20b", OPENAI, "gpt-oss:20b"),
        ("openai-responses:gpt-oss:20b", OPENAI_RESPONSES, "gpt-oss:20b"),
        ("openai-chat:gpt-6-luna", OPENAI_CHAT, "gpt-6-luna"),
        (" offline ", OFFLINE, OFFLINE),
    ],
)
def test_names_of_models(text: str, provider: str, name: str) -> None:
    """A name says its provider, by prefix or by its look, and is written so that it can be read back."""
    assert parse_model(text) == ModelRef(provider, name)
    assert parse_model(str(parse_model(text))) == ModelRef(provider, name)


@pytest.mark.parametrize("text", ["openai:", "anthropic: ", ""])
def test_a_model_without_a_name(text: str) -> None:
    """A prefix alone is no model."""
    with pytest.raises(ConfigError):
        parse_model(text)


def test_the_sdks_know_the_default_models() -> None:
    """Every tier's default is a model that the vendor's SDK names."""
    assert set(ANTHROPIC_MODELS.values()) <= set(get_args(get_args(Model)[0]))
    assert set(OPENAI_MODELS.values()) <= set(get_args(ChatModel))
    assert all(defaults.keys() == set(Tier) for defaults in (ANTHROPIC_MODELS, OPENAI_MODELS))


@pytest.mark.parametrize(
    ("settings", "models"),
    [
        (Settings(secrets=ANTHROPIC_KEY), ("anthropic:claude-opus-5-5", "anthropic:claude-haiku-5-5")),
        (Settings(secrets=OPENAI_KEY), ("openai:gpt-6.1-sol", "openai:gpt-6-luna")),
        (
            Settings(secrets=Secrets(anthropic_key=SecretStr("a"), openai_key=SecretStr("o"))),
            ("anthropic:claude-opus-5-5", "anthropic:claude-haiku-5-5"),
        ),
        (Settings(), ("offline", "offline")),
        (Settings(model="offline", secrets=ANTHROPIC_KEY), ("offline", "offline")),
        (Settings(model="claude-x", secrets=ANTHROPIC_KEY), ("anthropic:claude-x", "anthropic:claude-x")),
        (
            Settings(model="claude-x", role_models={"searcher": "gpt-6-luna"}, secrets=ANTHROPIC_KEY).model_copy(
                update={"secrets": Secrets(anthropic_key=SecretStr("a"), openai_key=SecretStr("o"))}
            ),
            ("anthropic:claude-x", "openai:gpt-6-luna"),
        ),
        (
            Settings(role_models={"searcher": "offline", "orchestrator": "auto"}, secrets=ANTHROPIC_KEY),
            ("anthropic:claude-opus-5-5", "offline"),
        ),
        (
            Settings(model="m", services=Services(openai_url="http://127.0.0.1:9/v1")),
            ("openai:m", "openai:m"),
        ),
        (
            Settings(model="claude-x", services=Services(anthropic_url="http://127.0.0.1:9")),
            ("anthropic:claude-x", "anthropic:claude-x"),
        ),
    ],
)
async def test_what_is_chosen(settings: Settings, models: tuple[str, str]) -> None:
    """A role's own model goes before the named one, that before the tier's default of the first provider at hand."""
    choice = await choose(model_setup(settings), TIERS, local_urls=[nowhere()])
    assert tuple(str(choice.models[role]) for role in TIERS) == models
    assert choice.found == {}
    assert choice.why


async def test_roles_with_models_of_their_own_ask_for_nothing_else() -> None:
    """When every role names its model, no server is looked for."""
    settings = Settings(role_models=dict.fromkeys(TIERS, "offline"), services=Services(openai_url=nowhere()))
    assert set((await choose(model_setup(settings), TIERS)).models.values()) == {ModelRef(OFFLINE, OFFLINE)}


@pytest.mark.parametrize(
    ("model", "setting"), [("claude-opus-5-5", "ANTHROPIC_API_KEY"), ("gpt-6-luna", "OPENAI_API_KEY")]
)
async def test_a_named_model_without_its_key(model: str, setting: str) -> None:
    """What is missing is said, with where it was looked for and what works without."""
    with pytest.raises(CredentialsError) as caught:
        await choose(model_setup(Settings(model=model)), TIERS, local_urls=[nowhere()])
    assert f"{setting} in the environment and in .env: not found" in caught.value.message
    assert "--model offline" in caught.value.hint
    assert caught.value.exit_code == 4


async def test_a_local_server_is_found() -> None:
    """Without keys the first local server that answers is used, with the first of its chat models."""
    with OpenAIServer([]) as server:
        server.models = ("nomic-embed-text", "llama", "qwen")
        choice = await choose(model_setup(Settings()), TIERS, local_urls=[nowhere(), server.url])
        named = await choose(model_setup(Settings(model="qwen")), TIERS, local_urls=[nowhere(), server.url])
    assert (set(choice.models.values()), choice.found) == ({ModelRef(OPENAI, "llama")}, {OPENAI: server.url})
    assert (set(named.models.values()), named.found) == ({ModelRef(OPENAI, "qwen")}, {OPENAI: server.url})


@pytest.mark.parametrize(
    ("named", "secrets", "chosen"),
    [
        ({"openai_model": "gpt-x"}, OPENAI_KEY, ModelRef(OPENAI, "gpt-x")),
        ({"anthropic_model": "claude-x"}, ANTHROPIC_KEY, ModelRef(ANTHROPIC, "claude-x")),
        ({"openai_model": "gpt-x"}, BOTH_KEYS, ModelRef(OPENAI, "gpt-x")),
        ({"openai_model": "gpt-x", "anthropic_model": "claude-x"}, BOTH_KEYS, ModelRef(ANTHROPIC, "claude-x")),
        ({"openai_model": "gpt-x", "model": "openai:gpt-y"}, OPENAI_KEY, ModelRef(OPENAI, "gpt-y")),
        ({"openai_model": "gpt-x"}, Secrets(), ModelRef(OFFLINE, OFFLINE)),
    ],
)
async def test_the_vendors_own_variable_names_the_model(
    named: dict[str, str], secrets: Secrets, chosen: ModelRef
) -> None:
    """OPENAI_MODEL and ANTHROPIC_MODEL hold for all roles, wherever `--model` names none."""
    choice = await choose(
        model_setup(Settings.model_validate({"secrets": secrets, **named})), TIERS, local_urls=[nowhere()]
    )
    assert set(choice.models.values()) == {chosen}


def test_the_vendors_models_are_read_as_version_0_1_wrote_them() -> None:
    """A journal of 0.1 has `openai_model` among the settings; it is now where all that a vendor declares is."""
    old = {"openai_model": "gpt-x", "anthropic_model": "", "services": {"openai_url": "http://127.0.0.1:9/v1"}}
    settings = Settings.model_validate(old)
    assert settings.services.model_extra == {"openai_model": "gpt-x", "openai_url": "http://127.0.0.1:9/v1"}
    assert Settings.model_validate(settings.public()) == settings


async def test_a_named_model_of_another_server_is_not_looked_up() -> None:
    """With OPENAI_BASE_URL and OPENAI_MODEL the server is not asked for its list; one on this machine is."""
    settings = Settings(services=Services(openai_model="qwen", openai_url=nowhere()))
    assert set((await choose(model_setup(settings), TIERS)).models.values()) == {ModelRef(OPENAI, "qwen")}
    with OpenAIServer([]) as server:
        server.models = ("llama", "qwen")
        local = await choose(
            model_setup(Settings(services=Services(openai_model="qwen"))), TIERS, local_urls=[server.url]
        )
    assert set(local.models.values()) == {ModelRef(OPENAI, "qwen")}


async def test_a_local_server_does_not_stand_in_for_a_key() -> None:
    """A role whose named model needs another provider's key is still told so."""
    with OpenAIServer([]) as server:
        settings = Settings(role_models={"searcher": "claude-x"})
        with pytest.raises(CredentialsError):
            await choose(model_setup(settings), TIERS, local_urls=[server.url])


async def test_a_named_server_is_asked_for_its_models() -> None:
    """With OPENAI_BASE_URL and no model named, the server's first model is taken."""
    with OpenAIServer([]) as server:
        choice = await choose(model_setup(Settings(services=Services(openai_url=server.url))), TIERS)
    assert set(choice.models.values()) == {ModelRef(OPENAI, "model-a")}


async def test_a_named_server_that_is_not_there() -> None:
    """The error names the URL and what to check, and the run can be tried again."""
    url = nowhere()
    with pytest.raises(ModelError) as caught:
        await choose(model_setup(Settings(services=Services(openai_url=url))), TIERS)
    assert url in caught.value.message
    assert "OPENAI_BASE_URL" in caught.value.hint
    assert caught.value.exit_code == 6


async def test_a_named_server_without_models() -> None:
    """A server that lists nothing, or something else, is said to list no models."""
    with OpenAIServer([]) as server:
        server.models = ()
        with pytest.raises(ModelError) as caught:
            await choose(model_setup(Settings(services=Services(openai_url=server.url))), TIERS)
    assert caught.value.fault is ModelFault.UNKNOWN_MODEL


@pytest.mark.parametrize("url", ["localhost:11434", "http://", "http://[", "ftp://example.com"])
async def test_an_address_that_is_none(url: str) -> None:
    """What is no URL is refused in words, before any client stumbles over it."""
    with pytest.raises(ConfigError):
        await choose(model_setup(Settings(services=Services(openai_url=url))), TIERS)
    async with Clients(model_setup(Settings(services=Services(anthropic_url=url)))) as clients:
        with pytest.raises(ConfigError):
            await clients.open([ModelRef(ANTHROPIC, "claude-x")])


@pytest.mark.parametrize("key", ["ключ", "sk-abc\ndef"])
async def test_a_key_that_no_header_can_hold(key: str) -> None:
    """A key pasted with other characters is refused in words that do not repeat it."""
    secrets = Secrets(anthropic_key=SecretStr(key), openai_key=SecretStr(key))
    async with Clients(model_setup(Settings(secrets=secrets))) as clients:
        for provider in (ANTHROPIC, OPENAI):
            with pytest.raises(CredentialsError) as caught:
                await clients.open([ModelRef(provider, "m")])
            assert key not in f"{caught.value.message}{caught.value.hint}"


class Fixed:
    """A client that gives one answer."""

    async def generate(self, request: Request) -> Turn:
        """Answer."""
        return Turn(provider=OFFLINE, model=request.model, blocks=(), text="rules", stop=StopKind.END)


def request_for(model: ModelRef) -> Request:
    history = (UserText(text="Go."),)
    return Request(agent="a", role="r", model=model.name, system="s", tools=(), history=history, max_output_tokens=9)


async def test_one_adapter_per_provider() -> None:
    """Each provider's adapter is opened once, asks where the settings say, and shares a gate per model."""
    models = [ModelRef(ANTHROPIC, "claude-x"), ModelRef(OPENAI, "m"), ModelRef(OFFLINE, OFFLINE)]
    with AnthropicServer([Reply(text="from A")]) as a, OpenAIServer([Reply(text="from O")]) as o:
        settings = Settings(services=Services(anthropic_url=a.url, openai_url=nowhere()))
        setup = model_setup(with_servers(settings, {OPENAI: o.url}))
        async with Clients(setup, offline=Fixed()) as clients:
            await clients.open([*models, ModelRef(ANTHROPIC, "claude-y")])
            turns = [await clients.client_for(model).generate(request_for(model)) for model in models]
            assert clients.client_for(models[0]) is clients.client_for(ModelRef(ANTHROPIC, "claude-y"))
            assert clients.gate_for(models[0]) is clients.gate_for(models[0])
            assert clients.gate_for(models[0]) is not clients.gate_for(models[1])
    assert [turn.text for turn in turns] == ["from A", "from O", "rules"]


async def test_a_provider_without_an_adapter() -> None:
    """Offline without its client, and prefixes that no vendor has, are refused."""
    async with Clients(model_setup(Settings())) as clients:
        for model in (ModelRef(OFFLINE, OFFLINE), ModelRef("acme", "m")):
            with pytest.raises(ConfigError):
                await clients.open([model])
