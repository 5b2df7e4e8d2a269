"""What a session opens once for all agents: models, sources, a sandbox; and the limits that nobody set."""

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from loguru import logger

from explorer.agents.budget import ReportReserve, WorstCost, no_cost, report_reserve
from explorer.agents.compaction import DEFAULT_WINDOW_TOKENS, ContextPolicy
from explorer.agents.payments import PaidClient
from explorer.agents.roles import Role, leading_role, report_writers, without_tools
from explorer.agents.run_rules import Model
from explorer.journal.run_state import JUDGE
from explorer.lean.client import LeanClient
from explorer.llm.clients import Clients, RetrySettings
from explorer.llm.models import OFFLINE, OWN, Choice, ModelRef
from explorer.llm.profiles import is_small
from explorer.llm.retry import OnFailure, RetryingClient, WaitLimits
from explorer.llm.vendors import check_effort
from explorer.network.client_options import check_network
from explorer.run.connectors import Connectors
from explorer.run.extensions import installed_extensions
from explorer.run.model_facts import (
    Pricing,
    context_policy,
    is_local_model,
    known_cost,
    pricing_of,
    profile_of,
    worst_cost,
)
from explorer.run.settings_parts import model_setup, skill_folders, vendor_of
from explorer.run.team import choose_judge, choose_team, effort_of, lean_settings, with_servers
from explorer.sandbox.confinement import SandboxTier
from explorer.sandbox.selection import Sandbox, choose_sandbox
from explorer.schema.errors import ConfigError
from explorer.schema.events import McpToolsListed
from explorer.schema.limits import DEFAULT_COST_USD, DEFAULT_TOKENS, Limits
from explorer.schema.messages import LLMClient
from explorer.schema.preset import Preset
from explorer.schema.settings import Settings
from explorer.schema.tool import Tool
from explorer.skills.catalog import SkillCatalog, find_skills
from explorer.sources.connections import CheckAddress, as_asked
from explorer.tools.shell import SHELL_TOOLS


def _with_defaults(limits: Limits, kinds: Collection[Pricing]) -> tuple[Limits, dict[str, str]]:
    """Fill in the limits of money and tokens that were not set, and return the origin of each of these by name.

    A limit that was set, also to none, stays.
    """
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
    return filled, {name: origin for name, (_, origin) in missing.items()}


@dataclass(frozen=True)
class RunResources:
    """The roles of a run, the models they work with, and the tools that bring evidence."""

    settings: Settings
    roles: Mapping[str, Role]
    choice: Choice
    """The model of each role."""
    clients: Clients
    connectors: Connectors
    extra_tools: Sequence[Tool]
    own_client: LLMClient | None
    """The embedding program's own client, which answers all roles; None: the models of `choice` do."""
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
        return "" if is_known or not is_small(ref.name) or not is_local_model(ref, self.settings) else str(ref)

    def model_of(self, role: str, on_failure: OnFailure, waits: WaitLimits) -> Model:
        """Return the model of a role, behind its gate and its retries."""
        if self.own_client is not None:
            own = PaidClient(self.own_client)
            policy = ContextPolicy(self.settings.context_window or DEFAULT_WINDOW_TOKENS, self.settings.context_share)
            return Model(OWN, OWN, LeanClient(own) if self.lean else own, no_cost, policy)
        ref = self.choice.models[role]
        client, policy = self.client_of(ref, on_failure, waits), context_policy(ref, self.settings)
        if self.lean:
            client = LeanClient(client, policy.window_tokens, is_local=is_local_model(ref, self.settings))
        effort = effort_of(self.settings, self.roles[role])
        return Model(str(ref), ref.name, client, self.worst_cost(ref), policy, effort)

    def client_of(self, ref: ModelRef, on_failure: OnFailure, waits: WaitLimits) -> LLMClient:
        """Return the client of a model that was opened, behind its gate and its retries."""
        client = self.clients.client_for(ref)
        # The stand-in is on this machine and costs nothing: there is nobody who could bill its requests.
        if ref.provider != OFFLINE:
            is_priced = pricing_of(ref, self.settings) is not Pricing.UNKNOWN
            client = PaidClient(client, self.clients.holding(ref, is_priced=is_priced))
        gate = self.clients.gate_for(ref)
        return RetryingClient(client, gate, on_failure, limits=waits, timing=self.clients.timing)

    def worst_cost(self, ref: ModelRef) -> WorstCost:
        """Return the most a request to a model can cost, as a function of its tokens."""
        return worst_cost(ref, self.settings, is_shared=self.clients.shared is not None)


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
        judging: Mapping[str, ModelRef] = judge.models if judge else {}
        await clients.open([*choice.models.values(), *judging.values()])
        sandbox = Sandbox(None, "lean mode has no shell") if lean else await choose_shell(settings)
        yield RunResources(
            settings=settings,
            roles=_without_open_shell(roles, sandbox),
            choice=choice,
            clients=clients,
            connectors=connectors,
            extra_tools=extra_tools,
            own_client=own_client,
            sandbox=sandbox,
            judge=judging.get(JUDGE),
            limit_origins=origins,
            lean=lean,
            skills=skills,
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


def in_force(settings: Settings, choice: Choice, judge: Choice | None = None) -> tuple[Settings, dict[str, str]]:
    """Return the settings with the server that was found and the limits that hold, and where limits not set come from.

    Raises:
        ConfigError: A money limit was set, and a model has no known price.
    """
    settings = with_servers(settings, {**(judge.found if judge else {}), **choice.found})
    refs = [*choice.models.values(), *(judge.models.values() if judge else ())]
    for ref in refs:
        check_price(ref, settings)
    limits, origins = _with_defaults(settings.limits, {pricing_of(ref, settings) for ref in refs})
    return settings.model_copy(update={"limits": limits}), origins


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


def reserve_for_report(settings: Settings, roles: Mapping[str, Role], choice: Choice) -> ReportReserve:
    """Return what writing the report can take of the limits, with the models that are to write it."""
    costs = {role: worst_cost(ref, settings) for role, ref in choice.models.items()}
    writers = [costs[role] for role in report_writers(roles)]
    return report_reserve(
        writers, costs[leading_role(roles).name], counts_tokens=settings.limits.max_tokens is not None
    )
