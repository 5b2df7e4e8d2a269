"""The MCP servers of a session of a run: which it uses, connected, their tools frozen at its start, given to roles.

The protocol's SDK is not imported here before a server is opened.
"""

import asyncio
import shlex
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from explorer.agents.roles import Role
from explorer.network.guard import Guard
from explorer.run.resources import RunResources
from explorer.sandbox.confinement import Confinement, Launch, SandboxSpec, SandboxTier, ShellLimits
from explorer.sandbox.egress_proxy import EgressProxy
from explorer.sandbox.selection import Sandbox, choose_sandbox, python_folders
from explorer.schema.errors import ConfigError
from explorer.schema.events import McpTool, McpToolsListed
from explorer.schema.mcp import McpServer
from explorer.schema.settings import Settings
from explorer.schema.tool import Tool
from explorer.workspace.access import ENGINE_FOLDER
from explorer.workspace.temporary import PROXY_FOLDER, temporary_folder

if TYPE_CHECKING:  # the protocol's SDK is imported by those runs only that have a server
    from explorer.mcp_client.connection import ServerConnection
    from explorer.mcp_client.listing import ServerListing
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from explorer.schema.mcp import server_of

LIMITS = ShellLimits(cpu_s=24 * 3600, memory_bytes=64 * 1024**3, processes=256)
"""Limits of a server's program: it lives as long as the run, and some runtimes reserve more memory than they use."""
INSTALL = 'pip install "explorer[mcp]"'
SHOWN_PROBLEMS = 3


@asynccontextmanager
async def with_mcp_tools(
    resources: RunResources, recorded: Mapping[str, McpToolsListed]
) -> AsyncGenerator[RunResources]:
    """Provide the resources of a session with the tools of MCP servers.

    Args:
        resources: The resources without them.
        recorded: The tools of servers as this run froze them when it started; of other servers they are frozen now.

    Raises:
        ConfigError: A server that the run needs cannot be used, or a role names a tool that is not there.
    """
    settings = resources.settings
    if settings.is_sample:  # which is all that such a run reads
        yield replace(resources, roles={name: without_server_tools(role, "") for name, role in resources.roles.items()})
        return
    used = used_servers(resources.roles, settings.mcp, recorded)
    if not resources.lean:
        check_server_roles(resources.roles, settings.mcp.values())
    if not used and not recorded:
        yield resources
        return
    check_installed()
    async with AsyncExitStack() as stack:
        session = McpSession(resources, stack)
        await session.open(used, recorded)
        yield replace(
            resources,
            roles=session.roles,
            extra_tools=(*resources.extra_tools, *session.tools),
            mcp=tuple(session.listed),
            mcp_ways=session.ways,
        )


def check_installed() -> None:
    """Check that the protocol's SDK is there.

    Raises:
        ConfigError: It is not.
    """
    try:
        import mcp  # noqa: F401, PLC0415 # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        words = "MCP servers are configured, and the package that speaks with them is not installed"
        raise ConfigError(words, hint=INSTALL) from error


class McpSession:
    """The servers of one session, while they are being opened."""

    def __init__(self, resources: RunResources, stack: AsyncExitStack) -> None:
        self._settings = resources.settings
        self._stack = stack
        self._servers = ServerOpener(resources.settings, resources.sandbox, stack)
        self.roles: Mapping[str, Role] = resources.roles
        self.tools: list[Tool[Any]] = []
        self.listed: list[McpToolsListed] = []
        self.ways: dict[str, str] = {}

    async def open(self, used: list[McpServer], recorded: Mapping[str, McpToolsListed]) -> None:
        """Open the servers, freeze the tools of those that are new to the run, and give them to roles.

        Raises:
            ConfigError: One cannot be used, or a role names a tool that is not there.
        """
        connections = {server.name: await self._servers.open(server) for server in used}
        self.ways |= self._servers.ways
        async with asyncio.TaskGroup() as group:
            listing = {
                server.name: group.create_task(_listing(connections[server.name], self._settings.state_dir))
                for server in used
                if server.name not in recorded
            }
        for server in used:
            if server.name in recorded:
                self._give(server, {tool.name: tool for tool in recorded[server.name].tools}, {})
            else:
                self._freeze(server, listing[server.name].result())
        for name, listed in {**recorded, **{one.server: one for one in self.listed}}.items():
            self._make_tools(listed, connections.get(name))

    def _freeze(self, server: McpServer, listing: "ServerListing | str") -> None:
        """Take what a server lists now as its tools for the whole run."""
        if isinstance(listing, str):
            if not server.optional:
                raise ConfigError(listing, hint=f"see: explorer mcp test {server.name}; {OPTIONAL}")
            self.ways[server.name] = f"left out: {listing}"
            self.roles = {name: without_server_tools(role, server.name) for name, role in self.roles.items()}
            return
        tools = {tool.name: tool for tool in listing.tools.values()}
        self._give(server, tools, listing.problems)
        given = {name for role in self.roles.values() for name in role.tools}
        self.listed.append(
            McpToolsListed(server=server.name, tools=tuple(tool for tool in tools.values() if tool.name in given))
        )
        if listing.problems:
            some = [f"{name} ({why})" for name, why in list(listing.problems.items())[:SHOWN_PROBLEMS]]
            more = f" and {len(listing.problems) - len(some)} more" if len(listing.problems) > len(some) else ""
            self.ways[server.name] += f"; tools left out: {', '.join(some)}{more}"

    def _give(self, server: McpServer, tools: Mapping[str, McpTool], problems: Mapping[str, str]) -> None:
        self.roles = {name: with_server_tools(role, server, tools, problems) for name, role in self.roles.items()}

    def _make_tools(self, listed: McpToolsListed, connection: "ServerConnection | None") -> None:
        from explorer.mcp_client.pins import Pins  # noqa: PLC0415 - see above
        from explorer.mcp_client.tools import RemoteTool  # noqa: PLC0415

        def accepted(remote: str) -> str:
            return Pins.of(connection.server, self._settings.state_dir).digest(remote) if connection else ""

        self.tools += [
            RemoteTool(listed.server, tool, connection, partial(accepted, tool.remote)) for tool in listed.tools
        ]


OPTIONAL = "to start without it, `optional = true` in its entry"


async def _listing(connection: "ServerConnection", state_dir: Path | None) -> "ServerListing | str":
    """Return what a server lists, without what the user has not accepted; or why it cannot be used."""
    from explorer.mcp_client.connection import ServerError  # noqa: PLC0415 - see above
    from explorer.mcp_client.listing import accepted_of, listing_of  # noqa: PLC0415
    from explorer.mcp_client.pins import Pins  # noqa: PLC0415

    try:
        tools = await connection.tools()
    except ServerError as error:
        return error.message
    listing = listing_of(connection.server.name, tools.values())
    try:
        return accepted_of(connection.server.name, listing, tools, Pins.of(connection.server, state_dir))
    except OSError as error:
        return f"what it describes cannot be remembered: {error}"


class ServerOpener:
    """Opens servers, each when it is first needed: over HTTP by guarded connections, programs in the sandbox."""

    def __init__(self, settings: Settings, chosen: Sandbox | None, stack: AsyncExitStack) -> None:
        """Take what servers may use.

        Args:
            settings: The settings.
            chosen: The sandbox of the shell; None, or one that confines nothing: one is chosen when it is needed.
            stack: Closes the connections.
        """
        self._settings = settings
        self._sandbox = chosen if chosen and _holds(chosen.confinement) else None
        self._stack = stack
        self.ways: dict[str, str] = {}
        """How each is reached and what confines it, in words."""

    async def open(self, server: McpServer) -> "ServerConnection":
        """Return the connection to a server; nothing is started before it is used.

        Raises:
            ConfigError: The sandbox cannot give it what its entry asks for.
        """
        from explorer.mcp_client.connection import connected  # noqa: PLC0415 - see above
        from explorer.mcp_client.transports import over_http, program  # noqa: PLC0415

        if server.is_local:
            launch = await self._launcher(server)
            return await self._stack.enter_async_context(connected(server, lambda state: program(launch(), state)))
        self.ways[server.name] = f"over HTTP, {urlsplit(server.url).hostname}"
        allowed, network = self._settings.services.allow_hosts, self._settings.network
        streams = partial(over_http, server, allowed, network)
        return await self._stack.enter_async_context(connected(server, streams))

    async def _launcher(self, server: McpServer) -> "partial[Launch]":
        if server.sandbox == "off":
            self.ways[server.name] = f"without a sandbox, as {server.origin} says"
            return partial(_unconfined, server)
        sandbox = await self._chosen()
        if sandbox.confinement is None:
            self.ways[server.name] = f"WITHOUT A SANDBOX, with your rights: {sandbox.why}"
            return partial(_unconfined, server)
        self.ways[server.name] = f"in the sandbox ({sandbox.confinement.tier})"
        way_out = await self._way_out(server, sandbox.confinement)
        return partial(_confined, server, sandbox.confinement, self._own_folder(), way_out)

    def _own_folder(self) -> Path:
        """Return an empty folder that the program may write in."""
        folder = self._stack.enter_context(temporary_folder("explorer-mcp-"))
        (folder / ENGINE_FOLDER).mkdir()
        return folder

    async def _chosen(self) -> Sandbox:
        if self._sandbox is None:
            self._sandbox = await choose_sandbox(self._settings.cache_dir)
        return self._sandbox

    async def _way_out(self, server: McpServer, confinement: Confinement) -> Path | None:
        """Open the proxy to the hosts that the server may reach."""
        if not server.hosts:
            return None
        if confinement.tier is not SandboxTier.BUBBLEWRAP:
            words = f"the MCP server {server.name} may reach hosts, and only bubblewrap can allow it some"
            raise ConfigError(words, hint='install bubblewrap, or set `sandbox = "off"` in its entry')
        path = self._stack.enter_context(temporary_folder(PROXY_FOLDER)) / "proxy"
        guard = Guard(self._settings.services.allow_hosts)
        await self._stack.enter_async_context(EgressProxy(guard, server.hosts, path))
        return path


def _holds(confinement: Confinement | None) -> bool:
    return confinement is not None and confinement.tier is not SandboxTier.UNCONFINED


def _unconfined(server: McpServer) -> Launch:
    """Return the start of a server's program as the user would start it, with the variables that it may see."""
    variables = {**server.inherited, **{name: value.get_secret_value() for name, value in server.env.items()}}
    return Launch((server.command, *server.args), variables, server.base)


def _confined(server: McpServer, confinement: Confinement, folder: Path, proxy: Path | None) -> Launch:
    """Return the start of a server's program in the sandbox: it sees the system, and the folders that it may."""
    readable = (*python_folders(), *server.paths(server.read))
    place = SandboxSpec(
        folder,
        LIMITS,
        readable,
        tuple(server.paths(server.write)),
        {name: value.get_secret_value() for name, value in server.env.items()},
        proxy,
    )
    start = shlex.join([server.command, *server.args])
    where = shlex.quote(str(server.base)) if server.base in readable else "."
    return confinement.launch(f"cd {where} && exec {start}", place)


MAX_BY_PATTERN = 100
"""The number of tools of one server that a role can have; each is sent with every request of its agents."""
PATTERN = frozenset("*?[")


def used_servers(
    roles: Mapping[str, Role], servers: Mapping[str, McpServer], recorded: Collection[str] = ()
) -> list[McpServer]:
    """Return the servers of which a role has tools.

    Args:
        roles: The roles of the run.
        servers: The servers that are configured.
        recorded: Those that the run had before: it can be resumed without them.

    Raises:
        ConfigError: A role names a server that is not configured, or a server cannot be used.
    """
    named = {server_of(tool): role for role in roles.values() for tool in role.tools if server_of(tool)}
    for name, role in named.items():
        if name not in servers and name not in recorded:
            hint = "see: explorer mcp list; servers of a project count once it is trusted: explorer trust"
            raise ConfigError(f"{role.path}: there is no MCP server {name!r}", hint=hint)
    used = [one for one in servers.values() if one.name in named or any(role in roles for role in one.roles)]
    for one in used:
        if one.problem and not one.optional and one.name not in recorded:
            raise ConfigError(f"the MCP server {one.name} ({one.origin}): {one.problem}", hint="see docs/mcp.md")
    return [one for one in used if not one.problem]


def check_server_roles(roles: Mapping[str, Role], servers: Iterable[McpServer]) -> None:
    """Check that the roles that servers name are there.

    Raises:
        ConfigError: One is not.
    """
    for server in servers:
        if missing := [name for name in server.roles if name not in roles]:
            words = f"the MCP server {server.name} ({server.origin}) names the role {missing[0]!r}, which is not there"
            raise ConfigError(words, hint="all roles: explorer agents")


def mcp_names(roles: Mapping[str, Role]) -> set[str]:
    """Return the names and patterns of tools of servers in role files."""
    return {tool for role in roles.values() for tool in role.tools if server_of(tool)}


def with_server_tools(role: Role, server: McpServer, tools: Mapping[str, McpTool], problems: Mapping[str, str]) -> Role:
    """Return a role with the tools of one server that its patterns match, and with those that the server gives it.

    Args:
        role: The role.
        server: The server.
        tools: Its tools by their names for models.
        problems: Why others of its tools cannot be used, by those names.

    Raises:
        ConfigError: The role names a tool that is not there, or its patterns match more than a role can have.
    """
    found: list[str] = []
    for name in role.tools:
        found += _matching(name, role, tools, problems) if server_of(name) == server.name else [name]
    if role.name in server.roles:
        found += [name for name, tool in tools.items() if server.gives(tool.remote)]
    found = list(dict.fromkeys(found))
    count = sum(name in tools for name in found)
    if count > MAX_BY_PATTERN:
        words = f"the role {role.name} would have {count:,} tools of the MCP server {server.name}"
        raise ConfigError(words, hint=f"name those it needs, at most {MAX_BY_PATTERN}: docs/mcp.md")
    return role.model_copy(update={"tools": tuple(found)})


def roles_with(server: McpServer, roles: Mapping[str, Role]) -> list[str]:
    """Return the names of the roles that get tools of a server: by its entry, or by their own files."""
    return [
        role.name
        for role in roles.values()
        if role.name in server.roles or any(server_of(tool) == server.name for tool in role.tools)
    ]


def roles_given(roles: Mapping[str, Role], server: McpServer, tool: McpTool) -> list[str]:
    """Return the names of the roles that get a tool of a server: by their own files, or by its entry."""
    by_entry = server.roles if server.gives(tool.remote) else ()
    return [
        role.name
        for role in roles.values()
        if role.name in by_entry or any(name == tool.name or fnmatchcase(tool.name, name) for name in role.tools)
    ]


def without_server_tools(role: Role, server: str) -> Role:
    """Return a role without the tools of a server; of all servers, where none is named."""
    kept = tuple(name for name in role.tools if not server_of(name) or (server and server_of(name) != server))
    return role.model_copy(update={"tools": kept})


def _matching(name: str, role: Role, tools: Mapping[str, McpTool], problems: Mapping[str, str]) -> list[str]:
    if PATTERN & set(name):
        return [one for one in tools if fnmatchcase(one, name)]
    if name in tools:
        return [name]
    why = problems.get(name, "its server does not offer it")
    hint = f"see: explorer mcp test {server_of(name)}"
    raise ConfigError(f"{role.path}: {name} cannot be used: {why}", hint=hint)
