"""Behind a proxy and an authority of the user's own network: sources, models and services, and what is refused."""

import asyncio
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from command import environment, explorer
from explorer.llm.anthropic.messages import AnthropicClient
from explorer.llm.model_list import list_models
from explorer.llm.openai.chat import OpenAIClient
from explorer.llm.options import ClientOptions
from explorer.network.client_options import check_network, ssl_context
from explorer.network.guard import UrlRefusedError
from explorer.network.transport import GuardedTransport
from explorer.schema.errors import ConfigError, ModelError, ModelFault, ToolError
from explorer.schema.messages import Request, UserText
from explorer.schema.network import Network, network_of
from explorer.schema.settings import Settings
from explorer.sources.http.api_client import ApiRules
from explorer.sources.http.caller import Caller
from explorer.sources.http.fetch import FetchPolicy, Web
from explorer.sources.search.port import SearchFailedError, WebQuery
from explorer.sources.search.tavily import TavilySearch
from sources.loopback import Answer, closed_port, no_pause, serving
from sources.proxy_server import PASSWORD, certify, proxy_to, tls_server
from sources.public_network import PublicNetwork

SITE, SERVICE, PUBLIC = "site.example", "api.model.example", "93.184.215.14"
LOGIN = f"me:{PASSWORD}"
CHOICES: tuple[dict[str, object], ...] = (
    {"index": 0, "delta": {"role": "assistant", "content": "Through."}},
    {"index": 0, "delta": {}, "finish_reason": "stop"},
)
CHAT = b"".join(f"data: {json.dumps({'choices': [choice]})}\n\n".encode() for choice in CHOICES) + b"data: [DONE]\n\n"
MESSAGES = b"".join(
    f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
    for event in (
        {
            "type": "message_start",
            "message": {"id": "m", "model": "c", "usage": {"input_tokens": 1, "output_tokens": 1}},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Through."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )
)
REQUEST = Request(
    agent="a", role="r", model="m", system="s", tools=(), history=(UserText(text="Hello"),), max_output_tokens=1_024
)
Client = Callable[[ClientOptions], AnthropicClient | OpenAIClient]


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority and a certificate for the service."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not here")
    folder = tmp_path_factory.mktemp("tls")
    certify(folder, SERVICE)
    return folder


def web_over(network: Network, names: PublicNetwork | None = None) -> Web:
    """A web behind a network; names are looked up in a table, so nothing leaves this machine."""
    guard = (names or PublicNetwork({SITE: [[PUBLIC]], SERVICE: [[PUBLIC]]}, {})).guard()
    transport = GuardedTransport(guard, outbound=network)
    return Web(guard, transport=transport, pause=no_pause, fetch_policy=FetchPolicy(caller=Caller(network)))


async def test_pages_go_through_the_proxy() -> None:
    """A page is asked of the proxy by its name, with our own name, and the proxy's login does not reach the site."""
    with serving({"/a": Answer(b"hello")}) as site:
        async with proxy_to({SITE: site.port}, LOGIN) as proxy:
            caller = Caller(proxy.network(login=LOGIN), "me@example.org")
            guard = PublicNetwork({SITE: [[PUBLIC]]}, {}).guard()
            async with Web(guard, pause=no_pause, fetch_policy=FetchPolicy(caller=caller)) as web:
                fetched = await web.get(f"http://{SITE}/a")
        assert fetched.body == b"hello"
        assert f"GET http://{SITE}/a HTTP/1.1" in proxy.seen
        asked = site.asked[-1].headers
        assert asked["user-agent"].startswith("explorer/")
        assert "(me@example.org)" in asked["user-agent"]
        assert not [name for name in asked if name.startswith("proxy-")]


async def test_tls_goes_through_a_tunnel(papers: Path) -> None:
    """The proxy opens a tunnel; the certificate is checked against the user's own authority."""
    async with (
        tls_server(papers / "server.pem", b"hello", "text/plain") as server,
        proxy_to({SERVICE: server.port}) as proxy,
        web_over(proxy.network(ca=papers / "ca.pem")) as web,
    ):
        assert (await web.get(f"https://{SERVICE}/")).body == b"hello"
    assert proxy.seen[0] == f"CONNECT {SERVICE}:443 HTTP/1.1"


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/",
        "https://10.0.0.8/",
        "http://127.0.0.1:8080/",
        "http://[::1]/",
        "http://wiki.corp/",
        "http://metadata.google.internal/",
        "http://2130706433/",
        "http://intern.example/",
        "https://mixed.example/",
    ],
)
async def test_the_guard_holds_before_the_proxy_hears(url: str) -> None:
    """Internal addresses, internal names and names that lead inside are refused; the proxy is asked nothing."""
    names = PublicNetwork({"intern.example": [["10.1.2.3"]], "mixed.example": [[PUBLIC, "192.168.0.9"]]}, {})
    async with proxy_to({}) as proxy, web_over(proxy.network(), names) as web:
        with pytest.raises(UrlRefusedError):
            await web.get(url)
    assert proxy.seen == []


async def test_a_redirect_is_judged_again() -> None:
    """A public page behind the proxy that leads inside is not followed."""
    names = PublicNetwork({SITE: [[PUBLIC]], "intern.example": [["10.1.2.3"]]}, {})
    for target in ("http://169.254.169.254/x", "http://intern.example/x"):
        with serving({"/a": Answer(status=302, headers={"Location": target})}) as site:
            async with proxy_to({SITE: site.port}) as proxy, web_over(proxy.network(), names) as web:
                with pytest.raises(UrlRefusedError):
                    await web.get(f"http://{SITE}/a")
            assert not [line for line in proxy.seen if "/x" in line]


async def test_a_name_that_only_the_proxy_knows() -> None:
    """Where names of the public are not resolved, their full names are passed on; a word alone is not."""
    with serving({"/a": Answer(b"hello")}) as site:
        async with (
            proxy_to({"far.example": site.port, "printer": site.port}) as proxy,
            web_over(proxy.network(), PublicNetwork({}, {})) as web,
        ):
            assert (await web.get("http://far.example/a")).body == b"hello"
            with pytest.raises(UrlRefusedError):
                await web.get("http://printer/a")
        assert not [line for line in proxy.seen if "printer" in line]


async def test_hosts_without_proxy_are_judged_and_reached_directly() -> None:
    """What NO_PROXY names goes straight to its judged address, and stays refused where that is an internal one."""
    with serving({"/a": Answer(b"direct")}) as site:
        names = PublicNetwork({SITE: [[PUBLIC]], "in.example": [["10.0.0.1"]]}, {PUBLIC: site.port})
        async with proxy_to({}) as proxy:
            network = proxy.network(no_proxy=(".example",))
            transport = GuardedTransport(names.guard(), network=names, outbound=network)
            async with Web(names.guard(), transport=transport, pause=no_pause) as web:
                assert (await web.get(f"http://{SITE}/a")).body == b"direct"
                with pytest.raises(UrlRefusedError):
                    await web.get("http://in.example/a")
        assert (proxy.seen, names.connected) == ([], [PUBLIC])


@pytest.mark.parametrize("url", [f"http://{SITE}/a", f"https://{SERVICE}/"])
@pytest.mark.parametrize(
    ("login", "words"), [("", "needs a user name and a password"), (f"me:{PASSWORD}-wrong", "does not accept")]
)
async def test_a_proxy_that_wants_a_login(url: str, login: str, words: str) -> None:
    """407 is told with the variable to correct, and no password is in the words."""
    async with proxy_to({}, LOGIN) as proxy, web_over(proxy.network(login=login)) as web:
        with pytest.raises(ToolError, match=words) as caught:
            await web.get(url)
    assert ("HTTPS_PROXY" if url.startswith("https") else "HTTP_PROXY") in caught.value.message
    assert PASSWORD not in f"{caught.value.message} {caught.value.__cause__!r}"


async def test_a_proxy_that_is_down() -> None:
    """The proxy and its variable are named, not the site."""
    network = network_of({"https_proxy": f"me:{PASSWORD}@127.0.0.1:{closed_port()}"})
    async with web_over(network) as web:
        with pytest.raises(
            ToolError, match=r"the proxy http://127\.0\.0\.1:\d+ \(https_proxy\) cannot be reached"
        ) as caught:
            await web.get(f"https://{SERVICE}/")
    assert PASSWORD not in caught.value.message


async def test_an_authority_that_is_not_known(papers: Path) -> None:
    """Without the authority the words name the variable; with another one, its value."""
    other = papers / "other"
    other.mkdir()
    certify(other, SERVICE)
    async with (
        tls_server(papers / "server.pem", b"hello", "text/plain") as server,
        proxy_to({SERVICE: server.port}) as proxy,
    ):
        for ca, words in (
            (None, "set SSL_CERT_FILE"),
            (other / "ca.pem", "add the authority that signed it to SSL_CERT_FILE="),
        ):
            async with web_over(proxy.network(ca=ca)) as web:
                with pytest.raises(ToolError, match=words):
                    await web.get(f"https://{SERVICE}/")


@pytest.mark.parametrize(("make", "body"), [(AnthropicClient, MESSAGES), (OpenAIClient, CHAT)])
async def test_models_through_a_tunnel(papers: Path, make: Client, body: bytes) -> None:
    """The vendors' SDKs over aiohttp use the proxy, its login and the authority that are handed in, twice in a row."""
    async with (
        tls_server(papers / "server.pem", body, "text/event-stream") as server,
        proxy_to({SERVICE: server.port}, LOGIN) as proxy,
    ):
        network = proxy.network(login=LOGIN, ca=papers / "ca.pem")
        options = ClientOptions(f"https://{SERVICE}", SecretStr("sk-of-nobody"), network=network)
        async with make(options) as client:
            for _ in range(2):
                assert (await client.generate(REQUEST)).text == "Through."
    assert set(proxy.seen) == {f"CONNECT {SERVICE}:443 HTTP/1.1"}
    assert not [head for head in server.heads if "proxy-authorization" in head.lower()]


@pytest.mark.slow
@pytest.mark.parametrize("make", [AnthropicClient, OpenAIClient])
async def test_what_is_in_the_way_of_a_model_is_named(papers: Path, make: Client) -> None:
    """A wrong login and a certificate of nobody are refusals, not asked again; a proxy that is down is named."""

    async def failure(network: Network, scheme: str = "https") -> ModelError:
        options = ClientOptions(f"{scheme}://{SERVICE}", SecretStr("sk-of-nobody"), network=network)
        async with make(options) as client:
            with pytest.raises(ModelError) as caught:
                await client.generate(REQUEST)
        assert PASSWORD not in f"{caught.value.message} {caught.value.hint}"
        return caught.value

    async with (
        tls_server(papers / "server.pem", CHAT, "text/event-stream") as server,
        proxy_to({SERVICE: server.port}, LOGIN) as proxy,
        proxy_to({SERVICE: server.port}) as open_proxy,
    ):
        for scheme, variable in (("https", "HTTPS_PROXY"), ("http", "HTTP_PROXY")):
            wrong = await failure(proxy.network(login=f"me:{PASSWORD}-wrong"), scheme)
            assert (wrong.fault, variable in wrong.message) == (ModelFault.REJECTED, True)
        stranger = await failure(open_proxy.network())
        assert stranger.is_wrong_server
        assert "SSL_CERT_FILE" in stranger.hint
    down = await failure(network_of({"HTTPS_PROXY": f"http://me:{PASSWORD}@127.0.0.1:{closed_port()}"}))
    assert (down.fault, "HTTPS_PROXY" in down.message) == (ModelFault.TRANSPORT, True)


@pytest.mark.slow
async def test_services_and_lists_through_a_tunnel(papers: Path) -> None:
    """Tavily's SDK and the list of models go the same way; a login that is missing is told with its variable."""
    found = json.dumps(
        {"results": [{"title": "T", "url": "https://t.example/", "content": "c"}], "data": [{"id": "m"}]}
    )
    async with (
        tls_server(papers / "server.pem", found.encode(), "application/json") as server,
        proxy_to({SERVICE: server.port}, LOGIN) as proxy,
    ):
        network = proxy.network(login=LOGIN, ca=papers / "ca.pem")
        assert await list_models(f"https://{SERVICE}/v1", network=network) == ("m",)
        rules = ApiRules(pause=no_pause, caller=Caller(network))
        async with TavilySearch("tvly-of-nobody", f"https://{SERVICE}", rules=rules) as search:
            assert [hit.title for hit in (await search.search(WebQuery("glue"))).hits] == ["T"]
        without = replace(rules, caller=Caller(proxy.network(ca=papers / "ca.pem")))
        async with TavilySearch("tvly-of-nobody", f"https://{SERVICE}", rules=without) as search:
            with pytest.raises(SearchFailedError, match="HTTPS_PROXY"):
                await search.search(WebQuery("glue"))


def test_the_variables() -> None:
    """As in curl: small letters first, ALL_PROXY for the rest, empty for none, NO_PROXY by domain and network."""
    network = network_of(
        {
            "HTTP_PROXY": "http://big:1",
            "http_proxy": "small:2",
            "ALL_PROXY": "http://all:3",
            "NO_PROXY": "Example.org, .corp.test *.star.test,10.0.0.0/8,plain.test:8080",
        }
    )
    through = {url: str(network.proxy_for(url) or "") for url in (
        "http://a.test/", "https://a.test/", "https://example.org/", "https://www.example.org/",
        "https://notexample.org/", "https://x.corp.test/", "https://y.star.test", "http://10.9.9.9/",
        "http://plain.test:8080/", "http://plain.test/", "http://localhost:1/", "https://[::1]/", "http://127.9.9.9/",
    )}  # fmt: skip
    small, every = "the proxy http://small:2 (http_proxy)", "the proxy http://all:3 (ALL_PROXY)"
    assert list(through.values()) == [small, every, "", "", every, "", "", "", "", small, "", "", ""]
    assert network_of({"ALL_PROXY": "http://all:3", "https_proxy": ""}).proxy_for("https://a.test/") is None
    assert network_of({"HTTP_PROXY": "http://x:1", "REQUEST_METHOD": "GET"}).proxy_for("http://a.test/") is None
    assert network_of({"HTTPS_PROXY": "http://x:1", "NO_PROXY": "*"}).proxy_for("https://a.test/") is None
    login = network_of({"HTTPS_PROXY": "http://me:p%40ss%2Fword@x:1"})
    assert login.https_proxy is not None
    assert login.https_proxy.login == ("me", "p@ss/word")
    assert login.secrets() == ["p@ss/word", "p%40ss%2Fword"]


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"ALL_PROXY": f"socks5://me:{PASSWORD}@h:1"}, "ALL_PROXY cannot be used: socks5:// proxies are not supported"),
        ({"https_proxy": f"http://me:{PASSWORD}@h:port"}, "https_proxy cannot be used: it is not a valid URL"),
        ({"HTTP_PROXY": "http://"}, "HTTP_PROXY cannot be used: it names no host"),
        ({"SSL_CERT_FILE": "/nowhere/ca.pem"}, "SSL_CERT_FILE cannot be used: there is no such file: /nowhere/ca.pem"),
        ({"SSL_CERT_FILE": __file__}, "SSL_CERT_FILE cannot be used: it contains no certificates"),
    ],
)
def test_what_cannot_be_used_is_refused_at_the_start(variables: dict[str, str], words: str) -> None:
    """Before a run, with the variable and without its password; a value that nothing needs is not judged."""
    network = network_of(variables)
    with pytest.raises(ConfigError) as caught:
        check_network(network)
    assert caught.value.message.startswith(words)
    assert PASSWORD not in f"{caught.value.message} {caught.value.hint}"


def test_an_authority_replaces_those_of_the_system(papers: Path) -> None:
    """With SSL_CERT_FILE nobody else is trusted; the settings that are recorded do not hold the network."""
    network = Network(ca_file=str(papers / "ca.pem"))
    (only,) = ssl_context(network).get_ca_certs()
    assert "authority" in str(only)
    assert "network" not in Settings(network=network).public()


@pytest.mark.slow
async def test_from_the_command_line(tmp_path: Path) -> None:
    """A process behind a proxy finds its models and shows its way; the password is in nothing that it writes."""
    models = Answer(json.dumps({"data": [{"id": "llama-of-ours"}]}).encode(), content_type="application/json")
    with serving({"/v1/models": models}) as site:
        async with proxy_to({SERVICE: site.port}, LOGIN) as proxy:
            address = proxy.url.replace("//", f"//{LOGIN}@")
            settings = {"HTTP_PROXY": address, "OPENAI_BASE_URL": f"http://{SERVICE}/v1"}
            assert "HTTP_PROXY" in environment(tmp_path, settings)
            done = await _run("models", cwd=tmp_path, settings=settings)
            assert "llama-of-ours" in done[1], done
            assert proxy.seen == [f"GET http://{SERVICE}/v1/models HTTP/1.1"]
            shown = await _run("config", "show", cwd=tmp_path, settings=settings)
            wrong = await _run("models", cwd=tmp_path, settings=settings | {"HTTP_PROXY": proxy.url})
    assert f"http://***@127.0.0.1:{proxy.port}" in shown[1]
    assert wrong[0] != 0
    assert "HTTP_PROXY=http://USER:PASSWORD@HOST:PORT" in wrong[2]
    assert PASSWORD not in f"{done}{shown}{wrong}"


async def _run(*words: str, cwd: Path, settings: dict[str, str]) -> tuple[int, str, str]:
    """Run the command in a thread, beside the proxy."""
    done = await asyncio.to_thread(explorer, *words, cwd=cwd, settings=settings)
    return done.returncode, done.stdout, done.stderr
