"""What reaches outside a run: models and tools of the network, opened once for all agents."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from explorer.budget import WorstCost
from explorer.errors import ConfigError
from explorer.events import Source
from explorer.evidence import SourceDraft, Store
from explorer.llm.models import OFFLINE, Choice, ModelRef, choose
from explorer.llm.offline import OfflineClient
from explorer.llm.open_clients import Clients, Patience
from explorer.llm.prices import cost_usd, max_cost_usd
from explorer.llm.retry import OnFailure, RetryingClient
from explorer.messages import LLMClient, Usage
from explorer.net.fetch import Web
from explorer.net.guard import Guard
from explorer.net.hackernews import HackerNews
from explorer.net.pages import PageReader
from explorer.net.sample_day import SAMPLE_NOW, SampleDayTransport
from explorer.net.search import TavilySearch
from explorer.prompts import PromptLoader, Role, built_in_roles
from explorer.report import SAMPLE_FLAG
from explorer.settings import Price, Settings, Tier
from explorer.team import Model
from explorer.tool import Tool
from explorer.tools.hackernews import HnCommentsTool, HnSearchTool, HnStoriesTool
from explorer.tools.web import ReadWebpageTool, TavilySearchTool

PRICED_TOKENS = 1_000
"""A short request: some prices rise with the length."""
NOWHERE = "http://127.0.0.1:9"
"""Nothing listens here: the sample day has no search service, and asks none."""


@dataclass(frozen=True)
class Outside:
    """The open connections to sources."""

    web: Web
    hackernews: HackerNews
    pages: PageReader
    search: TavilySearch
    now: Callable[[], datetime]

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncGenerator[Self]:
        """Open them; on the sample day, files stand in for the network and its clock stands still."""
        services = settings.services
        async with AsyncExitStack() as stack:
            transport = SampleDayTransport() if settings.is_sample else None
            web = await stack.enter_async_context(Web(Guard(services.allow_hosts), transport=transport))
            key = settings.secrets.tavily_key.get_secret_value()
            url = NOWHERE if settings.is_sample else services.tavily_url
            search = await stack.enter_async_context(TavilySearch(key, url))
            yield cls(
                web=web,
                hackernews=HackerNews(web, services.hn_api_url, services.hn_search_url),
                pages=PageReader(web, "" if settings.is_sample else services.reader_url),
                search=search,
                now=(lambda: SAMPLE_NOW) if settings.is_sample else (lambda: datetime.now(UTC)),
            )

    @property
    def absent(self) -> dict[str, str]:
        """Tools that roles may name and this run does not have, each with what would bring it."""
        return {}

    def tools(self, store: Store) -> list[Tool]:
        """The tools that bring evidence, storing it through `store`."""
        return [
            HnStoriesTool(self.hackernews, store, self.now),
            HnCommentsTool(self.hackernews, store, self.now),
            HnSearchTool(self.hackernews, store, self.now),
            TavilySearchTool(self.search, store, self.now),
            ReadWebpageTool(self.pages, store, self.now),
        ]


@dataclass(frozen=True)
class Equipment:
    """The roles of a run, the models they work with, and the tools that bring evidence."""

    settings: Settings
    roles: Mapping[str, Role]
    choice: Choice
    clients: Clients
    outside: Outside
    extra_tools: Sequence[Tool]
    own_client: LLMClient | None

    def tools(self, store: Store) -> dict[str, Tool]:
        """All tools that reach outside, by name; an embedder's own replace those of the same name."""
        keep = _labelled(store) if self.settings.is_sample else store
        return {tool.name: tool for tool in (*self.outside.tools(keep), *self.extra_tools)}

    def model_of(self, role: str, on_failure: OnFailure, seconds_left: Callable[[], float | None]) -> Model:
        """The model of a role, behind its gate and its retries."""
        if self.own_client is not None:
            return Model("own", "own", self.own_client, lambda _input, _output: 0.0)
        ref = self.choice.models[role]
        client = self.clients.client_for(ref)
        retrying = RetryingClient(
            client, self.clients.gate_for(ref), on_failure, seconds_left=seconds_left, timing=self.clients.timing
        )
        return Model(str(ref), ref.name, retrying, worst_cost(ref, self.settings))


def _labelled(store: Store) -> Store:
    """Mark everything stored as invented sample data."""

    async def labelled(drafts: Sequence[SourceDraft]) -> list[Source]:
        return await store([draft.model_copy(update={"flags": (*draft.flags, SAMPLE_FLAG)}) for draft in drafts])

    return labelled


@asynccontextmanager
async def open_equipment(
    settings: Settings,
    extra_tools: Sequence[Tool] = (),
    own_client: LLMClient | None = None,
    patience: Patience | None = None,
) -> AsyncGenerator[Equipment]:
    """Choose the models and open what reaches outside.

    Raises:
        ConfigError: A role, a model or a limit cannot be used as it is set.
        ModelError: The server the user named cannot be asked for its models.
    """
    roles = load_roles(settings)
    asked = settings if own_client is None else settings.model_copy(update={"model": OFFLINE, "role_models": {}})
    choice = await choose_models(asked, roles)
    for ref in choice.models.values():
        worst_cost(ref, settings)
    async with AsyncExitStack() as stack:
        outside = await stack.enter_async_context(Outside.open(settings))
        clients = await stack.enter_async_context(
            Clients(settings, openai_url=choice.openai_url, offline=OfflineClient(), patience=patience)
        )
        yield Equipment(settings, roles, choice, clients, outside, extra_tools, own_client)


def load_roles(settings: Settings) -> dict[str, Role]:
    """The built-in roles and the user's.

    Raises:
        ConfigError: A role file cannot be used, or a model is set for a role that is not there.
    """
    folders = [built_in_roles(), *([settings.roles_dir] if settings.roles_dir is not None else [])]
    roles = PromptLoader(folders).roles()
    for name in settings.role_models:
        if name not in roles:
            raise ConfigError(f"a model is set for the role {name!r}, which is not there", hint="explorer agents")
    return roles


async def choose_models(settings: Settings, roles: Mapping[str, Role]) -> Choice:
    """The model of every role: the user's for it, else the user's for all, else the role file's, else its tier's."""
    own = {name: role.model for name, role in roles.items() if role.model not in set(Tier)}
    if settings.model not in {"", "auto"}:
        own = {}
    asked = settings.model_copy(update={"role_models": {**own, **settings.role_models}})
    return await choose(asked, {name: _tier(role) for name, role in roles.items()})


def _tier(role: Role) -> Tier:
    return Tier(role.model) if role.model in set(Tier) else Tier.BALANCED


def worst_cost(ref: ModelRef, settings: Settings) -> WorstCost:
    """What a request to a model can cost at most, as a function of its tokens.

    Raises:
        ConfigError: A money limit is set, and the model has no known price.
    """

    def worst(input_tokens: int, output_tokens: int) -> float:
        return known_cost(ref, settings, input_tokens, output_tokens) or 0.0

    if settings.limits.max_cost_usd is not None and known_cost(ref, settings, 1, 1) is None:
        raise ConfigError(
            f"a money limit is set, but no price is known for {ref}",
            hint="give its price in USD per million tokens, input/output: EXPLORER_PRICE=0.5/1.5, or drop --max-cost",
        )
    return worst


def known_cost(ref: ModelRef, settings: Settings, input_tokens: int, output_tokens: int) -> float | None:
    """USD that so many tokens of a model cost at most; None when its price is not known."""
    if ref.provider == OFFLINE:
        return 0.0
    return max_cost_usd(ref.name, _vendor(ref, settings), input_tokens, output_tokens, settings.price)


def list_price(ref: ModelRef, settings: Settings) -> Price | None:
    """USD per million tokens of short requests that no cache takes part in; None when it is not known."""
    if ref.provider == OFFLINE:
        return Price(input_usd=0.0, output_usd=0.0)
    usages = (Usage(input_tokens=PRICED_TOKENS), Usage(output_tokens=PRICED_TOKENS))
    vendor = _vendor(ref, settings)
    inward, outward = (cost_usd(ref.name, vendor, usage, settings.price) for usage in usages)
    if inward is None or outward is None:
        return None
    times = 1_000_000 / PRICED_TOKENS
    return Price(input_usd=round(inward * times, 6), output_usd=round(outward * times, 6))


def _vendor(ref: ModelRef, settings: Settings) -> str:
    """Whose price list holds."""
    return "elsewhere" if _is_elsewhere(ref, settings) else ref.provider


def _is_elsewhere(ref: ModelRef, settings: Settings) -> bool:
    """Whether the model is served by someone else than its vendor, whose prices then do not hold."""
    return ref.provider == "openai" and bool(settings.services.openai_url)
