import asyncio

from explorer.llm.clients import Clients
from explorer.llm.models import ModelRef
from explorer.llm.prompt_cache import HOLD_S, STAYS_WARM_S, CacheWarmingClient
from explorer.llm.streaming import FIRST_CONTENT
from explorer.run.settings_parts import model_setup
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import Request, StopKind, Turn
from explorer.schema.settings import Services, Settings

TURN = Turn(provider="p", model="m", blocks=(), text="ok", stop=StopKind.END)


def asked(agent: str, role: str = "searcher", system: str = "You search. " * 400) -> Request:
    return Request(agent=agent, role=role, model="m", system=system, tools=(), history=(), max_output_tokens=100)


class Provider:
    """A client whose replies begin and end when the test says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.begins = asyncio.Event()
        self.ends = asyncio.Event()
        self.failing: set[str] = set()
        self.all_asked = asyncio.Event()
        """Three requests have come."""

    async def generate(self, request: Request) -> Turn:
        """Begin, tell of the first content, end."""
        self.asked.append(request.agent)
        if len(self.asked) == 3:
            self.all_asked.set()
        tell = FIRST_CONTENT.get()
        assert tell is not None
        await self.begins.wait()
        if request.agent in self.failing:
            raise ModelError(ModelFault.OVERLOADED, "no")
        tell()
        await self.ends.wait()
        return TURN


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_others_follow_at_the_first_content() -> None:
    """One of ten helpers that start together goes ahead; the rest go when its reply begins, not when it ends."""
    provider = Provider()
    client = CacheWarmingClient(provider)
    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(client.generate(asked(f"searcher-{number}")))
        await settled()
        assert provider.asked == ["searcher-0"]
        provider.begins.set()
        await settled()
        assert len(provider.asked) == 10
        provider.ends.set()


async def test_other_heads_are_not_held() -> None:
    """A role warms its own head; one too short to be cached waits for nobody."""
    provider = Provider()
    client = CacheWarmingClient(provider)
    async with asyncio.TaskGroup() as group:
        group.create_task(client.generate(asked("searcher-1")))
        group.create_task(client.generate(asked("writer-1", "writer")))
        for number in (1, 2):
            group.create_task(client.generate(asked(f"small-{number}", "small", "Short.")))
        await settled()
        assert sorted(provider.asked) == ["searcher-1", "small-1", "small-2", "writer-1"]
        provider.begins.set()
        provider.ends.set()


async def test_when_the_first_fails_the_next_goes_ahead() -> None:
    """A failed or cancelled request holds nobody back, and the cache is warmed by the next one."""
    provider = Provider()
    provider.failing = {"searcher-0"}
    client = CacheWarmingClient(provider)
    tasks = [asyncio.create_task(client.generate(asked(f"searcher-{number}"))) for number in range(4)]
    await settled()
    provider.begins.set()
    await settled()
    provider.ends.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], ModelError)
    assert results[1:] == [TURN] * 3
    assert provider.asked[:2] == ["searcher-0", "searcher-1"]


async def test_a_cancelled_first_one_lets_the_next_go() -> None:
    """Who is cancelled before its reply begins is no longer waited for."""
    provider = Provider()
    client = CacheWarmingClient(provider)
    first, second = (asyncio.create_task(client.generate(asked(f"searcher-{number}"))) for number in range(2))
    await settled()
    first.cancel()
    await settled()
    assert provider.asked == ["searcher-0", "searcher-1"]
    provider.begins.set()
    provider.ends.set()
    assert await second == TURN


async def test_nobody_is_held_for_long() -> None:
    """A provider that is silent delays the others by a bounded time only."""
    provider = Provider()
    client = CacheWarmingClient(provider, hold_s=0.05)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(client.generate(asked(f"searcher-{number}"))) for number in range(3)]
        await asyncio.wait_for(provider.all_asked.wait(), HOLD_S)
        provider.begins.set()
        provider.ends.set()
    assert all(task.result() is TURN for task in tasks)


async def test_a_head_that_was_not_used_for_long_is_warmed_again() -> None:
    """Entries live for five minutes: after a pause one goes ahead once more."""
    now = 0.0
    provider = Provider()
    client = CacheWarmingClient(provider, lambda: now)
    provider.begins.set()
    provider.ends.set()
    await client.generate(asked("searcher-1"))
    for later_s, go_at_once in ((STAYS_WARM_S - 1, 2), (2 * STAYS_WARM_S, 1)):
        now = later_s
        provider.begins.clear()
        provider.asked.clear()
        async with asyncio.TaskGroup() as group:
            for number in (2, 3):
                group.create_task(client.generate(asked(f"searcher-{number}")))
            await settled()
            assert len(provider.asked) == go_at_once
            provider.begins.set()


async def test_only_the_vendors_own_servers_are_warmed() -> None:
    """Anthropic and OpenAI have a cache that all requests of a key share; a server on someone's own machine may not."""
    own, other = Settings(), Settings(services=Services(openai_url="http://127.0.0.1:9/v1"))
    async with Clients(model_setup(own)) as clients, Clients(model_setup(other)) as local:
        own_refs = [ModelRef(provider, "m") for provider in ("anthropic", "openai")]
        await clients.open(own_refs)
        await local.open([ModelRef("openai", "m")])
        for ref in own_refs:
            assert isinstance(clients.client_for(ref), CacheWarmingClient)
        assert not isinstance(local.client_for(ModelRef("openai", "m")), CacheWarmingClient)
