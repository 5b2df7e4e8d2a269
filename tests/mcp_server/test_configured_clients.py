"""The configurations on docs/mcp_server.md: each can be read by its client, and starts a server that answers."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from cli.stage import SCRIPT, clean_environment

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mcp_server.md"
BLOCK = re.compile(r"^```(json|toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FOLDER = "/home/me/research"


def _configured() -> Iterator[dict[str, Any]]:
    """Yield each server of the page's configurations."""
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        content: dict[str, Any] = json.loads(text) if kind == "json" else tomllib.loads(text)
        (key,) = {"mcpServers", "servers", "mcp_servers"} & content.keys()
        yield from content[key].values()


@pytest.mark.slow
async def test_each_configuration_starts_a_server(tmp_path: Path) -> None:
    """The commands for Claude Code, Codex and VS Code, in a folder of this test and without a key, serve tools."""
    local = [one for one in _configured() if "command" in one]
    assert [one["command"] for one in local] == ["explorer"] * 3
    for one in local:
        arguments = [word.replace(FOLDER, str(tmp_path)) for word in one["args"]]
        parameters = StdioServerParameters(
            command=str(SCRIPT),
            args=[*arguments, "--model", "offline"],
            cwd=one.get("cwd", FOLDER).replace(FOLDER, str(tmp_path)),
            env=clean_environment(tmp_path),
        )
        async with Client(stdio_client(parameters)) as client:
            assert "start_exploration" in {tool.name for tool in (await client.list_tools()).tools}


def test_servers_over_http_are_reached_with_the_token() -> None:
    """Each configuration over HTTP has the default address, and sends the token from a place outside of the file."""
    remote = [one for one in _configured() if "url" in one]
    assert [one["url"] for one in remote] == ["http://127.0.0.1:8765/mcp"] * 2
    assert [one.get("bearer_token_env_var") or one["headers"]["Authorization"] for one in remote] == [
        "EXPLORER_MCP_TOKEN",
        "Bearer ${input:explorer-token}",
    ]
