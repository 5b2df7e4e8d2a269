"""The commands `mcp list`, `add` and `test`: the MCP servers whose tools agents may call."""

import asyncio
import json
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from explorer.cli.screens.output import aligned, emit_json, emit_page, say
from explorer.cli.settings.configuration import configured, passed_over
from explorer.cli.settings.layers import user_file
from explorer.cli.settings.mcp_servers import TABLE, entries_of, server_of_entry
from explorer.cli.settings.options import COMMON, CommonOptions
from explorer.cli.settings.trust import TOML
from explorer.observe.formatting import one_line
from explorer.run.mcp_session import ServerOpener, check_installed, check_server_roles, roles_with
from explorer.run.team import load_roles
from explorer.sandbox.selection import python_folders
from explorer.schema.errors import ConfigError, NotFoundError, StorageError
from explorer.schema.mcp import McpServer
from explorer.schema.settings import Settings
from explorer.workspace.safe_open import make_private_folder, write_private

if TYPE_CHECKING:  # the protocol's SDK is slow to import, and `list` and `add` need none of it
    from explorer.mcp_client.listing import ServerListing

NO_SERVER = "no MCP server is configured: explorer mcp add NAME COMMAND, or docs/mcp.md"
DESCRIPTION_CHARS = 200
IS_IN = "in the sandbox"
IN_SANDBOX = "it sees the system and what `read`, `write` and `hosts` of its entry name: docs/mcp.md"
NOT_ACCEPTED = 1
"""The exit code where descriptions are not accepted."""


def list_servers(*, options: CommonOptions = COMMON) -> int:
    """List the MCP servers that are configured, and the roles that get their tools."""
    configuration = configured(options, passed_over)
    servers = configuration.settings.mcp.values()
    teams = load_roles(configuration.settings)
    roles = {server.name: roles_with(server, teams) for server in servers}
    if options.output_format != "text":
        emit_json([_facts(server, roles[server.name]) for server in servers])
    elif servers:
        heads = ("SERVER", "FROM", "ROLES", "COMMAND OR ADDRESS")
        emit_page(aligned(heads, [_row(server, roles[server.name]) for server in servers]))
    elif not options.quiet:
        say(NO_SERVER)
    return 0


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


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AddOptions(CommonOptions):
    """Flags of `mcp add`."""

    role: Annotated[tuple[str, ...], Parameter(help="A role that gets its tools; repeatable.")] = ()
    env: Annotated[tuple[str, ...], Parameter(help="A variable that it gets; repeatable.", metavar="NAME")] = ()
    token: Annotated[str, Parameter(help="The variable with its bearer token.", metavar="NAME")] = ""
    read: Annotated[tuple[Path, ...], Parameter(help="A folder that it may read in the sandbox; repeatable.")] = ()
    write: Annotated[tuple[Path, ...], Parameter(help="A folder that it may write in in the sandbox; repeatable.")] = ()
    host: Annotated[tuple[str, ...], Parameter(help="A host that it may reach from the sandbox; repeatable.")] = ()
    project: Annotated[bool, Parameter(help="Into this folder's explorer.toml.")] = False


ADD = AddOptions()


def add_server(
    name: Annotated[str, Parameter(help="Its name: letters, digits, hyphens, single underscores.")],
    place: Annotated[str, Parameter(help="A command, or an address that begins with http:// or https://.")],
    /,
    *args: Annotated[str, Parameter(help="The command's arguments; after `--` they may begin with dashes.")],
    options: AddOptions = ADD,
) -> int:
    """Add an MCP server to your own configuration, or to this folder's."""
    configuration = configured(options, passed_over)
    path = configuration.folder.path / TOML if options.project else user_file(os.environ)
    is_address = place.startswith(("http://", "https://"))
    words = [place, *args] if is_address or options.project else [_whole(word) for word in (place, *args)]
    fields: dict[str, object] = {"url": place} if is_address else {"command": words[0], "args": words[1:]}
    given = {
        "roles": list(options.role),
        "env": list(options.env),
        "token": options.token,
        # The entry's own paths start at its file; those of a command line where the user is.
        "read": [str(folder.absolute()) for folder in options.read],
        "write": [str(folder.absolute()) for folder in options.write],
        "hosts": list(options.host),
    }
    fields |= {key: value for key, value in given.items() if value}
    content = path.read_bytes() if path.is_file() else b""
    if name in entries_of(path, content, TABLE):
        raise ConfigError(f"{path} has an MCP server {name!r} already", hint=f"edit {path}")
    server = server_of_entry(name, fields, path, os.environ)
    if not options.project:  # a project's server sees its project
        _check_files_are_seen(server)
    check_server_roles(load_roles(configuration.settings), [server])
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in fields.items())
    entry = f"[{TABLE}.{name}]\n{lines}\n"
    written = content + (b"\n" if content else b"") + entry.encode()
    entries_of(path, written, TABLE)
    _write(path, written)
    if options.output_format != "text":
        emit_json(_facts(server, list(options.role)) | {"file": str(path)})
        return 0
    emit_page(f"added to {path}:\n\n{entry}")
    first = "; first trust the folder: explorer trust" if options.project else ""
    say(f"  → see its tools: explorer mcp test {name}{first}")
    return 0


def _whole(word: str) -> str:
    """Return a word of a command; the path of a file that is here as a whole one: the server starts elsewhere."""
    is_here = not word.startswith("-") and Path(word).is_file()
    return str(Path(word).absolute()) if is_here else word


def _check_files_are_seen(server: McpServer) -> None:
    """Check that a server's sandbox shows it the files that its command names.

    Raises:
        ConfigError: It does not, so the server could not start.
    """
    folders = [*server.paths(server.read), *server.paths(server.write), *python_folders(), Path("/usr")]
    for word in server.args if server.is_local else ():
        path = server.base / word
        if path.is_file() and not any(path.is_relative_to(folder) for folder in folders):
            flags = f"--read {shlex.quote(str(path.parent))}, or --write where it keeps files there"
            problem = f"the sandbox does not show {path} to the server {server.name}"
            raise ConfigError(problem, hint=f"add {flags}")


def _write(path: Path, content: bytes) -> None:
    try:
        make_private_folder(path.parent)
        write_private(path, content)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


@dataclass(frozen=True)
class Looked:
    """What was seen of a server."""

    listing: "ServerListing"
    """Its tools, and why some cannot be used, by their names for models."""
    changes: Mapping[str, str]
    """What is new or changed, by the same names: the description that was accepted; empty where it is new."""
    way: str


def show_server(
    name: Annotated[str, Parameter(help="A server, as `mcp list` shows it.")],
    /,
    *,
    accept: Annotated[bool, Parameter(help="Accept its tools as it describes them now.")] = False,
    options: CommonOptions = COMMON,
) -> int:
    """Connect to an MCP server, and show its tools as agents would see them; or accept what has changed in them."""
    configuration = configured(options, passed_over)
    server = configuration.settings.mcp.get(name)
    if server is None:
        raise NotFoundError(f"there is no MCP server {name!r}", hint="explorer mcp list")
    if server.problem:
        raise ConfigError(f"the MCP server {name} ({server.origin}): {server.problem}", hint="see docs/mcp.md")
    check_installed()
    looked = asyncio.run(_look(server, configuration.settings, accept=accept))
    if options.output_format != "text":
        emit_json(_seen(server, looked))
    else:
        emit_page(_page(server, looked))
        if looked.changes and not options.quiet:
            say(f"  → accept what is new and what has changed: explorer mcp test {name} --accept")
    return NOT_ACCEPTED if looked.changes else 0


async def _look(server: McpServer, settings: Settings, *, accept: bool) -> Looked:
    """Connect, list, and compare with what was accepted.

    Raises:
        ConfigError: It cannot be reached, or what it describes cannot be remembered.
    """
    from explorer.mcp_client.connection import ServerError  # noqa: PLC0415 - see above
    from explorer.mcp_client.listing import accepted_of, listing_of, model_name, pins_of  # noqa: PLC0415
    from explorer.mcp_client.pins import Pins  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        opener = ServerOpener(settings, None, stack)
        connection = await opener.open(server)
        try:
            said = await connection.tools()
        except ServerError as error:
            way = opener.ways[server.name]
            raise ConfigError(f"{error.message} ({way})", hint=IN_SANDBOX if IS_IN in way else "docs/mcp.md") from error
    pins = Pins.of(server, settings.state_dir)
    listing = listing_of(server.name, said.values())
    changed = {tool for tool, pin in pins_of(said).items() if pins.problem(tool, pin.sha256)} & listing.tools.keys()
    before = {model_name(server.name, tool): (pins.accepted or {}).get(tool) for tool in changed}
    try:
        if accept:
            pins.keep(pins_of(said))
        seen = accepted_of(server.name, listing, said, Pins.of(server, settings.state_dir))
    except OSError as error:
        raise StorageError(f"what it describes cannot be remembered: {error}") from error
    changes = {} if accept else {tool: pin.description if pin else "" for tool, pin in before.items()}
    shown = {tool.name: tool for tool in listing.tools.values()}
    return Looked(type(seen)(shown, seen.problems), changes, opener.ways[server.name])


def _page(server: McpServer, looked: Looked) -> str:
    rows = [
        (tool.name, tool.effect, _state(looked, tool.name), one_line(tool.description, DESCRIPTION_CHARS))
        for tool in looked.listing.tools.values()
    ]
    rows += [
        (name, "-", "left out", why) for name, why in looked.listing.problems.items() if name not in looked.changes
    ]
    head = f"{server.name}: {one_line(server.place, 200)}\n{looked.way}"
    table = aligned(("TOOL", "EFFECT", "STATE", "WHAT IT DOES"), rows) if rows else "it offers no tools"
    before = [f"{name} said before: {one_line(text, 600)}" for name, text in looked.changes.items() if text]
    return "\n\n".join([head, table, *before])


def _state(looked: Looked, tool: str) -> str:
    if tool not in looked.changes:
        return "accepted"
    return "CHANGED" if looked.changes[tool] else "NEW"


def _seen(server: McpServer, looked: Looked) -> Mapping[str, object]:
    tools: Sequence[Mapping[str, object]] = [
        {**tool.model_dump(exclude={"sha256"}), "state": _state(looked, tool.name).lower()}
        for tool in looked.listing.tools.values()
    ]
    left_out = {name: why for name, why in looked.listing.problems.items() if name not in looked.changes}
    return {"name": server.name, "place": server.place, "way": looked.way, "tools": tools, "left_out": left_out}
