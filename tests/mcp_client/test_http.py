"""MCP servers over HTTP: guarded addresses, bounded answers, tokens that go nowhere else."""

import gzip
import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from explorer.mcp_client.connection import Answer as ToolAnswer
from explorer.mcp_client.connection import ServerConnection, ServerError, connected
from explorer.mcp_client.transports import guard_for, over_http, program
from explorer.sandbox.confinement import Launch
from explorer.schema.errors import ToolError
from explorer.schema.mcp import McpServer
from explorer.schema.network import Network
from sources.loopback import Answer, Handler, Site, as_json, serving

TOOL = {"name": "look", "description": "Looks.", "inputSchema": {"type": "object"}}
REAL = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("real")

@server.tool()
def double(number: int) -> int:
    "Doubles a number."
    return 2 * number

server.run(**({"transport": "streamable-http", "port": int(sys.argv[1])} if sys.argv[1:] else {}))
"""


class McpSite:
    """Answers the protocol's requests in JSON."""

    def __init__(self, called: Answer | None = None) -> None:
        self._called = called
        self.site: Site | None = None

    def __call__(self, _handler: Handler) -> Answer:
        """Answer one request."""
        assert self.site is not None
        request: dict[str, Any] = json.loads(self.site.asked[-1].body or b"{}")
        method = request.get("method", "")
        if method == "initialize":
            about = {"name": "x", "version": "1"}
            version = request["params"]["protocolVersion"]
            return self._result(
                request, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            )
        if method == "tools/list":
            return self._result(request, {"tools": [TOOL]})
        if method == "tools/call":
            text = {"content": [{"type": "text", "text": "17 days"}]}
            return self._called or self._result(request, text)
        if "id" in request:
            return as_json({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}})
        return Answer(b"", 202)

    def _result(self, request: dict[str, Any], result: dict[str, Any]) -> Answer:
        return as_json({"jsonrpc": "2.0", "id": request["id"], "result": result})


@asynccontextmanager
async def opened(url: str, **headers: str) -> AsyncGenerator[ServerConnection]:
    """A connection to a server over HTTP."""
    server = McpServer(name="far", url=url, headers={name: SecretStr(value) for name, value in headers.items()})
    async with connected(server, partial(over_http, server, (), Network())) as connection:
        yield connection


@asynccontextmanager
async def at(mcp_site: McpSite, **headers: str) -> AsyncGenerator[tuple[ServerConnection, Site]]:
    """A connection to such a site."""
    with serving({"/mcp": mcp_site}) as site:
        mcp_site.site = site
        async with opened(f"{site.url}/mcp", **headers) as connection:
            yield connection, site


async def test_a_tool_is_called_with_the_token() -> None:
    """Each request has it; answers are not asked for in a compressed form."""
    async with at(McpSite(), Authorization="Bearer far-token-1") as (connection, site):
        assert await connection.call("look", {}, print, may_repeat=True) == ToolAnswer("17 days", is_error=False)
    assert {one.headers.get("authorization") for one in site.asked} == {"Bearer far-token-1"}
    assert {one.headers.get("accept-encoding") for one in site.asked} == {"identity"}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(Answer(b"no", 401), "its token is missing or not accepted: HTTP status 401", id="401"),
        pytest.param(
            Answer(gzip.compress(b"x" * 1000), headers={"Content-Encoding": "gzip"}, content_type="application/json"),
            "compressed answer",
            id="compressed",
        ),
        pytest.param(
            Answer(b"x" * 33_600_000, content_type="application/json"),
            "more than 33,554,432 bytes in one answer",
            id="long",
            marks=pytest.mark.slow,
        ),
        pytest.param(Answer(b"<html>", 200), "Unexpected content type", id="page"),
    ],
)
async def test_answers_that_are_none(answer: Answer, words: str) -> None:
    """Each is one line, and the call is not made again."""
    mcp_site = McpSite(answer)
    async with at(mcp_site) as (connection, site):
        with pytest.raises(ServerError, match=words):
            await connection.call("look", {}, print, may_repeat=False)
    called = [one for one in site.asked if b"tools/call" in one.body]
    assert len(called) == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(b"{", content_type="application/json"), id="no_message"),
        pytest.param(Answer(b"<html>"), id="page"),
        pytest.param(Answer(b"bad gateway", 502), id="proxy"),
        pytest.param(
            as_json({"jsonrpc": "2.0", "id": 0, "error": {"code": -32603, "message": "crash"}}, 500), id="crash"
        ),
    ],
)
async def test_an_effect_without_a_result_is_unknown(answer: Answer) -> None:
    """The call may have been made: its agent is told to look before it does that again."""
    async with at(McpSite(answer)) as (connection, _site):
        with pytest.raises(ServerError, match="Whether the call took effect is unknown"):
            await connection.call("look", {}, print, may_repeat=False)


@pytest.mark.parametrize("answer", [Answer(b"no", 401), Answer(b"too many", 429)])
async def test_a_request_that_was_not_taken_had_no_effect(answer: Answer) -> None:
    """A refusal by status is one, and nothing has to be looked at."""
    async with at(McpSite(answer)) as (connection, _site):
        with pytest.raises(ServerError) as refused:
            await connection.call("look", {}, print, may_repeat=False)
    assert "unknown" not in refused.value.message


HALF = {"content": [{"type": "text", "text": "17 \ud83d days, \U0001f600, C:\\ud83d, caf\xe9"}]}


@pytest.mark.parametrize(("content_type", "form"), [("application/json", "%s"), ("text/event-stream", "data: %s\n\n")])
async def test_an_answer_with_half_a_pair_of_surrogates_is_read(content_type: str, form: str) -> None:
    """The half is replaced; whole pairs and text that looks like an escape stay."""

    class Half(McpSite):
        def _result(self, request: dict[str, Any], result: dict[str, Any]) -> Answer:
            if "content" not in result:
                return super()._result(request, result)
            message = {"jsonrpc": "2.0", "id": request["id"], "result": HALF}
            return Answer((form % json.dumps(message)).encode(), content_type=content_type)

    async with at(Half()) as (connection, _site):
        found = await connection.call("look", {}, print, may_repeat=True)
    assert found.text == "17 ? days, \U0001f600, C:\\ud83d, caf\xe9"


async def test_a_stream_that_ends_over_and_over_is_left() -> None:
    """A server that asks to be connected again at once, without an end, gets no loop of requests."""
    again = Answer(b"retry: 0\nid: 1\ndata:\n\n", content_type="text/event-stream")

    class Ending(McpSite):
        def __call__(self, handler: Handler) -> Answer:
            return again if handler.command == "GET" else super().__call__(handler)

    async with at(Ending(again)) as (connection, site):
        with pytest.raises(ServerError, match="reconnection attempts were exhausted"):
            await connection.call("look", {}, print, may_repeat=False)
    after = [index for index, one in enumerate(site.asked) if b"tools/call" in one.body][-1]
    assert len(site.asked) - after < 30


async def test_a_redirect_to_another_server_is_not_followed() -> None:
    """So no token goes there."""
    with serving({"/mcp": McpSite()}) as other:
        elsewhere = Answer(b"", 307, headers={"Location": f"http://localhost:{other.port}/mcp"})
        async with at(McpSite(elsewhere), Authorization="Bearer far-token-1") as (connection, _site):
            with pytest.raises(ServerError, match="not followed"):
                await connection.call("look", {}, print, may_repeat=True)
        assert other.asked == []


async def test_a_server_that_is_not_there() -> None:
    """The error says what was seen of the connection."""
    async with opened("http://127.0.0.1:9/mcp") as connection:
        with pytest.raises(ServerError, match=r"cannot be used: .*connect"):
            await connection.tools()


async def test_internal_addresses() -> None:
    """One may be reached where the user wrote it, and only there; a token needs encryption elsewhere."""
    assert guard_for(McpServer(name="a", url="http://127.0.0.1:8000/mcp"), ()).is_allowed_host("127.0.0.1")
    assert not guard_for(McpServer(name="a", url="http://127.0.0.1:8000/mcp"), ()).is_allowed_host("10.0.0.1")
    public = McpServer(name="a", url="https://mcp.example.com/mcp", headers={"Authorization": SecretStr("x")})
    assert not guard_for(public, ()).is_allowed_host("mcp.example.com")
    with pytest.raises(ToolError, match="without encryption"):
        guard_for(public.model_copy(update={"url": "http://mcp.example.com/mcp"}), ())


@pytest.mark.slow
async def test_the_sdks_own_server(tmp_path: Path, unused_tcp_port: int) -> None:
    """Over both transports, as users have it."""
    words = (sys.executable, "-c", REAL)
    server = McpServer(name="real", command="python", start_s=300)
    async with connected(server, lambda state: program(Launch(words, {}, tmp_path), state)) as connection:
        assert await connection.call("double", {"number": 4}, print, may_repeat=True) == ToolAnswer("8", is_error=False)
        wrong = await connection.call("double", {"number": "x"}, print, may_repeat=True)
        assert wrong.is_error
    far = [*words, str(unused_tcp_port)]
    with subprocess.Popen(far, stderr=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220 - of the test
        assert process.stderr is not None
        while "running on" not in process.stderr.readline():
            assert process.poll() is None
        async with opened(f"http://127.0.0.1:{unused_tcp_port}/mcp") as connection:
            assert [*await connection.tools()] == ["double"]
            assert (await connection.call("double", {"number": 21}, print, may_repeat=False)).text == "42"
        process.kill()
