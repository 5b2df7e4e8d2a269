"""The MCP server with what the conformance suite asks a server to offer: its tools, resources, prompts and abilities.

explorer's server has other tools and no prompts, so most of the suite's scenarios cannot be tried with it alone. Here
what the scenarios name is registered with the same server, and served by the same transport: the wire, the sessions,
questions to the client and notifications are explorer's. The program listens on a free port, with the token of
EXPLORER_MCP_TOKEN, and keeps runs in the current folder.
"""

import asyncio
import base64
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp_types import (
    INVALID_PARAMS,
    AudioContent,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    ContentBlock,
    EmbeddedResource,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    ImageContent,
    ListPromptsResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    Tool,
    UnsubscribeRequestParams,
)

from explorer.mcp_server.server import ExplorationServer
from explorer.mcp_server.transports import HttpTransport
from explorer.run.hooks import RunHooks
from explorer.run.served import ServedRuns, ServerPlan
from explorer.schema.settings import Settings

Context = ServerRequestContext[Any, Any]
Arguments = Mapping[str, Any]
Handler = Callable[[Context, Arguments], Awaitable[list[ContentBlock]]]
NOTHING: Mapping[str, Any] = MappingProxyType({"type": "object", "properties": {}})
PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
        "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
    )
).decode()
SOUND = base64.b64encode(
    b"RIFF" + (36).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    + bytes.fromhex("01000100401f0000401f000001000800") + b"data" + bytes(4)
).decode()  # fmt: skip
TEXT_URI, IMAGE_URI, TEMPLATE_URI = "test://static-text", "test://static-binary", "test://template/"
NUMBERS: Mapping[str, Any] = MappingProxyType(
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
        },
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": False,
    }
)
USER: dict[str, Any] = {
    "type": "object",
    "properties": {"username": {"type": "string"}, "email": {"type": "string"}},
    "required": ["username", "email"],
}
DEFAULTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}


def _choices(first: str, count: int = 3) -> list[str]:
    return [f"{first}{number}" for number in range(1, count + 1)]


def _titled(word: str) -> list[dict[str, str]]:
    ordinals = ("First", "Second", "Third")
    return [{"const": f"value{number}", "title": f"{one} {word}"} for number, one in enumerate(ordinals, 1)]


ENUMS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": _choices("option")},
        "titledSingle": {"type": "string", "oneOf": _titled("Option")},
        "legacyEnum": {"type": "string", "enum": _choices("opt"), "enumNames": ["One", "Two", "Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _choices("option")}},
        "titledMulti": {"type": "array", "items": {"anyOf": _titled("Choice")}},
    },
}


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _image() -> ImageContent:
    return ImageContent(type="image", data=PIXEL, mime_type="image/png")


def _resource(uri: str, text: str, kind: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=kind, text=text))


def _returns(*content: ContentBlock) -> Handler:
    async def answer(_context: Context, _arguments: Arguments) -> list[ContentBlock]:
        return list(content)

    return answer


async def _fail(_context: Context, _arguments: Arguments) -> list[ContentBlock]:
    raise ValueError("This tool intentionally returns an error for testing")


async def _log(context: Context, _arguments: Arguments) -> list[ContentBlock]:
    # Deprecated with 2026-07-28, as sampling is; the suite tries the versions before.
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message(  # pyright: ignore[reportDeprecated]
            "info", words, related_request_id=context.request_id
        )
    return [_text("Logged.")]


async def _progress(context: Context, _arguments: Arguments) -> list[ContentBlock]:
    for percent in (0, 50, 100):
        await context.session.report_progress(percent, 100, "")
    return [_text("Done.")]


async def _sample(context: Context, arguments: Arguments) -> list[ContentBlock]:
    asked = SamplingMessage(role="user", content=_text(str(arguments.get("prompt", ""))))
    reply = await context.session.create_message(  # pyright: ignore[reportDeprecated]
        [asked], max_tokens=100, related_request_id=context.request_id
    )
    return [_text(f"LLM response: {reply.content}")]


def _elicits(form: dict[str, Any]) -> Handler:
    async def answer(context: Context, arguments: Arguments) -> list[ContentBlock]:
        message = str(arguments.get("message", "Please answer."))
        reply = await context.session.elicit_form(message, form, context.request_id)
        return [_text(f"Elicitation completed: action={reply.action}, content={reply.content}")]

    return answer


TOOLS: Mapping[str, tuple[Mapping[str, Any], Handler]] = {
    "test_simple_text": (NOTHING, _returns(_text("This is a simple text response for testing."))),
    "test_image_content": (NOTHING, _returns(_image())),
    "test_audio_content": (
        NOTHING,
        _returns(AudioContent(type="audio", data=SOUND, mime_type="audio/wav")),
    ),
    "test_embedded_resource": (NOTHING, _returns(_resource("test://embedded-resource", "An embedded resource."))),
    "test_multiple_content_types": (
        NOTHING,
        _returns(
            _text("Multiple content types test:"),
            _image(),
            _resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
        ),
    ),
    "test_error_handling": (NOTHING, _fail),
    "test_tool_with_logging": (NOTHING, _log),
    "test_tool_with_progress": (NOTHING, _progress),
    "test_sampling": ({"type": "object", "properties": {"prompt": {"type": "string"}}}, _sample),
    "test_elicitation": ({"type": "object", "properties": {"message": {"type": "string"}}}, _elicits(USER)),
    "test_elicitation_sep1034_defaults": (NOTHING, _elicits(DEFAULTS)),
    "test_elicitation_sep1330_enums": (NOTHING, _elicits(ENUMS)),
    "json_schema_2020_12_tool": (NUMBERS, _returns(_text("Valid."))),
}
PROMPTS: Mapping[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}


def _messages(name: str, arguments: Mapping[str, str]) -> Sequence[ContentBlock]:
    """Return what a prompt says."""
    given = ", ".join(f"{argument}='{arguments.get(argument, '')}'" for argument in PROMPTS[name])
    messages: Mapping[str, Sequence[ContentBlock]] = {
        "test_simple_prompt": [_text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [_text(f"Prompt with arguments: {given}")],
        "test_prompt_with_embedded_resource": [
            _resource(arguments.get("resourceUri", ""), "Embedded resource content for testing."),
            _text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": [_image(), _text("Please analyze the image above.")],
    }
    return messages[name]


@dataclass(frozen=True)
class Offered:
    """What the suite asks for, registered with a server that goes on answering what it has itself."""

    server: Server[Any]
    watched: set[str] = field(default_factory=set[str])
    """Addresses of resources that a client subscribed to."""

    def register(self) -> None:
        """Add it: what the suite does not name goes to the server's own handlers."""
        add = self.server.add_request_handler
        add("tools/list", PaginatedRequestParams, self._tools_after(self._own("tools/list")))
        add("tools/call", CallToolRequestParams, self._call_or(self._own("tools/call")))
        add("resources/read", ReadResourceRequestParams, self._read_or(self._own("resources/read")))
        add("resources/subscribe", SubscribeRequestParams, self._subscribe)
        add("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)
        add("prompts/list", PaginatedRequestParams, self._list_prompts)
        add("prompts/get", GetPromptRequestParams, self._get_prompt)
        add("completion/complete", CompleteRequestParams, self._complete)
        add("logging/setLevel", SetLevelRequestParams, self._set_level)

    def _own(self, method: str) -> Callable[[Context, Any], Awaitable[Any]]:
        entry = self.server.get_request_handler(method)
        assert entry is not None
        return cast("Callable[[Context, Any], Awaitable[Any]]", entry.handler)

    @staticmethod
    def _tools_after(own: Callable[[Context, Any], Awaitable[Any]]) -> Callable[..., Awaitable[ListToolsResult]]:
        async def listed(context: Context, asked: PaginatedRequestParams | None) -> ListToolsResult:
            tools = [
                Tool(name=name, description="Of the suite.", input_schema=dict(schema))
                for name, (schema, _) in TOOLS.items()
            ]
            return ListToolsResult(tools=[*(await own(context, asked)).tools, *tools])

        return listed

    @staticmethod
    def _call_or(own: Callable[[Context, Any], Awaitable[Any]]) -> Callable[..., Awaitable[CallToolResult]]:
        async def called(context: Context, asked: CallToolRequestParams) -> CallToolResult:
            if asked.name not in TOOLS:
                return await own(context, asked)
            try:
                return CallToolResult(content=await TOOLS[asked.name][1](context, asked.arguments or {}))
            except ValueError as error:
                return CallToolResult(content=[_text(str(error))], is_error=True)

        return called

    @staticmethod
    def _read_or(own: Callable[[Context, Any], Awaitable[Any]]) -> Callable[..., Awaitable[ReadResourceResult]]:
        async def read(context: Context, asked: ReadResourceRequestParams) -> ReadResourceResult:
            uri = str(asked.uri)
            if uri == TEXT_URI:
                return _contents(TextResourceContents(uri=uri, mime_type="text/plain", text="A static text."))
            if uri == IMAGE_URI:
                return _contents(BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL))
            if uri.startswith(TEMPLATE_URI):
                text = f'{{"id":"{uri.removeprefix(TEMPLATE_URI).partition("/")[0]}","templateTest":true}}'
                return _contents(TextResourceContents(uri=uri, mime_type="application/json", text=text))
            return await own(context, asked)

        return read

    async def _subscribe(self, _context: Context, asked: SubscribeRequestParams) -> EmptyResult:
        self.watched.add(str(asked.uri))
        return EmptyResult()

    async def _unsubscribe(self, _context: Context, asked: UnsubscribeRequestParams) -> EmptyResult:
        self.watched.discard(str(asked.uri))
        return EmptyResult()

    @staticmethod
    async def _list_prompts(_context: Context, _asked: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(
            prompts=[
                Prompt(
                    name=name,
                    description="Of the suite.",
                    arguments=[PromptArgument(name=one, required=True) for one in arguments],
                )
                for name, arguments in PROMPTS.items()
            ]
        )

    @staticmethod
    async def _get_prompt(_context: Context, asked: GetPromptRequestParams) -> GetPromptResult:
        if asked.name not in PROMPTS:
            raise MCPError(INVALID_PARAMS, f"there is no prompt {asked.name}")
        content = _messages(asked.name, asked.arguments or {})
        return GetPromptResult(messages=[PromptMessage(role="user", content=one) for one in content])

    @staticmethod
    async def _complete(_context: Context, asked: CompleteRequestParams) -> CompleteResult:
        words = [word for word in ("test1", "test2") if word.startswith(asked.argument.value)]
        return CompleteResult(completion=Completion(values=words, total=len(words), has_more=False))

    @staticmethod
    async def _set_level(_context: Context, _asked: SetLevelRequestParams) -> EmptyResult:
        return EmptyResult()


def _contents(one: TextResourceContents | BlobResourceContents) -> ReadResourceResult:
    return ReadResourceResult(contents=[one])


async def main() -> None:
    """Serve until the process is ended."""
    settings = Settings(workspace=Path("workspace"), is_sample=True, shell="off")
    runs = ServedRuns(ServerPlan(settings, RunHooks, lambda _folder: settings))
    server = ExplorationServer(runs).protocol()
    Offered(server).register()
    transport = HttpTransport(0, os.environ["EXPLORER_MCP_TOKEN"])
    sys.stderr.write(f"{transport.url}\n")
    try:
        await transport.serve(server)
    finally:
        await runs.close()


if __name__ == "__main__":
    asyncio.run(main())
