"""MCP servers as the user configured them: how each is reached, what it may use, and which roles get its tools."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from explorer.schema.errors import ConfigError
from explorer.schema.network import secrets_in, without_secrets

TOOL_PREFIX = "mcp__"
"""The beginning of the names of all tools of MCP servers: `mcp__SERVER__TOOL`."""
SERVER_NAME = re.compile(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*")
"""Without two underscores in a row, so that a tool's name can be taken apart again."""
MAX_NAME_CHARS = 32
KEY_NAME = re.compile(r"key|token|secret|passw|auth|credential|cookie", re.IGNORECASE)
"""Names of variables and headers whose values are shown nowhere."""


class McpServer(BaseModel):
    """One MCP server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    origin: str = ""
    """The file that configures it, for people."""
    base: Path = Path()
    """The folder of that file, where relative paths start."""
    problem: str = ""
    """Why it cannot be used; empty where it can."""
    command: str = ""
    """The program of a stdio server."""
    args: tuple[str, ...] = ()
    env: dict[str, SecretStr] = {}
    """The variables that its entry names; a stdio server sees these, `inherited`, and no others of the user's."""
    inherited: dict[str, str] = {}
    """What programs need of the user's environment to start, such as `PATH`."""
    url: str = ""
    """The address of a streamable HTTP server."""
    headers: dict[str, SecretStr] = {}
    roles: tuple[str, ...] = ()
    """The roles that get its tools, besides those whose files name them."""
    tools: tuple[str, ...] = ("*",)
    """Patterns of the tools that `roles` get, as the server names them."""
    optional: bool = False
    """Whether a run starts without it where it cannot be reached."""
    start_s: float = Field(default=30.0, gt=0, le=600)
    """Seconds until it has listed its tools."""
    timeout_s: float = Field(default=120.0, gt=0, le=3600)
    """Seconds that a call may take."""
    sandbox: Literal["auto", "off"] = "auto"
    """Whether a stdio server runs in the sandbox where one holds."""
    read: tuple[Path, ...] = ()
    """Folders that it may read in the sandbox, besides the system."""
    write: tuple[Path, ...] = ()
    """Folders that it may write in in the sandbox."""
    hosts: tuple[str, ...] = ()
    """Hosts that it may reach from the sandbox."""

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        if not self.problem and bool(self.command) == bool(self.url):
            raise ValueError("a server has either a `command` or a `url`")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError("its `url` does not begin with http:// or https://")
        if self.url and (self.args or self.env or self.read or self.write or self.hosts):
            raise ValueError("`args`, `env`, `read`, `write` and `hosts` are for a server with a `command`")
        return self

    @property
    def is_local(self) -> bool:
        """Whether it is a program that is started, and not an address."""
        return bool(self.command)

    @property
    def place(self) -> str:
        """The command or the address, for people."""
        return " ".join([self.command, *self.args]) if self.is_local else without_secrets(self.url)

    def paths(self, listed: Iterable[Path]) -> list[Path]:
        """Return folders as absolute paths."""
        return [(self.base / path.expanduser()).resolve() for path in listed]

    def gives(self, tool: str) -> bool:
        """Return whether `roles` get a tool, by the server's name of it."""
        return any(fnmatchcase(tool, pattern) for pattern in self.tools)

    def secret_texts(self) -> list[str]:
        """Return what in its environment, its headers and its address is a key, by the names."""
        given = {**self.env, **self.headers}.items()
        values = [value.get_secret_value() for name, value in given if KEY_NAME.search(name)]
        return [*values, *(value.partition(" ")[2] for value in values), *secrets_in(self.url)]


def check_server_name(name: str) -> str:
    """Return why a name cannot be a server's; empty where it can."""
    if SERVER_NAME.fullmatch(name) and len(name) <= MAX_NAME_CHARS:
        return ""
    return f"its name is not letters, digits, hyphens and single underscores, at most {MAX_NAME_CHARS}"


def server_of(tool: str) -> str:
    """Return the server in a tool's name or pattern; empty where it is no tool of a server.

    Raises:
        ConfigError: It begins as one and names no tool.
    """
    if not tool.startswith(TOOL_PREFIX):
        return ""
    server, underscores, rest = tool.removeprefix(TOOL_PREFIX).partition("__")
    if not (server and underscores and rest):
        raise ConfigError(f"{tool!r} names no tool of an MCP server", hint=f"write {TOOL_PREFIX}SERVER__TOOL")
    return server
