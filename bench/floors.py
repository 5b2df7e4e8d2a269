"""What the engine is compared with: the same conversations as plain loops, without journal, limits or second thoughts.

`plain-sdk` is the loop of the SDKs' own documentation; `lean-sdk` hands the SDK ready bytes and reads the stream
itself; `bare-http` does without the SDK: a socket for each agent. The last two do what is cheapest: each message is
encoded once, in a conversation's only copy of the bytes that are sent, and events are read by a fast parser.
"""

import asyncio
import importlib.util
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scenarios import HELPER, LEAD, JsonObject, Scenario, prose, tool_text
from wires import ANTHROPIC, OPENAI, PATHS, Call, Heard, compact, result_messages, tool_schema

MODEL = "bench"
MAX_TOKENS = 16_000
MAX_CONNECTIONS = 1_000
TEXT = {"type": "string", "description": "What it is about"}
NUMBER = {"type": "integer", "description": "Which one"}
TOOL_NAMES = ("bench_read", "web_search", "read_webpage", "write_file", "read_file", "call_agent", "finish_exploration")


class Asker(ABC):
    """Asks a model on one wire. The messages are in the wire's own form."""

    def __init__(self, wire: str, url: str) -> None:
        self.wire = wire
        self.url = url

    @abstractmethod
    async def ask(self, conversation: "Conversation") -> tuple[Any, list[Call]]:
        """The assistant's message and its calls."""


class Conversation:
    """One agent's: what it was told, as objects and as the bytes of the next request."""

    def __init__(self, role: str, wire: str) -> None:
        self.system, self.tools = head_of(role, wire)
        self.messages: list[Any] = []
        body: JsonObject = {"model": MODEL, "max_tokens": MAX_TOKENS, "stream": True, "tools": self.tools}
        if wire == ANTHROPIC:
            body |= {"system": [{"type": "text", "text": self.system}], "messages": []}
        else:
            system = {"role": "system", "content": self.system}
            body |= {"stream_options": {"include_usage": True}, "messages": [system]}
        self._bytes = bytearray(compact(body).removesuffix(b"]}"))
        self._encoded = 0
        """How many of the messages are among the bytes."""

    def body(self) -> bytes:
        """The next request: what is new is encoded, and added to what was sent before."""
        for message in self.messages[self._encoded :]:
            self._bytes += b"" if self._bytes.endswith(b"[") else b","
            self._bytes += compact(message)
        self._encoded = len(self.messages)
        return bytes(self._bytes) + b"]}"


def head_of(role: str, wire: str) -> tuple[str, list[JsonObject]]:
    """System text and tools, about as long as the engine's."""
    names = ("bench_read",) if role == HELPER else TOOL_NAMES
    parameters: JsonObject = {"type": "object", "properties": {"text": TEXT, "number": NUMBER}}
    return prose(3, 1_500), [tool_schema(wire, name, prose(5, 300), parameters) for name in names]


class PlainSDK(Asker):
    """As documented: `chat.completions.create` and `messages.stream`."""

    def __init__(self, wire: str, url: str) -> None:
        super().__init__(wire, url)
        self._client = sdk_client(wire, url)

    async def ask(self, conversation: Conversation) -> tuple[Any, list[Call]]:
        """Ask once."""
        ask = self._ask_anthropic if self.wire == ANTHROPIC else self._ask_openai
        return await ask(conversation.system, conversation.tools, conversation.messages)

    async def _ask_openai(self, system: str, tools: list[JsonObject], messages: list[Any]) -> tuple[Any, list[Call]]:
        heard = Heard(OPENAI)
        stream = await self._client.chat.completions.create(
            model=MODEL,
            max_tokens=MAX_TOKENS,
            messages=[{"role": "system", "content": system}, *messages],
            tools=tools,
            stream=True,
            stream_options={"include_usage": True},
        )
        async for chunk in stream:
            for choice in chunk.choices:
                heard.text.append(choice.delta.content or "")
                for call in choice.delta.tool_calls or ():
                    if call.id:
                        heard.heads.append((call.id, call.function.name))
                        heard.pieces.append([])
                    heard.pieces[-1].append(call.function.arguments)
        return heard.message(), heard.calls

    async def _ask_anthropic(self, system: str, tools: list[JsonObject], messages: list[Any]) -> tuple[Any, list[Call]]:
        asked = self._client.messages.stream(
            model=MODEL, max_tokens=MAX_TOKENS, system=system, tools=tools, messages=messages
        )
        async with asked as stream:
            message = await stream.get_final_message()
        calls = [Call(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]
        return {"role": "assistant", "content": message.content}, calls


class LeanSDK(Asker):
    """Ready bytes through the SDK's transport, an own reader, and the better of the SDK's two transports."""

    def __init__(self, wire: str, url: str) -> None:
        super().__init__(wire, url)
        self._client = sdk_client(wire, url, is_lean=True)
        self._path = "/v1/messages" if wire == ANTHROPIC else "/chat/completions"

    async def ask(self, conversation: Conversation) -> tuple[Any, list[Call]]:
        """Ask once."""
        import httpx2  # noqa: PLC0415 - after the SDK

        content = conversation.body()
        response = await self._client.post(
            self._path, content=content, cast_to=httpx2.Response, stream=True, stream_cls=self._stream_class()
        )
        heard = Heard(self.wire)
        rest = b""
        try:
            async for chunk in response.aiter_bytes():
                *events, rest = (rest + chunk).split(b"\n\n")
                for event in events:
                    heard.take(event)
        finally:
            await response.aclose()
        return heard.message(), heard.calls

    def _stream_class(self) -> Any:  # noqa: ANN401 - the SDK's generic
        if self.wire == ANTHROPIC:
            from anthropic import AsyncStream  # noqa: PLC0415 - one wire imports one SDK
        else:
            from openai import AsyncStream  # noqa: PLC0415 - the same
        return AsyncStream[Any]


class BareHTTP(Asker):
    """HTTP/1.1 over a socket of each agent's own."""

    def __init__(self, wire: str, url: str) -> None:
        super().__init__(wire, url)
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._head = f"POST {PATHS[wire]} HTTP/1.1\r\nhost: {self._host}\r\ncontent-type: application/json\r\n"
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, conversation: Conversation) -> tuple[Any, list[Call]]:
        """Ask once."""
        content = conversation.body()
        reader, writer = self._free.pop() if self._free else await asyncio.open_connection(self._host, self._port)
        writer.write(f"{self._head}content-length: {len(content)}\r\n\r\n".encode() + content)
        await reader.readuntil(b"\r\n\r\n")
        heard = Heard(self.wire)
        while size := int(await reader.readline(), 16):
            heard.take((await reader.readexactly(size + 2))[:-4])
        await reader.readline()
        self._free.append((reader, writer))
        return heard.message(), heard.calls


FLOORS: dict[str, type[Asker]] = {"plain-sdk": PlainSDK, "lean-sdk": LeanSDK, "bare-http": BareHTTP}


def sdk_client(wire: str, url: str, *, is_lean: bool = False) -> Any:  # noqa: ANN401 - one of two SDKs
    """An SDK's client: as it comes, or on its aiohttp transport where that is there."""
    has_aiohttp = is_lean and importlib.util.find_spec("aiohttp") is not None
    if wire == ANTHROPIC:
        import anthropic  # noqa: PLC0415 - one wire imports one SDK

        transport = anthropic.DefaultAioHttpClient(limits=_limits()) if has_aiohttp else None
        return anthropic.AsyncAnthropic(api_key="bench", base_url=url, max_retries=0, http_client=transport)
    import openai  # noqa: PLC0415 - the same

    transport = openai.DefaultAioHttpClient(limits=_limits()) if has_aiohttp else None
    return openai.AsyncOpenAI(api_key="bench", base_url=f"{url}/v1", max_retries=0, http_client=transport)


def _limits() -> Any:  # noqa: ANN401 - httpx2's type, imported late
    import httpx2  # noqa: PLC0415 - after the SDK

    return httpx2.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS)


class Floor:
    """Plays a scenario as plain loops."""

    def __init__(self, scenario: Scenario, asker: Asker, folder: Path) -> None:
        self._scenario = scenario
        self._asker = asker
        self._folder = folder
        self.lead_cpu: list[float] = []
        """The process's CPU seconds after each turn of the orchestrator."""

    async def play(self) -> None:
        """From the first request to the last answer."""
        await self._converse(LEAD, self._scenario.opening(LEAD, 0))

    async def _converse(self, role: str, opening: str) -> str:
        wire = self._asker.wire
        conversation = Conversation(role, wire)
        messages = conversation.messages
        messages.append({"role": "user", "content": opening})
        while True:
            message, calls = await self._asker.ask(conversation)
            messages.append(message)
            if role == LEAD:
                self.lead_cpu.append(time.process_time())
            if not calls or calls[0].name == "finish_exploration":
                return str(message["content"])
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._run(call)) for call in calls]
            pairs = zip(calls, tasks, strict=True)
            messages += result_messages(wire, [(call.id, task.result()) for call, task in pairs])

    async def _run(self, call: Call) -> str:
        if call.name == "call_agent":
            arguments = call.arguments
            return (await self._converse(arguments["agent_type"], arguments["task_description"]))[:400]
        if call.name == "write_file":
            path = self._folder / call.arguments["filepath"]
            await asyncio.to_thread(path.write_text, call.arguments["content"])
            return f"Wrote {path.name}."
        if call.name == "read_file":
            return await asyncio.to_thread((self._folder / call.arguments["filepath"]).read_text)
        return tool_text(call.name, call.arguments)


@asynccontextmanager
async def open_floor(kind: str, scenario: Scenario, wire: str, url: str, folder: Path) -> AsyncGenerator[Floor]:
    """A contestant by name."""
    async with AsyncExitStack() as stack:
        asker = FLOORS[kind](wire, url)
        client = getattr(asker, "_client", None)
        if client is not None:
            stack.push_async_callback(client.close)
        yield Floor(scenario, asker, folder)
