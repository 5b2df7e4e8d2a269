"""What the configured MCP servers offer now, for `tools` and `doctor`: all are asked at once, each for a bounded time.

Nothing is accepted by looking: a description that is new or has changed is accepted by a run or by `mcp test` only.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from explorer.agents.roles import Role
from explorer.cli.commands.probes import CheckResult
from explorer.observe.formatting import counted, first_sentence, one_line
from explorer.run.mcp_session import ServerOpener, check_installed, roles_given, roles_with
from explorer.run.team import load_roles
from explorer.sandbox.selection import Sandbox, choose_sandbox
from explorer.schema.approvals import ApprovalRules
from explorer.schema.errors import ConfigError
from explorer.schema.events import McpTool
from explorer.schema.mcp import TOOL_PREFIX, McpServer
from explorer.schema.settings import Settings

LOOK_S = 10.0
"""Seconds that a server has to list its tools, where its entry gives it more."""
SHOWN_TOOLS = 30
PROBLEM_CHARS = 300
DOCS = "see docs/mcp.md"


@dataclass(frozen=True)
class SeenTool:
    """One tool of a server."""

    frozen: McpTool
    description: str
    """What its server says of it."""
    roles: tuple[str, ...]
    problem: str
    """Why agents do not get it now; empty where they do."""


@dataclass(frozen=True)
class SeenServer:
    """What was seen of one server."""

    server: McpServer
    roles: tuple[str, ...] = ()
    """The roles that get tools of it."""
    tools: tuple[SeenTool, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why others of its tools cannot be used, by their names for models."""
    way: str = ""
    """How it is reached, and what confines it."""
    problem: str = ""
    """Why it lists nothing; empty where it does."""

    @property
    def pattern(self) -> str:
        """All of its tools, as a role file would name them."""
        return f"{TOOL_PREFIX}{self.server.name}__*"

    @property
    def stops_runs(self) -> bool:
        """Whether a run is refused because of it."""
        return bool(self.problem and self.roles and not self.server.optional)


def seen_servers(settings: Settings, roles: Mapping[str, Role]) -> list[SeenServer]:
    """Return what each configured server offers, or why it cannot be used."""
    if not settings.mcp:
        return []
    seen = asyncio.run(_see_all(settings, roles))
    return [replace(one, roles=tuple(roles_with(one.server, roles))) for one in seen]


async def _see_all(settings: Settings, roles: Mapping[str, Role]) -> list[SeenServer]:
    servers = list(settings.mcp.values())
    try:
        check_installed()
    except ConfigError as error:
        return [SeenServer(one, problem=f"{error.message}: {error.hint}") for one in servers]
    needs_sandbox = any(one.is_local and one.sandbox == "auto" for one in servers)
    # Chosen once: otherwise each server would have it tried.
    sandbox = await choose_sandbox(settings.cache_dir) if needs_sandbox else None
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_see(one, settings, sandbox, roles)) for one in servers]
    return [one.result() for one in asked]


async def _see(server: McpServer, settings: Settings, sandbox: Sandbox | None, roles: Mapping[str, Role]) -> SeenServer:
    from explorer.mcp_client.connection import ServerError  # noqa: PLC0415 - the protocol's SDK is slow to import
    from explorer.mcp_client.listing import listing_of, model_name  # noqa: PLC0415 - the same
    from explorer.mcp_client.pins import Pins  # noqa: PLC0415 - the same

    if server.problem:
        return SeenServer(server, problem=server.problem)
    async with AsyncExitStack() as stack:
        opener = ServerOpener(settings, sandbox, stack)
        try:
            connection = await opener.open(server.model_copy(update={"start_s": min(server.start_s, LOOK_S)}))
            said = await connection.tools()
        except (ConfigError, ServerError) as error:
            return SeenServer(server, way=opener.ways.get(server.name, ""), problem=error.message)
    listing, pins = listing_of(server.name, said.values()), Pins.of(server, settings.state_dir)
    tools = tuple(
        SeenTool(
            tool,
            said[remote].description or "",
            tuple(roles_given(roles, server, tool)),
            pins.problem(remote, tool.sha256),
        )
        for remote, tool in listing.tools.items()
    )
    left_out = {model_name(server.name, remote): why for remote, why in listing.problems.items()}
    return SeenServer(server, tools=tools, left_out=left_out, way=opener.ways[server.name])


def server_rows(servers: Sequence[SeenServer]) -> list[tuple[str, ...]]:
    """Return the rows of a page: each tool with its effect, server and roles; a server without tools is one row."""
    return [row for seen in servers for row in _rows(seen)]


def _rows(seen: SeenServer) -> Iterator[tuple[str, ...]]:
    name = seen.server.name
    if seen.problem or not (seen.tools or seen.left_out):
        why = f"Not there: {one_line(seen.problem, PROBLEM_CHARS)}" if seen.problem else "It lists no tools."
        yield seen.pattern, "-", name, ", ".join(seen.roles) or "-", why
    for tool in seen.tools:
        words = f"Left out: {tool.problem}" if tool.problem else first_sentence(tool.description)
        yield tool.frozen.name, tool.frozen.effect, name, ", ".join(tool.roles) or "-", words
    for tool, why in seen.left_out.items():
        yield tool, "-", name, "-", f"Left out: {one_line(why)}"


def server_facts(servers: Sequence[SeenServer], rules: ApprovalRules) -> list[dict[str, object]]:
    """Return the tools of servers that agents can get, for programs."""
    return [
        {
            **tool.frozen.model_dump(include={"name", "description", "parameters", "effect"}),
            "approval": rules.concerning(tool.frozen.name),
            "roles": list(tool.roles),
            "origin": f"MCP server {seen.server.name}",
            "server": seen.server.name,
        }
        for seen in servers
        for tool in seen.tools
        if not tool.problem
    ]


def check_servers(settings: Settings) -> list[CheckResult]:
    """Check that each configured server lists its tools, and that they are accepted."""
    try:
        roles = load_roles(settings)
    except ConfigError:  # the check of the roles reports it
        roles = {}
    return [server_result(one) for one in seen_servers(settings, roles)]


def server_result(seen: SeenServer) -> CheckResult:
    """Return what is wrong with a server, or its tools with their effects."""
    name, server = f"mcp {seen.server.name}", seen.server
    if seen.problem:
        fix = DOCS if server.problem else f"explorer mcp test {server.name}; its entry is in {server.origin}"
        consequence = "; every run of your roles is refused" if seen.stops_runs else ""
        return CheckResult(name, "fail" if seen.stops_runs else "warn", f"{seen.problem}{consequence}", fix)
    refused = {**seen.left_out, **{tool.frozen.name: tool.problem for tool in seen.tools if tool.problem}}
    shown = [f"{tool.frozen.name} ({tool.frozen.effect})" for tool in seen.tools if not tool.problem]
    more = f" and {len(shown) - SHOWN_TOOLS} more" if len(shown) > SHOWN_TOOLS else ""
    listed = f": {', '.join(shown[:SHOWN_TOOLS])}{more}" if shown else ""
    whose = f"for {', '.join(seen.roles)}" if seen.roles else "for no role"
    words = f"{counted(len(shown), 'tool')} {whose}, {seen.way}{listed}"
    if not refused:
        return CheckResult(name, "ok", words)
    first, why = next(iter(refused.items()))
    rest = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
    left_out = f"{words}; left out: {first} ({why}){rest}"
    return CheckResult(
        name, "warn", left_out, f"look at them, and accept what has changed: explorer mcp test {server.name}"
    )
