"""What `tools` and `doctor` show of MCP servers: real programs over stdio, one of which does not answer."""

import json
import sys
import time
from pathlib import Path

import pytest

from cli.stage import Explorer
from explorer.cli.commands.mcp_look import LOOK_S, SeenServer, server_result
from explorer.schema.mcp import McpServer

SERVER = Path(__file__).parents[1] / "mcp_client" / "raw_server.py"


def configure(folder: Path, **misdeeds: str) -> None:
    """Configure a server for each name in the user's own file; the first is for searchers."""
    entries: list[str] = []
    for name, given in misdeeds.items():
        misdeed, _, more = given.partition("\n")
        words = json.dumps(["-I", "-S", str(SERVER), str(folder / "calls.log"), misdeed])
        roles = "" if entries else 'roles = ["searcher"]\n'
        entries.append(f'[mcp.{name}]\ncommand = "{sys.executable}"\nargs = {words}\nsandbox = "off"\n{roles}{more}\n')
    path = folder / ".config" / "explorer" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(entries))


def test_tools_of_servers_are_listed(here: Explorer, tmp_path: Path) -> None:
    """Each with its effect, its server and the roles that get it; a server that does not answer is one line."""
    configure(tmp_path, raw="", odd="invalid", mute="hang_in_list\nstart_s = 0.3")
    done = here("tools", "--approval", "ask mcp__raw__write")
    page = " ".join(done.stdout.split())
    assert "mcp__raw__look pure raw searcher Looks a word up." in page
    assert "mcp__raw__write external raw searcher Writes a word." in page
    assert "mcp__odd__good external odd -" in page
    assert "mcp__odd__no_type - odd - Left out: its schema has a type that is none" in page
    assert "mcp__raw__write ask mcp__raw__write" in page
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("mcp__mute__"))
    assert "it did not list its tools within 0.3 s" in line
    assert not (tmp_path / ".local" / "state" / "explorer" / "mcp").exists(), "looking accepts nothing"


@pytest.mark.slow
def test_tools_of_servers_for_programs(here: Explorer, tmp_path: Path) -> None:
    """In JSON each tool has its schema; what cannot be used is a line on stderr, after a bounded time."""
    configure(tmp_path, raw="", mute="hang_in_list")
    before = time.monotonic()
    done = here("tools", "--output-format", "json")
    assert time.monotonic() - before < 2 * LOOK_S
    (keyed,) = (row for row in json.loads(done.stdout) if row["name"] == "mcp__raw__keyed")
    assert (keyed["server"], keyed["effect"], keyed["roles"]) == ("raw", "repeatable", ["searcher"])
    assert keyed["parameters"]["required"] == ["text"]
    assert "MCP server mute left out: " in done.stderr
    assert "within 10 s" in done.stderr


@pytest.mark.slow
def test_doctor_lists_tools_and_what_is_wrong(here: Explorer, tmp_path: Path) -> None:
    """A server that a role needs and that cannot start fails; one without a role warns; the others list their tools."""
    configure(tmp_path, gone="", raw="", odd="invalid")
    path = tmp_path / ".config" / "explorer" / "config.toml"
    path.write_text(path.read_text().replace("raw_server.py", "no_server.py", 1))
    done = here("doctor")
    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if " mcp " in line[:12]]
    assert [line[:4] for line in lines] == ["fail", "ok  ", "warn"]
    assert "it ended with exit code 2" in lines[0]
    assert "3 tools for no role, without a sandbox" in lines[1]
    assert "mcp__raw__look (pure), mcp__raw__write (external), mcp__raw__keyed (repeatable)" in lines[1]
    assert "left out: " in lines[2]
    assert "explorer mcp test gone" in done.stdout


def test_only_a_server_that_runs_need_fails() -> None:
    """One that is optional, or that no role has tools of, is a warning."""
    server = McpServer(name="x", command="x", problem="the variable X is not set")
    seen = SeenServer(server, ("searcher",), problem=server.problem)
    assert server_result(seen).level == "fail"
    assert server_result(SeenServer(server, problem=server.problem)).level == "warn"
    optional = server.model_copy(update={"optional": True})
    assert server_result(SeenServer(optional, ("searcher",), problem=server.problem)).level == "warn"
