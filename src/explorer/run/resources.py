"""What a session opens once for all agents: models, sources, a sandbox; and the limits that nobody set."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from loguru import logger

from explorer.agents.budget import ReportReserve, WorstCost, report_reserve
from explorer.agents.compaction import DEFAULT_WINDOW_TOKENS, LOCAL_WINDOW_TOKENS, ContextPolicy
from explorer.agents.payments import PaidClient
from explorer.agents.roles import (
    PromptLoader,
    Role,
    built_in_roles,
    leading_role,
    report_writers,
    with_offered,
    without_tools,
)
from explorer.agents.run_rules import Model
from explorer.journal.run_state import JUDGE
from explorer.lean.client import LeanClient
from explorer.llm.clients import Clients, RetrySettings
from explorer.llm.models import OFFLINE, OWN, Choice, ModelRef, choose
from explorer.llm.prices import cost_usd, max_cost_usd, window_tokens
from explorer.llm.profiles import ModelProfile, is_small, load_profile
from explorer.llm.retry import OnFailure, RetryingClient, WaitLimits
from explorer.llm.vendors import check_effort
from explorer.network.client_options import check_network
from explorer.run.connectors import Connectors
from explorer.run.extensions import installed_extensions
from explorer.run.settings_parts import model_setup, skill_folders, vendor_of
from explorer.sandbox.confinement import SandboxTier
from explorer.sandbox.selection import Sandbox, choose_sandbox
from explorer.schema.errors import ConfigError, CredentialsError
from explorer.schema.events import McpToolsListed
from explorer.schema.limits import DEFAULT_COST_USD, DEFAULT_TOKENS, Limits
from explorer.schema.messages import LLMClient, Usage
from explorer.schema.model_options import EVERY_ROLE, Price, Tier
from explorer.schema.network import is_this_machine
from explorer.schema.preset import Preset
from explorer.schema.setting import extension_place
from explorer.schema.settings import Settings
from explorer.schema.tool import Tool
from explorer.skills.catalog import SkillCatalog, find_skills
from explorer.sources.connections import CheckAddress, as_asked
from explorer.tools.shell import SHELL_TOOLS


class Pricing(StrEnum):
    """Kinds of prices of a model."""

    FREE = "free"
    """It runs on this machine, or its price is 0."""
    PRICED = "priced"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class LimitsInForce:
    """The limits of a session."""

    limits: Limits
    origins: dict[str, str] = field(default_factory=dict[str, str])
    """Origin of each limit that the user did not set, by name."""


def with_defaults(limits: Limits, pricings: Iterable[Pricing]) -> LimitsInForce:
    """Fill in the limits of money and tokens that were not set; one that was set, also to none, stays."""
    kinds = set(pricings)
    has_price, has_unknown = Pricing.PRICED in kinds, Pricing.UNKNOWN in kinds
    free = "default: no model here costs anything"
    wanted: dict[str, tuple[float | int | None, str]] = {
        "max_cost_usd": (DEFAULT_COST_USD, "default") if has_price else (None, free),
        "max_tokens": (DEFAULT_TOKENS, "default: the price of a model is not known") if has_unknown else (None, free),
    }
    if has_unknown and not has_price:
        wanted["max_cost_usd"] = (None, "default: no price is known; tokens are limited instead")
    if has_price and not has_unknown:
        wanted["max_tokens"] = (None, "default: money is limited instead")
    missing = {name: pair for name, pair in wanted.items() if name not in limits.model_fields_set}
    filled = limits.model_copy(update={name: value for name, (value, _) in missing.items()})
    return LimitsInForce(filled, {name: origin for name, (_, origin) in missing.items()})


LEAN_ROLE = "lean"
"""The one role of lean mode, and its folder in that of the built-in roles."""
LEAN_OUTPUT_TOKENS = 1_024
"""Limit of a reply in lean mode: a form takes about 100, and a small machine writes 3 to 10 a second."""
PRICED_TOKENS = 1_000
"""A short request: some prices rise with the length."""


@dataclass(frozen=True)
class RunResources:
    """The roles of a run, the models they work with, and the tools that bring evidence."""

    settings: Settings
    roles: Mapping[str, Role]
    choice: Choice
    clients: Clients
    connectors: Connectors
    extra_tools: Sequence[Tool]
    own_client: LLMClient | None
    sandbox: Sandbox
    """What holds the commands of agents."""
    judge: ModelRef | None = None
    """The model of `--judge`; None: none was asked for, or the embedder's own client is it."""
    limit_origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Origin of each limit that the user did not set, by name."""
    lean: str = ""
    """Why the run is in lean mode; empty: it is not."""
    skills: SkillCatalog = field(default_factory=SkillCatalog)
    mcp: Sequence[McpToolsListed] = ()
    """The tools of MCP servers that roles have; they are among `extra_tools`."""
    mcp_ways: Mapping[str, str] = field(default_factory=dict[str, str])
    """How each MCP server is reached, in words; or why it is left out."""

    @property
    def absent(self) -> dict[str, str]:
        """Tools that roles may name and this run does not have, each with what would bring it."""
        return {**self.connectors.absent, **absent_shell(self.sandbox)}

    def tools(self, check: CheckAddress = as_asked) -> dict[str, Tool]:
        """Return all tools that reach outside, by name; an embedder's own replace those of the same name."""
        return {tool.name: tool for tool in (*self.connectors.tools(check), *self.extra_tools)}

    def installed_tools(self, check: CheckAddress = as_asked) -> dict[str, Tool]:
        """Return the tools of installed packages, by name; they replace no other tool."""
        return {tool.name: tool for tool in self.connectors.installed_tools(check)}

    @property
    def unmeasured(self) -> str:
        """The model of the role that leads, if it is a small one of this machine without a profile; else empty."""
        if self.lean or self.own_client is not None or self.settings.lean != "auto":
            return ""
        ref = self.choice.models[leading_role(self.roles).name]
        is_known = profile_of(ref, self.settings) is not None
        return "" if is_known or not is_small(ref.name) or not _is_local(ref, self.settings) else str(ref)

    def model_of(self, role: str, on_failure: OnFailure, waits: WaitLimits) -> Model:
        """Return the model of a role, behind its gate and its retries."""
        if self.own_client is not None:
            own = PaidClient(self.own_client)
            policy = ContextPolicy(self.settings.context_window or DEFAULT_WINDOW_TOKENS, self.settings.context_share)
            return Model(OWN, OWN, LeanClient(own) if self.lean else own, lambda _input, _output: 0.0, policy)
        ref = self.choice.models[role]
        client, gate, timing = self.clients.client_for(ref), self.clients.gate_for(ref), self.clients.timing
        # The stand-in is on this machine and costs nothing: there is nobody who could bill its requests.
        is_priced = pricing_of(ref, self.settings) is not Pricing.UNKNOWN
        paid = client if ref.provider == OFFLINE else PaidClient(client, self.clients.holding(ref, is_priced=is_priced))
        retrying = RetryingClient(paid, gate, on_failure, limits=waits, timing=timing)
        policy = context_policy(ref, self.settings)
        is_local = _is_local(ref, self.settings)
        asked = LeanClient(retrying, policy.window_tokens, is_local=is_local) if self.lean else retrying
        worst = worst_cost(ref, self.settings, is_shared=self.clients.shared is not None)
        return Model(str(ref), ref.name, asked, worst, policy, effort_of(self.settings, self.roles[role]))


@asynccontextmanager
async def open_resources(
    settings: Settings,
    extra_tools: Sequence[Tool] = (),
    own_client: LLMClient | None = None,
    retry_settings: RetrySettings | None = None,
    progress: Callable[[str], None] = lambda _words: None,
) -> AsyncGenerator[RunResources]:
    """Choose the models and open what reaches outside.

    Raises:
        ConfigError: A role, a model or a limit cannot be used as it is set.
        ModelError: The server the user named cannot be asked for its models.
    """
    further = (*installed_extensions().installed_tools, *extra_tools)
    asked = settings if own_client is None else settings.model_copy(update={"model": OFFLINE, "role_models": {}})
    roles, choice, lean = await choose_team(asked, [tool.name for tool in further], has_client=own_client is not None)
    if lean:
        settings = lean_settings(settings)
    if own_client is None:
        _refuse_offline(settings.preset, choice.models[leading_role(roles).name])
    _check_settings(settings, roles, choice)
    judge = await choose_judge(settings) if settings.judge and own_client is None else None
    skills = find_skills([] if lean else skill_folders(settings))
    settings, origins = in_force(settings, choice, judge)
    if not settings.is_sample or any(ref.provider != OFFLINE for ref in choice.models.values()):
        check_network(settings.network)
    async with AsyncExitStack() as stack:
        connectors = await stack.enter_async_context(Connectors.open(settings, progress))
        clients = await stack.enter_async_context(
            Clients(model_setup(settings), offline=_offline_client(choice), retry_settings=retry_settings)
        )
        chosen = await _opened(clients, choice, judge)
        sandbox = Sandbox(None, "lean mode has no shell") if lean else await choose_shell(settings)
        roles = _without_open_shell(roles, sandbox)
        yield RunResources(
            settings,
            roles,
            choice,
            clients,
            connectors,
            extra_tools,
            own_client,
            sandbox,
            chosen,
            origins,
            lean,
            skills,
        )


def _without_open_shell(roles: Mapping[str, Role], sandbox: Sandbox) -> Mapping[str, Role]:
    """Return the roles, those that must be confined without a shell where commands are not."""
    is_open = sandbox.confinement is not None and sandbox.confinement.tier is SandboxTier.UNCONFINED
    names = {tool.name for tool in SHELL_TOOLS}
    return {name: without_tools(role, names) if is_open and role.confined else role for name, role in roles.items()}


def _refuse_offline(preset: Preset | None, leading: ModelRef) -> None:
    """Refuse a preset with roles where no model reads their prompts.

    Raises:
        ConfigError: It would be a run like any other, under the preset's name.
    """
    if preset is not None and preset.has_team and leading.provider == OFFLINE:
        raise ConfigError(
            f"the preset {preset.name} is prompts for a language model, and offline mode is none",
            hint="set a key or name a model: ANTHROPIC_API_KEY, OPENAI_API_KEY, or --model NAME (explorer models)",
        )


async def _opened(clients: Clients, choice: Choice, judge: Choice | None) -> ModelRef | None:
    """Open the clients of all models, and return the judge's."""
    chosen = judge.models[JUDGE] if judge else None
    await clients.open([*choice.models.values(), *([chosen] if chosen else [])])
    return chosen


def _check_settings(settings: Settings, roles: Mapping[str, Role], choice: Choice) -> None:
    """Check that the model of each role takes the role's effort, and log settings that belong to nothing.

    Raises:
        ConfigError: A model does not take it.
    """
    for place in installed_extensions().unknown(settings):
        logger.warning("the setting {} belongs to nothing that is installed", place)
    for role, ref in choice.models.items():
        vendor = vendor_of(ref, settings)
        check_effort(vendor.vendor if vendor else None, ref, effort_of(settings, roles[role]))


def _offline_client(choice: Choice) -> LLMClient | None:
    """Return what answers without a model, where a role asks it."""
    if all(ref.provider != OFFLINE for ref in choice.models.values()):
        return None
    from explorer.offline.client import OfflineClient  # noqa: PLC0415 - a run with a model does not pay for it

    return OfflineClient()


def absent_shell(sandbox: Sandbox) -> dict[str, str]:
    """Return the tools that a run does not have where nothing holds commands, each with the reason."""
    return {} if sandbox.confinement else {tool.name: sandbox.why for tool in SHELL_TOOLS}


async def choose_shell(settings: Settings) -> Sandbox:
    """Return what holds the commands of agents, by the settings and by what was seen to hold on this machine."""
    if settings.shell == "off":
        return Sandbox(None, "there is no shell, because it is set to off")
    # A plan, a list of tools or a check makes no folder of runs; the first run does.
    beside = settings.workspace.absolute() if settings.workspace.is_dir() else None
    return await choose_sandbox(settings.cache_dir, beside=beside, unsafe=settings.shell == "unsafe")


def shell_set_by(sandbox: Sandbox, settings: Settings, origins: Mapping[str, str]) -> Sandbox:
    """Return a sandbox with the flag, variable or file that decided it, where the machine did not.

    Args:
        sandbox: What was chosen by the settings.
        settings: The settings that it was chosen by.
        origins: Where each setting was set, by its name.
    """
    return sandbox if settings.shell == "auto" else replace(sandbox, set_by=origins.get("shell", ""))


def role_origins(settings: Settings) -> list[Path | Preset]:
    """Return where roles come from: built-in ones, installed packages, the preset, and the user's folder."""
    own = (settings.preset, settings.roles_dir)
    return [*installed_extensions().role_folders, *(origin for origin in own if origin is not None)]


def load_roles(settings: Settings) -> dict[str, Role]:
    """Return the built-in roles and the user's.

    Raises:
        ConfigError: A role file cannot be used, or a model is set for a role that is not there.
    """
    roles = PromptLoader(role_origins(settings)).roles()
    # The user's own file may name a model for a built-in role that a preset's team does not have.
    built_in = (path.stem for folder in installed_extensions().role_folders for path in folder.glob("*.md"))
    known = {*roles, LEAN_ROLE, *built_in}
    for what, named in (("a model", settings.role_models), ("an effort", settings.effort.keys() - {EVERY_ROLE})):
        for name in sorted(named):
            if name not in known:
                near = get_close_matches(name, roles, 1)
                hint = f"did you mean {near[0]}? All roles: explorer agents" if near else "all roles: explorer agents"
                raise ConfigError(f"{what} is set for the role {name!r}, which is not there", hint=hint)
    return roles


class ChosenTeam(NamedTuple):
    """The roles of a run with their models."""

    roles: Mapping[str, Role]
    choice: Choice
    lean: str
    """Why it is one agent in lean mode; empty: it is the whole team."""


async def choose_team(settings: Settings, offered: Collection[str] = (), *, has_client: bool = False) -> ChosenTeam:
    """Return the roles and the model of each: the whole team, or one agent in lean mode where that is better.

    Args:
        settings: The settings; `lean` decides, or the profile of the model that leads.
        offered: Tools that are no role file's, for the helpers.
        has_client: Whether a client of the caller's own answers, whatever the choice is.

    Raises:
        ConfigError: A role cannot be used, or lean mode is asked for and there is no model.
        ModelError: The server the user named cannot be asked for its models.
    """
    roles = with_offered(load_roles(settings), offered)
    wanted = _lean_wanted(settings)
    if wanted != "on":
        choice = await choose_models(settings, roles)
        ref = choice.models[leading_role(roles).name]
        profile = profile_of(ref, with_servers(settings, choice.found))
        why = profile.why_lean if profile and wanted == "auto" else ""
        if not why:
            return ChosenTeam(roles, choice, "")
        why = f"by the profile of {ref}: {why}"
    else:
        why = "as asked for"
    lean = PromptLoader([built_in_roles() / LEAN_ROLE]).roles()
    own = {role: name for role, name in settings.role_models.items() if role in lean}
    choice = await choose_models(settings.model_copy(update={"role_models": own}), lean)
    if choice.models[LEAN_ROLE].provider == OFFLINE and not has_client:
        hint = "name one: --model NAME; or leave lean mode out: --no-lean"
        raise ConfigError(f"lean mode needs a language model, and this is offline mode: {choice.why}", hint=hint)
    return ChosenTeam(lean, choice, why)


def _lean_wanted(settings: Settings) -> str:
    """Return whether lean mode is wanted; a preset with a team is never made one agent by a model's profile.

    Raises:
        ConfigError: Both were asked for.
    """
    preset = settings.preset
    if preset is None or not preset.has_team:
        return settings.lean
    if settings.lean == "on":
        raise ConfigError(f"the preset {preset.name} is a team, and lean mode is one agent", hint="leave out --lean")
    return "off"


def lean_settings(settings: Settings) -> Settings:
    """Return the settings of a run in lean mode, whose replies are short."""
    return settings.model_copy(update={"max_output_tokens": LEAN_OUTPUT_TOKENS})


def profile_of(ref: ModelRef, settings: Settings) -> ModelProfile | None:
    """Return what was measured of a model at its address; None where nothing was."""
    vendor = vendor_of(ref, settings)
    return load_profile(settings.state_dir, vendor.server.url, ref.name) if vendor else None


async def choose_models(settings: Settings, roles: Mapping[str, Role]) -> Choice:
    """Choose the model of every role: the user's for it, else the user's for all, the role file's, its tier's."""
    own = {name: role.model for name, role in roles.items() if role.model not in set(Tier)}
    if settings.model not in {"", "auto"}:
        own = {}
    asked = settings.model_copy(update={"role_models": {**own, **settings.role_models}})
    return await choose(model_setup(asked), {name: _tier(role) for name, role in roles.items()})


async def choose_judge(settings: Settings) -> Choice:
    """Return the model of `--judge`, as the one role `judge`.

    Raises:
        ConfigError: It is no language model.
        CredentialsError: Its key is missing.
    """
    asked = settings.model_copy(update={"model": settings.judge, "role_models": {}})
    try:
        choice = await choose(model_setup(asked), {JUDGE: Tier.BALANCED})
    except CredentialsError as error:
        raise CredentialsError(f"the judge {error.message}", hint="set the key, or leave out --judge") from error
    if choice.models[JUDGE].provider == OFFLINE:
        raise ConfigError("a judge is a language model; `offline` is none", hint="for example --judge openai:NAME")
    return choice


def in_force(settings: Settings, choice: Choice, judge: Choice | None = None) -> tuple[Settings, dict[str, str]]:
    """Return the settings with the server that was found and the limits that hold, and where limits not set come from.

    Raises:
        ConfigError: A money limit was set, and a model has no known price.
    """
    settings = with_servers(settings, {**(judge.found if judge else {}), **choice.found})
    refs = [*choice.models.values(), *(judge.models.values() if judge else ())]
    for ref in refs:
        check_price(ref, settings)
    found = with_defaults(settings.limits, {pricing_of(ref, settings) for ref in refs})
    return settings.model_copy(update={"limits": found.limits}), found.origins


def with_servers(settings: Settings, found: Mapping[str, str]) -> Settings:
    """Return the settings with the addresses of servers that were found on this machine, by their vendors."""
    vendors = installed_extensions().vendors
    places = {extension_place(name, vendors[name].url, is_secret=False): url for name, url in found.items()}
    update = {place.partition(".")[2]: url for place, url in places.items()}
    return settings.model_copy(update={"services": settings.services.model_copy(update=update)}) if found else settings


def _tier(role: Role) -> Tier:
    return Tier(role.model) if role.model in set(Tier) else Tier.BALANCED


def effort_of(settings: Settings, role: Role) -> str:
    """Return how much a role's model is to reason: as set for the role, for all, or in its file; empty: nothing set."""
    return settings.effort.get(role.name) or settings.effort.get(EVERY_ROLE) or role.effort


def check_price(ref: ModelRef, settings: Settings) -> None:
    """Check that a money limit, if one was set, can be kept.

    Raises:
        ConfigError: The model has no known price.
    """
    if settings.limits.max_cost_usd is not None and known_cost(ref, settings, 1, 1) is None:
        raise ConfigError(
            f"a money limit is set, but no price is known for {ref}",
            hint="give its price in USD per million tokens, input/output: EXPLORER_PRICE=0.5/1.5, or drop --max-cost",
        )


def worst_cost(ref: ModelRef, settings: Settings, *, is_shared: bool = False) -> WorstCost:
    """Return the most a request to a model can cost, as a function of its tokens; 0 where no price is known.

    Args:
        ref: The model.
        settings: The settings.
        is_shared: Whether limits of money may be shared with other runs, so that it counts without one of the run's.
    """
    if (settings.limits.max_cost_usd is None and not is_shared) or ref.provider == OFFLINE:
        # Nothing is held back for money then, and looking up a price takes longer than all else before a request.
        return lambda _input_tokens, _output_tokens: 0.0
    rates = _rates(ref, settings)

    def worst(input_tokens: int, output_tokens: int) -> float:
        return max_cost_usd(ref.name, rates.price_list, input_tokens, output_tokens, rates.price) or 0.0

    return worst


def reserve_for_report(settings: Settings, roles: Mapping[str, Role], choice: Choice) -> ReportReserve:
    """Return what writing the report can take of the limits, with the models that are to write it."""
    costs = {role: worst_cost(ref, settings) for role, ref in choice.models.items()}
    writers = [costs[role] for role in report_writers(roles)]
    return report_reserve(
        writers, costs[leading_role(roles).name], counts_tokens=settings.limits.max_tokens is not None
    )


def pricing_of(ref: ModelRef, settings: Settings) -> Pricing:
    """Return what is known of what a model costs; one on this machine without a price is free."""
    usd = known_cost(ref, settings, PRICED_TOKENS, PRICED_TOKENS)
    if usd is not None:
        return Pricing.PRICED if usd > 0 else Pricing.FREE
    return Pricing.FREE if _is_local(ref, settings) else Pricing.UNKNOWN


def known_cost(ref: ModelRef, settings: Settings, input_tokens: int, output_tokens: int) -> float | None:
    """Return what so many tokens of a model cost at most, in USD; None when its price is not known."""
    if ref.provider == OFFLINE:
        return 0.0
    rates = _rates(ref, settings)
    return max_cost_usd(ref.name, rates.price_list, input_tokens, output_tokens, rates.price)


def list_price(ref: ModelRef, settings: Settings) -> Price | None:
    """Return the price of short requests without a cache, in USD per million tokens; None when it is not known."""
    if ref.provider == OFFLINE:
        return Price(input_usd=0.0, output_usd=0.0)
    usages = (Usage(input_tokens=PRICED_TOKENS), Usage(output_tokens=PRICED_TOKENS))
    rates = _rates(ref, settings)
    inward, outward = (cost_usd(ref.name, rates.price_list, usage, rates.price) for usage in usages)
    if inward is None or outward is None:
        return None
    times = 1_000_000 / PRICED_TOKENS
    return Price(input_usd=round(inward * times, 6), output_usd=round(outward * times, 6))


def window_of(ref: ModelRef, settings: Settings) -> int | None:
    """Return how many tokens a model's conversations are kept under; None for offline mode, which needs all of it."""
    if ref.provider == OFFLINE:
        return None
    assumed = LOCAL_WINDOW_TOKENS if _is_local(ref, settings) else DEFAULT_WINDOW_TOKENS
    window = known_window(ref, settings) or settings.context_window or assumed
    return min(window, settings.context_window or window)


def context_policy(ref: ModelRef, settings: Settings) -> ContextPolicy:
    """Return when conversations with a model are shortened."""
    window = window_of(ref, settings)
    if window is None:
        return ContextPolicy(None)
    rates = _rates(ref, settings)

    def cost(usage: Usage) -> float:
        return cost_usd(ref.name, rates.price_list, usage, rates.price) or 0.0

    return ContextPolicy(window, settings.context_share, cost)


def _is_local(ref: ModelRef, settings: Settings) -> bool:
    vendor = vendor_of(ref, settings)
    return vendor is not None and is_this_machine(urlsplit(vendor.server.url).hostname or "")


def known_window(ref: ModelRef, settings: Settings) -> int | None:
    """Return how many tokens a model's window holds, by its vendor or the price list; None when that is not known."""
    vendor = vendor_of(ref, settings)
    if vendor is None:
        return None
    profile = load_profile(settings.state_dir, vendor.server.url, ref.name)
    measured = profile.window_tokens if profile else None
    return measured or vendor.vendor.window_tokens(ref.name) or window_tokens(ref.name, vendor.server.price_list)


class Rates(NamedTuple):
    """Where the price of a model is found."""

    price_list: str
    """The provider of the price list; empty: none."""
    price: Price | None
    """Price for a model that is on no list: its vendor's, else the user's."""


def _rates(ref: ModelRef, settings: Settings) -> Rates:
    vendor = vendor_of(ref, settings)
    if vendor is None:
        return Rates("", settings.price)
    return Rates(vendor.server.price_list, vendor.vendor.price(ref.name) or settings.price)
