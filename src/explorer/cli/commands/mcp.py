"""The commands below `mcp`: the MCP servers whose tools agents may call."""

from explorer.cli.screens.formatting import one_line
from explorer.cli.screens.output import aligned, emit_json, emit_page, say
from explorer.cli.settings.configuration import Configuration, configured, passed_over
from explorer.cli.settings.options import COMMON, CommonOptions
from explorer.run.resources import load_roles
from explorer.schema.mcp import McpServer, server_of

NO_SERVER = "no MCP server is configured (docs/mcp.md)"


def list_servers(*, options: CommonOptions = COMMON) -> int:
    """List the MCP servers that are configured, and the roles that get their tools."""
    configuration = configured(options, passed_over)
    roles = roles_by_server(configuration)
    servers = configuration.settings.mcp.values()
    if options.output_format != "text":
        emit_json([_facts(server, roles[server.name]) for server in servers])
    elif servers:
        heads = ("SERVER", "FROM", "ROLES", "COMMAND OR ADDRESS")
        emit_page(aligned(heads, [_row(server, roles[server.name]) for server in servers]))
    elif not options.quiet:
        say(NO_SERVER)
    return 0


def roles_by_server(configuration: Configuration) -> dict[str, list[str]]:
    """Return the roles that get tools of each server: by its entry, or by their own files."""
    roles, servers = load_roles(configuration.settings), configuration.settings.mcp
    return {
        name: [
            role.name
            for role in roles.values()
            if role.name in server.roles or any(server_of(tool) == name for tool in role.tools)
        ]
        for name, server in servers.items()
    }


def _row(server: McpServer, roles: list[str]) -> tuple[str, ...]:
    place = f"cannot be used: {server.problem}" if server.problem else server.place
    return server.name, one_line(server.origin), ", ".join(roles) or "-", one_line(place, 200)


def _facts(server: McpServer, roles: list[str]) -> dict[str, object]:
    return {
        "name": server.name,
        "transport": "stdio" if server.is_local else "http",
        "place": server.place,
        "origin": server.origin,
        "roles": roles,
        "environment": sorted(server.env),
        "sandbox": server.sandbox if server.is_local else "",
        "optional": server.optional,
        "problem": server.problem,
    }
