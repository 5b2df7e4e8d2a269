"""A public internet on loopback: names and addresses look public, and servers on this machine answer for them.

So the guard, the manners and the connection are tested as they are, without opening any host.
"""

import asyncio
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import httpcore2
import httpx2

from explorer.network.guard import Guard
from explorer.network.transport import GuardedTransport
from explorer.sources.http.fetch import FetchPolicy, Web
from explorer.sources.http.robots import Politeness


@dataclass
class FakeTime:
    """A clock that moves when somebody waits, and says for how long."""

    now: float = 1_000.0
    waits: list[float] = field(default_factory=list[float])

    def clock(self) -> float:
        """Seconds."""
        return self.now

    async def pause(self, seconds: float) -> None:
        """Wait without waiting."""
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class PublicNetwork(httpcore2.AsyncNetworkBackend):
    """Names with the addresses each lookup gives in turn, the last for ever; and addresses with a server's port."""

    def __init__(self, names: Mapping[str, Sequence[Sequence[str]]], servers: Mapping[str, int]) -> None:
        self._names = {name: list(answers) for name, answers in names.items()}
        self._servers = servers
        self._inner: httpcore2.AsyncNetworkBackend = httpcore2.AnyIOBackend()  # pyright: ignore[reportAttributeAccessIssue] - as in transport.py
        self.lookups: list[str] = []
        self.connected: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Look up a name."""
        del port
        self.lookups.append(host)
        answers = self._names.get(host, [[]])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the server that stands for an address; a name is looked up once more, as the system does."""
        del port
        address = host
        if host in self._names:
            address = (await self.resolve(host, 0))[0]
        self.connected.append(address)
        if address not in self._servers:
            raise httpcore2.ConnectError(f"nobody answers at {address}")
        return await self._inner.connect_tcp(
            "127.0.0.1", self._servers[address], timeout, local_address, socket_options
        )

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._inner.sleep(seconds)

    def guard(self) -> Guard:
        """The real guard over these names."""
        return Guard(resolve=self.resolve)

    def web(
        self,
        *,
        guard: Guard | None = None,
        time: FakeTime | None = None,
        politeness: Politeness | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> Web:
        """A web over this network; without politeness unless it is given."""
        guard, time = guard or self.guard(), time or FakeTime()
        trusts_nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        transport = GuardedTransport(guard, ssl_context or trusts_nobody, network=self)
        fetch_policy = FetchPolicy(politeness=politeness)
        return Web(guard, transport=transport, pause=time.pause, clock=time.clock, fetch_policy=fetch_policy)


class Unguarded(Guard):
    """The negative control: every URL passes, and names are left to the connection."""

    def check_url(self, text: str) -> httpx2.URL:
        """Parse."""
        return httpx2.URL(text)

    async def addresses(self, host: str, port: int) -> list[str]:
        """The name itself."""
        del port
        return [host]


class ChecksThenForgets(Guard):
    """The usual mistake, as another negative control: the name is judged, and then looked up once more."""

    async def addresses(self, host: str, port: int) -> list[str]:
        """Judge, and hand out the name."""
        await super().addresses(host, port)
        return [host]
