"""MCP servers in files: what each entry means, whose it is, and what of it anybody sees."""

import json
from pathlib import Path

import pytest

from cli.stage import Explorer
from explorer.cli.settings.configuration import Configuration, read_configuration, refused
from explorer.cli.settings.layers import NO_FLAGS, Flags
from explorer.cli.settings.trust import read_folder
from explorer.schema.errors import ConfigError

TRUSTED = Flags({}, {}, trusts_folder=True)
SHARED = {
    "mcpServers": {
        "forum": {
            "type": "stdio",
            "command": "python",
            "args": ["server.py", "${DB:-forum.db}"],
            "env": {"FORUM_TOKEN": "${FORUM_TOKEN}"},
            "alwaysAllow": ["x"],
            "sandbox": "off",
        },
        "old": {"type": "sse", "url": "https://old.example/sse"},
        "a__b": {"command": "x"},
        "both": {"command": "x", "url": "https://x.example"},
        "none": 1,
    }
}
OURS = """\
[mcp.tracker]
url = "https://tracker.example/mcp"
token = "TRACKER_TOKEN"
roles = ["searcher"]
tools = ["search_*"]
"""


def read(folder: Path, flags: Flags = TRUSTED, **environment: str) -> Configuration:
    return read_configuration(flags, {"HOME": str(folder / "home"), "PATH": "/bin", **environment}, folder)


def test_entries_of_both_files(tmp_path: Path) -> None:
    """Variables are filled in, foreign fields of the shared file are dropped, and what cannot be used says why."""
    (tmp_path / ".mcp.json").write_text(json.dumps(SHARED))
    (tmp_path / "explorer.toml").write_text(OURS)
    found = read(tmp_path, FORUM_TOKEN="forum-token-1", TRACKER_TOKEN="tracker-token-2", OTHER="x").settings
    forum, tracker = found.mcp["forum"], found.mcp["tracker"]
    assert (forum.place, forum.problem, forum.read) == ("python server.py forum.db", "", (tmp_path,))
    assert {name: value.get_secret_value() for name, value in forum.env.items()} == {"FORUM_TOKEN": "forum-token-1"}
    assert forum.inherited == {"HOME": str(tmp_path / "home"), "PATH": "/bin"}
    assert tracker.headers["Authorization"].get_secret_value() == "Bearer tracker-token-2"
    assert (tracker.gives("search_issues"), tracker.gives("close_issue")) == (True, False)
    assert {"forum-token-1", "tracker-token-2"} <= {*found.secret_texts()}
    assert "mcp" not in found.public()
    problems = {name: one.problem for name, one in found.mcp.items() if one.problem}
    assert problems.keys() == {"old", "a__b", "both", "none"}
    assert "'sse'" in problems["old"]


def test_a_variable_that_is_not_set_makes_a_server_unusable(tmp_path: Path) -> None:
    """The settings can be read all the same: only what needs the server says so."""
    (tmp_path / "explorer.toml").write_text(OURS)
    assert read(tmp_path).settings.mcp["tracker"].problem == "the variable TRACKER_TOKEN is not set"


@pytest.mark.parametrize(
    "text",
    ["[mcp.x]\nurl='https://x.example'\nrole='searcher'", "[mcp.x]", "[mcp.x]\ncommand='y'\ntimeout_s=-1", "mcp=1"],
)
def test_a_wrong_entry_of_ours_is_refused(tmp_path: Path, text: str) -> None:
    """A mistyped field of `explorer.toml` is an error with its place, as any other setting is."""
    (tmp_path / "explorer.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"explorer\.toml"):
        read(tmp_path)


def test_servers_of_a_folder_need_trust(tmp_path: Path) -> None:
    """Without trust none is there; what it would do is shown; only those of `explorer.toml` stop a command."""
    (tmp_path / ".mcp.json").write_text(json.dumps(SHARED))
    before = read_folder(tmp_path).digest
    configuration = read(tmp_path, NO_FLAGS)
    assert configuration.settings.mcp == {}
    shown = {one.name: one.value for one in configuration.withheld}
    assert shown["mcp.forum"] == "runs python server.py ${DB:-forum.db} without the sandbox (gets DB, FORUM_TOKEN)"
    assert refused(configuration) is False
    (tmp_path / ".mcp.json").write_text("{}")
    assert read_folder(tmp_path).digest != before
    (tmp_path / "explorer.toml").write_text(OURS)
    with pytest.raises(ConfigError, match=r"explorer\.toml mcp\.tracker"):
        refused(read(tmp_path, NO_FLAGS))


def test_the_list(here: Explorer, tmp_path: Path) -> None:
    """The user's own file needs no trust; a project's entry of the same name goes before it; no key is shown."""
    own = tmp_path / ".config" / "explorer"
    own.mkdir(parents=True)
    (own / "config.toml").write_text(OURS + "headers = { X-Api-Key = 'abcdefgh12345' }\n")
    environment = {"HOME": str(tmp_path), "TRACKER_TOKEN": "tracker-token-2"}
    page = here("mcp", "list", **environment)
    assert page.returncode == 0
    assert "https://tracker.example/mcp" in page.stdout
    assert "searcher" in page.stdout
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"tracker": {"command": "other"}}}))
    assert "https://tracker.example/mcp" in here("mcp", "list", **environment).stdout
    done = here("mcp", "list", "--trust-folder", "--output-format", "json", **environment)
    (server,) = json.loads(done.stdout)
    assert (server["place"], server["transport"]) == ("other", "stdio")
    assert "abcdefgh12345" not in page.stdout + done.stdout


def test_a_file_of_the_command_is_kept_whole_and_has_to_be_seen(here: Explorer, tmp_path: Path) -> None:
    """The server starts elsewhere, in a sandbox; a project's starts in the project's folder, and keeps its words."""
    (tmp_path / "server.py").write_text("print('no server')")
    words = ("mcp", "add", "notes", "--role", "searcher")
    refused = here(*words, "--", "python", "server.py")
    assert (refused.returncode, (tmp_path / ".config" / "explorer" / "config.toml").exists()) == (2, False)
    assert f"does not show {tmp_path}/server.py to the server notes" in refused.stderr
    assert f"--read {tmp_path}," in refused.stderr
    added = here(*words, "--read", ".", "--", "python", "server.py")
    assert f'args = ["{tmp_path}/server.py"]' in added.stdout
    assert 'args = ["server.py"]' in here("mcp", "add", "ours", "--project", "--", "python", "server.py").stdout


def test_what_is_added_is_listed_with_what_it_may_use(here: Explorer, tmp_path: Path) -> None:
    """Folders are kept as absolute paths, the file is private, and no entry is replaced."""
    (tmp_path / "posts").mkdir()
    words = ("mcp", "add", "forum", "--role", "searcher", "--write", "posts", "--host", "a.example", "--env", "TZ")
    done = here(*words, "--", "python", "server.py")
    assert done.returncode == 0, done.stderr
    path = tmp_path / ".config" / "explorer" / "config.toml"
    assert path.stat().st_mode & 0o077 == 0
    server = read_configuration(NO_FLAGS, {"HOME": str(tmp_path)}, tmp_path).settings.mcp["forum"]
    assert server.paths(server.write) == [tmp_path / "posts"]
    assert (server.read, server.hosts, server.place) == ((), ("a.example",), "python server.py")
    (listed,) = json.loads(here("mcp", "list", "--output-format", "json").stdout)
    assert (listed["roles"], listed["environment"]) == (["searcher"], ["TZ"])
    before = path.read_bytes()
    again = here("mcp", "add", "forum", "https://forum.example/mcp")
    assert (again.returncode, path.read_bytes()) == (2, before)
    assert "has an MCP server 'forum' already" in again.stderr
