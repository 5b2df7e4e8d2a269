"""The tools of MCP servers as tools of agents: frozen descriptions, checked arguments, results that can be cited."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from pydantic import ConfigDict, create_model, model_validator
from pydantic_core import PydanticCustomError

from explorer.mcp_client.connection import ServerConnection
from explorer.mcp_client.listing import digest
from explorer.schema.errors import ToolError
from explorer.schema.events import McpTool
from explorer.schema.messages import JsonObject
from explorer.schema.tool import Arguments, Effect, SourceDraft, Tool, ToolContext, ToolResult
from explorer.text.rendering import block, code, fenced, own, render
from explorer.text.sanitize import single_line

VIA = "mcp"
MAX_QUERY_CHARS = 200
MAX_ERROR_CHARS = 4_000
PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
REPLY_S = 10.0
"""Seconds that a call may take besides those of the server, such as for storing what it returned."""


class RemoteArguments(Arguments):
    """The arguments of a tool of a server: as a model gave them, checked against the outline of the schema."""

    model_config = ConfigDict(extra="allow")


class RemoteTool(Tool[RemoteArguments]):
    """A tool of a server."""

    is_search = True

    def __init__(
        self, server: str, frozen: McpTool, connection: ServerConnection | None, accepted: Callable[[], str]
    ) -> None:
        """Make the tool as the run has it.

        Args:
            server: The name of its server.
            frozen: What models see of it, in this run.
            connection: The way to its server; None: the server is not configured now.
            accepted: Returns the digest of the description that the user has accepted since; empty: none.
        """
        self.name = frozen.name
        self.description = frozen.description
        self.effect = Effect(frozen.effect)
        self.is_parallel = self.is_lookup = self.effect is Effect.PURE
        self.arguments = _checking(frozen)
        self.parameters = frozen.parameters
        self._server = server
        self._frozen = frozen
        self._connection = connection
        self._accepted = accepted
        limits = connection.server if connection else None
        # A call may find the connection lost, and open it once more.
        self.timeout_s = 2 * (limits.timeout_s + limits.start_s) + REPLY_S if limits else REPLY_S

    async def execute(self, arguments: RemoteArguments, context: ToolContext) -> ToolResult:
        """Call the tool, and store the text that it returns as a source.

        Raises:
            ToolError: The server cannot be used, describes the tool differently now, or says that the call failed.
        """
        if self._connection is None:
            raise ToolError(own("The MCP server {name} is not configured now.", name=code(self._server)))
        await self._check_description(self._connection)
        given = dict(arguments.model_extra or {})
        may_repeat = self.effect is not Effect.EXTERNAL
        answer = await self._connection.call(self._frozen.remote, given, context.progress, may_repeat=may_repeat)
        if answer.is_error:
            said = fenced(answer.text[:MAX_ERROR_CHARS]) if answer.text.strip() else own("it does not say why.")
            raise ToolError(render(own("The server says that this failed:"), said))
        if not answer.text.strip():
            return ToolResult(success=True, content=own("Done. The server returned no text."))
        (source,) = await context.store([self._draft(given, answer.text)])
        head = own("[{id}] {title}", id=code(source.id), title=source.title)
        return ToolResult(success=True, content=render(head, block(answer.text)))

    async def _check_description(self, connection: ServerConnection) -> None:
        live = (await connection.tools()).get(self._frozen.remote)
        if live is None:
            raise ToolError(own("The MCP server {name} does not offer this tool any more.", name=code(self._server)))
        if digest(live) not in {self._frozen.sha256, self._accepted()}:
            words = (
                "Not called: the MCP server {name} describes this tool differently now. Work without it. "
                "The user can look at the change and accept it: explorer mcp test {name} --accept"
            )
            raise ToolError(own(words, name=code(self._server)))

    def _draft(self, given: JsonObject, text: str) -> SourceDraft:
        query = urlencode({name: str(value) for name, value in given.items()})[:MAX_QUERY_CHARS]
        asked = single_line(", ".join(f"{name}={value}" for name, value in given.items()), 80)
        return SourceDraft(
            url=f"mcp:{self._server}/{self._frozen.remote}{'?' if query else ''}{query}",
            title=f"{self._frozen.remote} of {self._server}" + (f" ({asked})" if asked else ""),
            kind="record",
            via=VIA,
            text=text,
        )

    def describe(self, arguments: RemoteArguments) -> str:  # noqa: ARG002 - they may be anything
        """Return a call's action for people."""
        return f"asking {self._server}: {self._frozen.remote}"


def _checking(frozen: McpTool) -> type[RemoteArguments]:
    """Return the model of a tool's arguments. The server checks the rest: this finds what a model easily gets wrong."""

    def check(value: JsonObject) -> JsonObject:
        if wrong := _wrong(value, frozen.parameters):
            raise PydanticCustomError("mcp_arguments", "{wrong}", {"wrong": wrong})
        return value

    validators: dict[str, Any] = {"check": model_validator(mode="before")(check)}
    return create_model(f"{frozen.name}_arguments", __base__=RemoteArguments, __validators__=validators)


def _wrong(given: JsonObject, schema: JsonObject) -> str:
    """Return what is wrong with arguments at the top of a schema; empty: nothing."""
    properties: JsonObject = schema["properties"]
    found = [f"`{name}` is missing" for name in schema.get("required", ()) if name not in given]
    if properties and not schema.get("additionalProperties"):
        found += [f"there is no argument `{name}`" for name in given if name not in properties]
    found += [
        f"`{name}` must be of type {kind}"
        for name, value in given.items()
        if isinstance(kind := properties.get(name, {}).get("type"), str) and not _is_a(value, kind)
    ]
    return "; ".join(found)


def _is_a(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    is_whole = kind == "integer" and isinstance(value, float) and value.is_integer()
    return is_whole or isinstance(value, PYTHON_TYPES[kind])
