"""Which MCP servers a run uses, and which of their tools each role has. Nothing here imports the protocol's SDK."""

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase

from explorer.agents.roles import Role
from explorer.schema.errors import ConfigError
from explorer.schema.events import McpTool
from explorer.schema.mcp import McpServer, server_of

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


def without_tools(role: Role, server: str) -> Role:
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
