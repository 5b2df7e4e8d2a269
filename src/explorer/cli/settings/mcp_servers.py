"""The MCP servers that files configure: `[mcp.NAME]` of a `.toml` file, and the `.mcp.json` that other programs share.

A variable reaches a server only where its entry names it. Values of variables are filled in here, because nothing
below reads the environment.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from explorer.cli.settings.layers import unreadable
from explorer.cli.settings.trust import MCP_JSON, TOML, SettingsFile, SettingsFolder
from explorer.cli.settings.untrusted import UNTRUSTED, Withheld
from explorer.schema.errors import ConfigError
from explorer.schema.mcp import McpServer, check_server_name
from explorer.text.sanitize import single_line

TABLE, SHARED_TABLE = "mcp", "mcpServers"
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
"""`${NAME}`, or `${NAME:-value}` for a value where it is not set."""
HTTP_KINDS = {"", "http", "streamable-http", "stdio"}
MAX_SERVERS = 200
INHERITED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
"""Variables that every program is started with."""
Entries = Mapping[str, Any]


@dataclass(frozen=True)
class FoundServers:
    """The servers in force, and those of a folder that is not trusted."""

    servers: Mapping[str, McpServer]
    withheld: tuple[Withheld, ...] = ()


def mcp_servers(
    folder: SettingsFolder, user: Path, environment: Mapping[str, str], *, is_trusted: bool
) -> FoundServers:
    """Return the servers that the user's own file and a folder's files configure; the folder's go first.

    Args:
        folder: The current folder, with its files.
        user: The user's own configuration file.
        environment: Where the variables are found that entries name.
        is_trusted: Whether the folder's files may configure servers.

    Raises:
        ConfigError: A file cannot be read, or an entry of a `.toml` file is wrong.
    """
    own: Entries = entries_of(user, user.read_bytes(), TABLE) if user.is_file() else {}
    found = {name: server_of_entry(name, entry, user, environment) for name, entry in own.items()}
    withheld: list[Withheld] = []
    for file in filter(None, (folder.mcp_json, folder.toml)):
        is_shared = file.path.name == MCP_JSON
        entries = entries_of(file.path, file.content, SHARED_TABLE if is_shared else TABLE)
        if not is_trusted:
            withheld += [_withheld(file, name, entry, is_shared=is_shared) for name, entry in entries.items()]
            continue
        variables = {**folder.variables, **environment}
        read = _of_json if is_shared else server_of_entry
        read_all = {name: read(name, entry, file.path, variables) for name, entry in entries.items()}
        # A project's server reads its project.
        found |= {name: one.model_copy(update={"read": (one.base, *one.read)}) for name, one in read_all.items()}
    return FoundServers(found, tuple(withheld))


def entries_of(path: Path, content: bytes, table: str) -> Entries:
    """Return the entries of a file by name; none where it has no such table."""
    try:
        text = content.decode()
        fields: object = json.loads(text) if table == SHARED_TABLE else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise unreadable(path, error) from error
    entries: object = cast("dict[str, Any]", fields).get(table, {}) if isinstance(fields, dict) else None
    if not isinstance(entries, dict):
        raise ConfigError(f"{path}: `{table}` must be a table of servers by name", hint="see docs/mcp.md")
    if len(cast("Entries", entries)) > MAX_SERVERS:
        raise ConfigError(f"{path} has more than {MAX_SERVERS} MCP servers", hint="see docs/mcp.md")
    return cast("Entries", entries)


def _withheld(file: SettingsFile, name: str, entry: object, *, is_shared: bool) -> Withheld:
    """Return what a server of a folder without trust would do."""
    fields: Entries = cast("Entries", entry) if isinstance(entry, dict) else {}
    words = [fields.get("command"), *_listed(fields.get("args"))] if "command" in fields else [fields.get("url")]
    shown = " ".join(str(word) for word in words)
    shown += " without the sandbox" if fields.get("sandbox") == "off" else ""
    names = sorted({match[1] for match in VARIABLE.finditer(json.dumps(fields, default=str))} | {*_names(fields)})
    given = f" (gets {', '.join(names)})" if names else ""
    return Withheld(
        f"mcp.{name}",
        f"{file.path.name if is_shared else TOML} {TABLE}.{name}",
        single_line(f"{'runs' if 'command' in fields else 'asks'} {shown}{given}", 300),
        file.problem or UNTRUSTED,
        is_optional=is_shared,
    )


def _names(fields: Entries) -> list[str]:
    """Return the variables that an entry names without `${}`."""
    listed = fields.get("env")
    return [str(name) for name in [*(_listed(listed)), fields.get("token")] if name]


def _listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def server_of_entry(name: str, entry: object, path: Path, variables: Mapping[str, str]) -> McpServer:
    """Return a server of a file of ours.

    Raises:
        ConfigError: The entry is wrong; says where.
    """
    server = _server(name, entry, path, variables)
    if server.problem and not server.problem.startswith("the variable"):
        raise ConfigError(f"{path}: [{TABLE}.{name}]: {server.problem}", hint="see docs/mcp.md")
    return server


def _of_json(name: str, entry: object, path: Path, variables: Mapping[str, str]) -> McpServer:
    """Return a server of a file that other programs share: what is theirs in it is dropped."""
    fields = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    kind = str(fields.get("type", ""))
    if kind not in HTTP_KINDS:
        problem = f"its transport is {single_line(kind, 40)!r}; stdio and streamable HTTP are known"
        return _unusable(name, path, problem)
    known = {key: value for key, value in fields.items() if key in KEYS}
    return _server(name, known, path, variables)


KEYS = (McpServer.model_fields.keys() | {"token"}) - {"name", "origin", "base", "problem", "inherited"}
"""What an entry can set."""


def _server(name: str, entry: object, path: Path, variables: Mapping[str, str]) -> McpServer:
    if problem := check_server_name(name):
        return _unusable(name, path, problem)
    if not isinstance(entry, dict):
        return _unusable(name, path, "it is not a table")
    fields = cast("dict[str, Any]", entry)
    if stranger := next((key for key in fields if key not in KEYS), ""):
        return _unusable(name, path, f"there is no field `{single_line(stranger, 40)}`")
    missing: list[str] = []
    try:
        filled = {key: _filled(value, variables, missing) for key, value in _written_out(fields).items()}
        place = {"name": name, "origin": str(path), "base": path.parent.resolve()}
        inherited = {one: variables[one] for one in INHERITED if one in variables}
        server = McpServer.model_validate({**filled, **place, "inherited": inherited})
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return _unusable(name, path, f"field `{place}`: {first['msg']}" if place else first["msg"])
    problem = f"the variable {missing[0]} is not set" if missing else ""
    return server.model_copy(update={"problem": problem})


def _unusable(name: str, path: Path, problem: str) -> McpServer:
    return McpServer(name=name, origin=str(path), problem=problem)


def _written_out(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with its short forms written out: a list of variables' names, and the variable of a token."""
    full = dict(fields)
    if isinstance(full.get("env"), list):
        full["env"] = {str(name): f"${{{name}}}" for name in full["env"]}
    if token := full.pop("token", None):
        full["headers"] = {**full.get("headers", {}), "Authorization": f"Bearer ${{{token}}}"}
    return full


def _filled(value: object, variables: Mapping[str, str], missing: list[str]) -> object:
    """Return a value with its variables filled in; those that are not set are added to `missing`."""
    if isinstance(value, list):
        return [_filled(one, variables, missing) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        return {key: _filled(one, variables, missing) for key, one in cast("dict[str, object]", value).items()}
    if not isinstance(value, str):
        return value

    def value_of(match: re.Match[str]) -> str:
        default: str | None = match[2]
        found = variables.get(match[1], default)
        if found is None:
            missing.append(match[1])
        return found or ""

    return VARIABLE.sub(value_of, value)
