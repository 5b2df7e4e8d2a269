"""Runs with an MCP server, from the command line: cited, verified, killed in the middle of a call, and resumed."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.stage import Explorer, begin_explorer, clean_environment
from explorer.journal.listing import read_records
from explorer.schema.events import McpToolsListed, ToolFinished
from explorer.schema.messages import Turn
from explorer.testing import ScriptedServer, says

SERVER = Path(__file__).parents[1] / "mcp_client" / "raw_server.py"
REPORT = "# Fig\n\nThe word was “first printed in Ravenna in 1478” [S1].\n"
ENDING = (
    says("It is in the dictionary [S1]."),
    says("Now the report.", ("write_file", {"filepath": "report.md", "content": REPORT})),
    says("Done.", ("finish_exploration", {"summary": "The word is old."})),
)


def asking(tool: str) -> Turn:
    return says("I ask.", (f"mcp__raw__{tool}", {"text": "fig"}))


LEAD = says("A helper looks.", ("call_agent", {"agent_type": "searcher", "task_description": "Look the word fig up."}))


def configure(folder: Path, misdeed: str = "", more: str = 'sandbox = "off"') -> Path:
    """Configure the server in a folder; return the file of its calls."""
    log = folder / "calls.log"
    words = json.dumps(["-I", "-S", str(SERVER), str(log), misdeed])
    entry = f'[mcp.raw]\ncommand = "{sys.executable}"\nargs = {words}\nroles = ["searcher"]\n{more}\n'
    (folder / "explorer.toml").write_text(entry)
    return log


def variables(server: ScriptedServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-1", "OPENAI_MODEL": "scripted"}


def events(folder: Path) -> list[object]:
    (run,) = (folder / "workspace").glob("2*")
    return [record.event for record in read_records(run)]


def test_a_report_cites_what_a_server_returned(here: Explorer, tmp_path: Path) -> None:
    """The passage is a source of the run, and `verify` finds the quote in it."""
    log = configure(tmp_path)
    with ScriptedServer([LEAD, asking("look"), *ENDING]) as server:
        done = here("--trust-folder", "How old is the word fig?", **variables(server))
    assert done.returncode == 0, done.stderr
    assert "first printed in Ravenna in 1478” [1]" in done.stdout
    assert "mcp:raw/look?text=fig" in done.stdout
    assert "MCP server raw without a sandbox" in done.stderr
    checked = here("verify", "--output-format", "json")
    assert json.loads(checked.stdout)["counts"]["supported"] == 1
    assert log.read_text() == "look fig\n"
    (listed,) = (event for event in events(tmp_path) if isinstance(event, McpToolsListed))
    assert {tool.remote: tool.effect for tool in listed.tools} == {
        "look": "pure",
        "write": "external",
        "keyed": "repeatable",
    }
    asked = json.dumps(server.requests[1]["tools"])
    assert "Tool look of the MCP server raw, which says: <<Looks a word up.>>" in asked
    assert "<<Any words>>" in asked


def kill_in_a_call(tmp_path: Path, tool: str) -> Path:
    """Kill a run in the middle of a call; return the file of the server's calls."""
    log = configure(tmp_path, "hang_once")
    with ScriptedServer([LEAD, asking(tool)]) as server:
        process = begin_explorer("--trust-folder", "How old is the word fig?", cwd=tmp_path, **variables(server))
        while not log.is_file() or not log.read_text():
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
        process.communicate()
    return log


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "count"), [("look", 2), ("write", 1), ("keyed", 2)])
def test_killed_in_the_middle_of_a_call(explorer: Explorer, tmp_path: Path, tool: str, count: int) -> None:
    """A call without effect, or one that says it can be repeated, is made again; any other never."""
    log = kill_in_a_call(tmp_path, tool)
    with ScriptedServer(ENDING) as server:
        done = explorer("resume", "latest", "--trust-folder", **variables(server))
    assert log.read_text() == f"{tool} fig\n" * count
    finished = next(one for one in events(tmp_path) if isinstance(one, ToolFinished) and one.name.startswith("mcp"))
    assert finished.success == (count > 1)
    if count == 1:
        assert "This call was interrupted and is not repeated" in finished.content
    else:
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_server_that_cannot_start_refuses_the_run(here: Explorer, tmp_path: Path) -> None:
    """One line before anything is asked or paid; an optional one is left out, with a line."""
    configure(tmp_path)
    text = (tmp_path / "explorer.toml").read_text().replace("raw_server.py", "no_server.py")
    (tmp_path / "explorer.toml").write_text(text)
    with ScriptedServer(ENDING[:1]) as server:
        done = here("--trust-folder", "Is there a word?", **variables(server))
    assert done.returncode == 2
    assert "The MCP server raw cannot be used: it ended with exit code 2; it said:" in done.stderr
    assert not server.requests
    (tmp_path / "explorer.toml").write_text(f"{text}optional = true\n")
    turn = says("Nothing to do.", ("finish_exploration", {"summary": "Nothing."}))
    with ScriptedServer([turn, turn, turn]) as server:
        done = here("--trust-folder", "Is there a word?", **variables(server))
    assert "MCP server raw left out:" in done.stderr
    assert server.requests


@pytest.mark.slow
def test_a_changed_description_is_refused_until_it_is_accepted(here: Explorer, tmp_path: Path) -> None:
    """The first listing is accepted; what changes later needs the user, who is shown both."""
    configure(tmp_path)
    assert here("mcp", "test", "raw", "--trust-folder").returncode == 0
    (pins,) = (tmp_path / ".local" / "state" / "explorer" / "mcp").iterdir()
    pins.write_text(
        pins.read_text().replace("Looks a word up.", "Finds a word.").replace('"sha256": "', '"sha256": "0', 1)
    )
    done = here("mcp", "test", "raw", "--trust-folder")
    assert done.returncode == 1
    assert "CHANGED" in done.stdout
    assert "mcp__raw__look said before: Finds a word." in done.stdout
    assert "explorer mcp test raw --accept" in done.stderr
    with ScriptedServer([LEAD, asking("look"), *ENDING]) as server:
        run = here("--trust-folder", "How old is the word fig?", **variables(server))
    assert "tools left out: mcp__raw__look (its description has changed)" in " ".join(run.stderr.split())
    assert "mcp__raw__look" not in json.dumps(server.requests[1]["tools"])
    assert here("mcp", "test", "raw", "--trust-folder", "--accept").returncode == 0
    assert here("mcp", "test", "raw", "--trust-folder").returncode == 0


@pytest.mark.slow
def test_roles_that_name_what_is_not_there(here: Explorer, tmp_path: Path) -> None:
    """A role that names an unknown server, or an unknown tool of one, is refused in one line."""
    roles = tmp_path / "roles"
    roles.mkdir()
    for tool, words in (
        ("mcp__nowhere__look", "there is no MCP server 'nowhere'"),
        ("mcp__raw__paint", "mcp__raw__paint cannot be used: its server does not offer it"),
        ("mcp__raw", "names no tool of an MCP server"),
    ):
        (roles / "x.md").write_text(f"---\nname: x\ndescription: d\ntools: [{tool}]\n---\nWork.\n")
        configure(tmp_path)
        with ScriptedServer([]) as server:
            done = here("--roles", "roles", "--trust-folder", "Is there a word?", **variables(server))
        assert (done.returncode, server.requests) == (2, []), done.stderr
        assert words in done.stderr


@pytest.mark.slow
def test_a_run_is_resumed_without_its_server(explorer: Explorer, tmp_path: Path) -> None:
    """Its frozen tools stay; a call says that the server is not configured."""
    kill_in_a_call(tmp_path, "look")
    (tmp_path / "explorer.toml").unlink()
    with ScriptedServer([says("Nothing was found."), *ENDING[2:]]) as server:
        explorer("resume", "latest", **variables(server))
    assert "mcp__raw__look" in json.dumps(server.requests[0]["tools"])
    (finished,) = (one for one in events(tmp_path) if isinstance(one, ToolFinished) and one.name.startswith("mcp"))
    assert finished.content == "The MCP server raw is not configured now."


@pytest.mark.slow
def test_in_the_sandbox(explorer: Explorer, tmp_path: Path) -> None:
    """Where a sandbox holds, a server sees its project and no file of the user's; it writes where it may."""
    data = tmp_path / "data"
    data.mkdir()
    for write, code in (('write = ["data"]', 0), ("", 2)):
        configure(tmp_path, more=f'{write}\nread = ["{SERVER.parent}"]')
        text = (tmp_path / "explorer.toml").read_text().replace("calls.log", "data/calls.log")
        (tmp_path / "explorer.toml").write_text(text)
        probe = explorer("doctor", "--output-format", "json", EXPLORER_SHELL="auto")
        if "bubblewrap" not in probe.stdout and "landlock" not in probe.stdout:
            pytest.skip("no sandbox holds here")
        with ScriptedServer([LEAD, asking("write"), *ENDING]) as server:
            done = explorer("--trust-folder", "How old is the word fig?", **variables(server))
        assert "in the sandbox" in done.stderr
        finished = [one for one in events(tmp_path) if isinstance(one, ToolFinished) and one.name.startswith("mcp")]
        assert finished[-1].success == (code == 0), done.stderr
        subprocess.run(["rm", "-r", str(tmp_path / "workspace")], check=True, env=clean_environment(tmp_path))


@pytest.mark.slow
def test_a_confined_server_sees_no_files_of_the_user(tmp_path: Path) -> None:
    """Not those next to its project, nor its own run's."""
    project = tmp_path / "project"
    project.mkdir()
    secret = tmp_path / "secret.txt"
    secret.write_text("the user's own words")
    log = configure(tmp_path, "peek", more=f'write = ["data"]\nread = ["{SERVER.parent}"]')
    text = (tmp_path / "explorer.toml").read_text().replace(str(log), "data/calls.log")
    (tmp_path / "explorer.toml").rename(project / "explorer.toml").write_text(text)
    (project / "data").mkdir()
    ask = says("I ask.", ("mcp__raw__look", {"text": str(secret)}))
    with ScriptedServer([LEAD, ask, *ENDING]) as server:
        process = begin_explorer("--trust-folder", "How old is the word?", cwd=project, **variables(server))
        _, shown = process.communicate()
    if "in the sandbox" not in shown:
        pytest.skip("no sandbox holds here")
    (finished,) = (one for one in events(project) if isinstance(one, ToolFinished) and one.name.startswith("mcp"))
    assert "cannot read" in finished.content
    assert "own words" not in finished.content


@pytest.mark.slow
def test_a_long_result_goes_to_a_file_and_is_stored_whole(here: Explorer, tmp_path: Path) -> None:
    """The model reads its start and end, and what is in between can be cited."""
    configure(tmp_path, "long")
    middle = REPORT.replace("first printed in Ravenna in 1478", "1234 The word fig was first printed in Ravenna")
    report = says("Now the report.", ("write_file", {"filepath": "report.md", "content": middle}))
    with ScriptedServer([LEAD, asking("look"), ENDING[0], report, ENDING[2]]) as server:
        done = here("--trust-folder", "How old is the word fig?", **variables(server))
    assert done.returncode == 0, done.stderr
    assert json.loads(here("verify", "--output-format", "json").stdout)["counts"]["supported"] == 1
    (finished,) = (one for one in events(tmp_path) if isinstance(one, ToolFinished) and one.name.startswith("mcp"))
    assert len(finished.content) < 20_000
    assert ".explorer/outputs/searcher-1.t1.1.txt" in finished.content


@pytest.mark.slow
def test_a_server_sees_no_other_variables(here: Explorer, tmp_path: Path) -> None:
    """What its entry names, and what every program needs; no key of the user's, and a key of its own in no journal."""
    configure(tmp_path, "peek", more='sandbox = "off"\nenv = ["WORD_TOKEN"]')
    ask = says("I ask.", ("mcp__raw__look", {"text": "/proc/self/environ"}))
    given = {"WORD_TOKEN": "word-token-12345", "OTHER_TOKEN": "other-token-12345"}
    with ScriptedServer([LEAD, ask, *ENDING]) as server:
        here("--trust-folder", "How old is the word fig?", **variables(server), **given)
    (finished,) = (one for one in events(tmp_path) if isinstance(one, ToolFinished) and one.name.startswith("mcp"))
    assert "WORD_TOKEN=[redacted]" in finished.content
    assert "PATH=" in finished.content
    assert "other-token" not in finished.content
    assert "sk-loopback" not in finished.content
    (run,) = (tmp_path / "workspace").glob("2*")
    assert b"word-token-12345" not in b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file())
