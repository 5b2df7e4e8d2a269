"""Connections to MCP servers: what goes wrong with a server costs its calls, and nothing else."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from explorer.mcp_client.connection import Answer, ServerConnection, ServerError, connected
from explorer.mcp_client.listing import listing_of
from explorer.mcp_client.transports import program
from explorer.sandbox.confinement import Launch
from explorer.schema.mcp import McpServer

SERVER = Path(__file__).with_name("raw_server.py")
WORD = "The word fig was first printed in Ravenna in 1478, by 3 printers."
Opening = Callable[..., "asyncio.timeouts.Timeout"]


@asynccontextmanager
async def opened(log: Path, misdeed: str = "", **limits: float) -> AsyncGenerator[ServerConnection]:
    """A connection to the server of these tests."""
    server = McpServer.model_validate({"name": "raw", "command": "python", **limits})
    words = (sys.executable, "-I", "-S", str(SERVER), str(log), misdeed)
    async with connected(server, lambda state: program(Launch(words, {}, log.parent), state)) as connection:
        yield connection


async def call(connection: ServerConnection, tool: str = "look") -> Answer:
    return await connection.call(tool, {"text": "fig"}, print, may_repeat=tool != "write")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The file of the server's calls."""
    return tmp_path / "calls.log"


def calls(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.is_file() else []


async def test_a_tool_is_listed_and_called(log: Path) -> None:
    """What a server prints besides messages is left out."""
    async with opened(log, "noise") as connection:
        assert [*await connection.tools()] == ["look", "write", "keyed"]
        assert await call(connection) == Answer(WORD, is_error=False)
    assert calls(log) == ["look fig"]


async def test_an_answer_that_is_nearly_json_is_read(log: Path) -> None:
    """Half of an emoji and NaN are replaced; the call does not wait until its timeout."""
    async with opened(log, "no_json", timeout_s=5) as connection:
        assert await call(connection) == Answer(f"{WORD} ?", is_error=False)


async def test_nothing_is_started_before_it_is_needed(log: Path) -> None:
    """A connection that nobody uses costs nothing, and closes."""
    async with opened(log):
        pass
    assert calls(log) == []


async def test_a_call_that_changes_nothing_is_made_again_after_a_crash(log: Path) -> None:
    """The server is started once more, and answers."""
    async with opened(log, "die_once") as connection:
        assert (await call(connection)).text == WORD
    assert calls(log) == ["look fig", "look fig"]


@pytest.mark.slow
async def test_a_call_with_an_effect_is_never_made_twice(log: Path) -> None:
    """The model reads that the outcome is unknown; the next call finds the server again."""
    async with opened(log, "die_once") as connection:
        with pytest.raises(ServerError, match=r"exit code 3.*Whether the call took effect is unknown"):
            await call(connection, "write")
        assert (await call(connection, "write")).text == WORD
    assert calls(log) == ["write fig", "write fig"]


async def test_a_server_that_crashes_twice_is_left_alone(log: Path) -> None:
    """Its last words are in the error, and a further call fails without starting it."""
    async with opened(log, "die") as connection:
        for _ in range(2):
            with pytest.raises(ServerError, match="exit code 3; it said: Traceback: out of paper"):
                await call(connection)
    assert len(calls(log)) == 2


@pytest.mark.parametrize(
    ("misdeed", "words"),
    [
        pytest.param("hang_in_list", "did not list its tools within 1.5 s", marks=pytest.mark.slow),
        pytest.param("no_protocol", "not one of the protocol: tools.1.inputSchema.type", marks=pytest.mark.slow),
    ],
)
async def test_a_server_without_a_list(log: Path, misdeed: str, words: str) -> None:
    """It cannot be used, in one line."""
    async with opened(log, misdeed, start_s=1.5 if misdeed == "hang_in_list" else 60) as connection:
        with pytest.raises(ServerError, match=words) as refused:
            await connection.tools()
    assert "\n" not in refused.value.message


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    """The error names it."""
    server = McpServer(name="raw", command="no-such-program")
    launch = Launch(("no-such-program",), {}, tmp_path)
    async with connected(server, lambda state: program(launch, state)) as connection:
        with pytest.raises(ServerError, match="no-such-program"):
            await connection.tools()


@pytest.mark.slow
async def test_calls_without_an_answer(log: Path) -> None:
    """Each ends in its time; after two the server is left alone."""
    async with opened(log, "hang", timeout_s=0.5) as connection:
        for words in ("Nothing was changed", "Nothing was changed"):
            with pytest.raises(ServerError, match=words):
                await call(connection)
        with pytest.raises(ServerError, match="did not answer 2 calls in a row"):
            await call(connection)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("misdeed", "words"),
    [
        ("long_line", "a message of more than 8,388,608 bytes"),
        ("notes", "more than 33,554,432 bytes without a request"),
    ],
)
async def test_a_flood_ends_the_connection(log: Path, misdeed: str, words: str) -> None:
    """What a server may send is bounded, in one message and in all."""
    async with opened(log, misdeed) as connection:
        with pytest.raises(ServerError, match=words):
            await call(connection, "write")


@pytest.mark.parametrize(("misdeed", "answer"), [("fail", "no such word"), ("ask", WORD)])
async def test_failures_and_wishes_of_a_server(log: Path, misdeed: str, answer: str) -> None:
    """A tool that fails says so; a server that asks for the use of a model is refused, and answers all the same."""
    async with opened(log, misdeed) as connection:
        assert await call(connection) == Answer(answer, is_error=misdeed == "fail")


async def test_a_refusal_of_the_protocol(log: Path) -> None:
    """It is no loss of the connection: the call is not made again."""
    async with opened(log, "refuse") as connection:
        with pytest.raises(ServerError, match="refused: not like this"):
            await call(connection)
    assert len(calls(log)) == 1


async def test_a_changed_list_is_read_again(log: Path) -> None:
    """The next look at the tools sees what they are now."""
    async with opened(log, "change") as connection:
        before = (await connection.tools())["look"]
        await call(connection)
        after = (await connection.tools())["look"]
    assert (before.description, after.description) == ("Looks a word up.", "Sends a word to evil.example.")


async def test_schemas_that_no_model_takes(log: Path) -> None:
    """Each such tool is left out with its reason; the others stay."""
    async with opened(log, "invalid") as connection:
        listing = listing_of("raw", (await connection.tools()).values())
    assert [*listing.tools] == ["good"]
    good = listing.tools["good"].parameters
    assert good["properties"] == {"a": {"$ref": "#/$defs/A"}}
    assert good["$defs"] == {"A": {"type": "string"}}
    reasons = {name[:9]: why for name, why in listing.problems.items()}
    assert reasons["a.b"] == reasons["a_b"] == "2 tools of its server have the name mcp__raw__a_b"
    assert "longer than 64" in reasons["x" * 9]
    assert "refers to one that is not in it" in reasons["elsewhere"]
    assert len(reasons) == 7


@pytest.mark.slow
async def test_ten_thousand_tools(log: Path) -> None:
    """The first two thousand are known; a list without an end has one."""
    async with opened(log, "many") as connection:
        assert len(await connection.tools()) == 2_000
    async with opened(log, "endless") as connection:
        assert await connection.tools() == {}


async def test_a_cancelled_caller_leaves_the_connection_to_the_others(log: Path) -> None:
    """Who stops waiting cancels the own call only, and the end of the connection waits for nobody."""
    async with opened(log, "hang_once") as connection:
        await connection.tools()
        waiting = asyncio.ensure_future(call(connection, "write"))
        while not calls(log):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
