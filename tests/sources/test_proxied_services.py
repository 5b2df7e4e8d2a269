"""What else goes through the user's proxy: ddgs, spans, Reddit, the doctor's probes; and proxies behind TLS."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr

from explorer.cli.commands.probes import problem_at
from explorer.llm.anthropic.messages import AnthropicClient
from explorer.llm.openai.chat import OpenAIClient
from explorer.llm.openai.responses import ResponsesClient
from explorer.llm.options import ClientOptions
from explorer.observe.spans import Span, SpanKind
from explorer.observe.tracing import Collector, SpanExporter
from explorer.schema.errors import ModelError
from explorer.schema.network import Network
from explorer.sources.http.caller import Caller
from explorer.sources.reddit.api import Access, RedditSession
from explorer.sources.search.ddgs import DdgsSearch
from explorer.sources.search.port import SearchFailedError, WebQuery
from sources.loopback import Answer, no_pause, serving
from sources.proxy_server import ForwardProxy, certify, proxy_to, tls_server
from sources.public_network import PublicNetwork
from sources.test_proxies import CHAT, LOGIN, MESSAGES, PUBLIC, REQUEST, web_over

REDDIT, SPANS, ENGINE, SITE = "oauth.reddit.com", "spans.example", "html.duckduckgo.com", "site.example"
SERVICE = "api.model.example"
NAMES = (REDDIT, "www.reddit.com", SPANS, ENGINE, SITE, SERVICE, "localhost")
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
A_SPAN = Span(b"t" * 16, b"s" * 8, b"", "a", SpanKind.INTERNAL, NOON, NOON, {})
HITS = (
    b"<html><body><div class='result__body body'><h2>Glue</h2>"
    b"<a href='https://a.example/glue'>All of it.</a></div></body></html>"
)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, a certificate for all names, and the authority as a folder with OpenSSL's names."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not here")
    folder = tmp_path_factory.mktemp("tls")
    certify(folder, *NAMES)
    (folder / "authorities").mkdir()
    shutil.copy(folder / "ca.pem", folder / "authorities")
    subprocess.run(["openssl", "rehash", folder / "authorities"], check=True, capture_output=True)
    return folder


@asynccontextmanager
async def behind(
    papers: Path, body: bytes, kind: str, *hosts: str, is_tls: bool = False
) -> AsyncGenerator[tuple[ForwardProxy, Network]]:
    """A proxy with a login, a server behind it that stands for hosts, and the network of a user there."""
    async with (
        tls_server(papers / "server.pem", body, kind) as server,
        proxy_to(dict.fromkeys(hosts, server.port), LOGIN, papers / "server.pem" if is_tls else None) as proxy,
    ):
        yield proxy, proxy.network(login=LOGIN, ca=papers / "ca.pem")


def by_folder(network: Network, papers: Path) -> Network:
    """The same network with its authorities in a folder."""
    return network.model_copy(update={"ca_file": "", "ca_dir": str(papers / "authorities")})


@pytest.mark.slow
async def test_ddgs_goes_through_a_tunnel(papers: Path) -> None:
    """The package's own client uses the proxy, its login and the user's authorities, in a file or in a folder."""
    pytest.importorskip("ddgs", reason="the extra ddgs is not installed")
    async with behind(papers, HITS, "text/html", ENGINE) as (proxy, network):
        for one in (network, by_folder(network, papers)):
            answer = await DdgsSearch(network=one).search(WebQuery("glue"))
            assert [hit.url for hit in answer.hits] == ["https://a.example/glue"]
        assert f"CONNECT {ENGINE}:443 HTTP/1.1" in proxy.seen
        for wrong in (proxy.network(login="me:wrong", ca=papers / "ca.pem"), proxy.network(login=LOGIN)):
            with pytest.raises(SearchFailedError):
                await DdgsSearch(network=wrong).search(WebQuery("glue"))


async def test_spans_go_through_a_tunnel(papers: Path) -> None:
    """A collector outside is reached through the proxy, and one in NO_PROXY is not asked of it."""
    stated: list[str] = []
    async with behind(papers, b"", "application/x-protobuf", SPANS) as (proxy, network):
        for one in (network, by_folder(network, papers)):
            sender = SpanExporter(Collector(f"https://{SPANS}/v1/traces", network=one), stated.append)
            async with sender.open():
                sender.take(A_SPAN)
        assert stated == []
        assert proxy.seen == [f"CONNECT {SPANS}:443 HTTP/1.1"] * 2
        excepted = network.model_copy(update={"no_proxy": (SPANS,)})
        sender = SpanExporter(Collector(f"https://{SPANS}/v1/traces", network=excepted), stated.append)
        async with sender.open():
            sender.take(A_SPAN)
    assert len(stated) == 1
    assert len(proxy.seen) == 2


async def test_reddit_goes_through_a_tunnel(papers: Path) -> None:
    """The token and the API are asked through the proxy, whose login reaches neither."""
    token = json.dumps({"access_token": "t0ken", "expires_in": 3_600}).encode()
    names = PublicNetwork({REDDIT: [[PUBLIC]], "www.reddit.com": [[PUBLIC]]}, {})
    async with behind(papers, token, "application/json", REDDIT, "www.reddit.com") as (proxy, network):
        session = RedditSession(names.guard(), Access("", "app", "secret", Caller(network)), pause=no_pause)
        try:
            assert json.loads(await session.get("/x", {}))["access_token"] == "t0ken"
        finally:
            await session.aclose()
    assert set(proxy.seen) == {"CONNECT www.reddit.com:443 HTTP/1.1", f"CONNECT {REDDIT}:443 HTTP/1.1"}


async def test_probes_go_the_way_of_the_work(papers: Path) -> None:
    """The doctor asks through the proxy; what is in NO_PROXY or fails there is told with its cause."""
    async with behind(papers, b"", "text/plain", SERVICE) as (proxy, network):
        plain = await _in_thread(proxy.network(), f"http://{SERVICE}/v1")
        assert "HTTP_PROXY=http://USER:PASSWORD@HOST:PORT" in plain
        proxy.seen.clear()
        assert await _in_thread(network, f"https://{SERVICE}/v1") == ""
        assert proxy.seen == [f"CONNECT {SERVICE}:443 HTTP/1.1"]
        wrong = await _in_thread(proxy.network(login="me:wrong", ca=papers / "ca.pem"), f"https://{SERVICE}/v1")
        stranger = await _in_thread(proxy.network(login=LOGIN), f"https://{SERVICE}/v1")
        excepted = network.model_copy(update={"no_proxy": (".example",)})
        direct = await _in_thread(excepted, f"https://{SERVICE}/v1")
    assert wrong.startswith("the proxy http://127.0.0.1")
    assert wrong.endswith("does not accept the user name and password in HTTPS_PROXY")
    assert "SSL_CERT_FILE" in stranger
    assert direct == f"the host name {SERVICE} cannot be resolved"
    assert LOGIN not in f"{wrong}{stranger}{direct}"


async def _in_thread(network: Network, url: str) -> str:
    return await asyncio.to_thread(problem_at, network, url)


Client = Callable[[ClientOptions], AnthropicClient | OpenAIClient | ResponsesClient]


@pytest.mark.parametrize(("make", "body"), [(AnthropicClient, MESSAGES), (OpenAIClient, CHAT)])
@pytest.mark.parametrize("is_folder", [False, True])
async def test_models_through_a_proxy_with_tls(papers: Path, make: Client, body: bytes, is_folder: bool) -> None:  # noqa: FBT001
    """Where the proxy itself is spoken to over TLS, its certificate is checked by the user's authorities as well."""
    async with behind(papers, body, "text/event-stream", SERVICE, is_tls=True) as (proxy, network):
        here = by_folder(network, papers) if is_folder else network
        options = ClientOptions(f"https://{SERVICE}", SecretStr("sk-of-nobody"), network=here)
        async with make(options) as client:
            for _ in range(2):
                assert (await client.generate(REQUEST)).text == "Through."
        assert set(proxy.seen) == {f"CONNECT {SERVICE}:443 HTTP/1.1"}
        unknown = replace(options, network=proxy.network(login=LOGIN))
        async with make(unknown) as client:
            with pytest.raises(ModelError) as caught:
                await client.generate(REQUEST)
    assert "SSL_CERT_FILE" in caught.value.hint


async def test_pages_through_a_proxy_with_tls(papers: Path) -> None:
    """Plain pages and pages with TLS, behind authorities in a folder."""
    names = PublicNetwork({SITE: [[PUBLIC]], SERVICE: [[PUBLIC]]}, {})
    async with behind(papers, b"hello", "text/plain", SERVICE, is_tls=True) as (proxy, network):
        with serving({"/a": Answer(b"hello")}) as site:
            proxy.hosts = {**proxy.hosts, SITE: site.port}
            async with web_over(by_folder(network, papers), names) as web:
                assert (await web.get(f"https://{SERVICE}/")).body == b"hello"
                assert (await web.get(f"http://{SITE}/a")).body == b"hello"
    assert proxy.seen[-1] == f"GET http://{SITE}/a HTTP/1.1"
