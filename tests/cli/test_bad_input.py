"""What goes wrong outside, each with its exit code, one line, and the way out; the slow tests do it by processes."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from cli.stage import SCRIPT, Explorer
from explorer.journal.journal import CHECKPOINTS
from explorer.journal.listing import read_records
from model_servers import OpenAIServer, Reply
from team_script import only_run

NOWHERE = "http://127.0.0.1:9"
ROLE = "---\nname: searcher\ndescription: Looks.\ntools: [read_file]\n---\nYou look.\n"


def told(done: "subprocess.CompletedProcess[str]", code: int) -> list[str]:
    """The lines of an error: what happened, and at least one way out; never a traceback."""
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith(("explorer: ", "  → "))]
    assert len(lines) >= 2, done.stderr
    assert "Traceback" not in done.stderr
    return lines


def test_a_model_without_its_key(typed: Explorer, tmp_path: Path) -> None:
    """4, by the name of the variable; no run is made."""
    message, hint = told(typed("--model", "anthropic:claude-opus-5-5", "q q"), 4)
    assert "ANTHROPIC_API_KEY" in message
    assert "set ANTHROPIC_API_KEY" in hint
    assert not (tmp_path / "workspace").exists()


def test_a_model_that_the_server_does_not_know(typed: Explorer) -> None:
    """2: asking again would not help, another name would."""
    with OpenAIServer([Reply(status=404, error="no_model")]) as server:
        done = typed("--model", "openai:gone-model", "q q", OPENAI_BASE_URL=server.url)
    lines = told(done, 2)
    assert "does not know the model" in lines[0]
    assert "--model" in lines[1]


def test_a_server_that_is_not_there(typed: Explorer, tmp_path: Path) -> None:
    """6, by its address; no run is made."""
    lines = told(typed("q q", OPENAI_BASE_URL=f"{NOWHERE}/v1"), 6)
    assert NOWHERE in lines[0]
    assert not (tmp_path / "workspace").exists()


@pytest.mark.slow
def test_hacker_news_that_is_down(typed: Explorer) -> None:
    """No source could be reached: exit code 6 and the way to continue; the report says what could not be read."""
    services = {"EXPLORER_HN_API_URL": f"{NOWHERE}/v0", "EXPLORER_HN_SEARCH_URL": f"{NOWHERE}/api/v1"}
    done = typed(
        "--model", "offline", "-q", "What is notable on Hacker News?", EXPLORER_ALLOW_HOSTS="127.0.0.1", **services
    )
    assert done.returncode == 6, done.stderr
    assert "explorer resume" in done.stderr
    assert "> **Sources unavailable:** No lookup reached a source" in done.stdout
    assert "could not be read" in done.stdout


def test_a_question_that_is_empty_and_one_that_is_too_long(typed: Explorer, tmp_path: Path) -> None:
    """2, at once, without an echo of a megabyte."""
    told(typed(""), 2)
    before = time.process_time()
    done = typed("-", stdin="x" * 1_000_000)
    assert time.process_time() - before < 5
    assert "1,000,000 characters" in told(done, 2)[0]
    assert "--file" in done.stderr
    assert len(done.stderr) < 500
    assert not (tmp_path / "workspace").exists()


@pytest.mark.parametrize(
    ("words", "workspace"),
    [
        ("--model offline q q", "taken"),
        pytest.param("runs", "taken/runs", marks=pytest.mark.slow),
        pytest.param("report", "long" * 100, marks=pytest.mark.slow),
        pytest.param("queue", "taken", marks=pytest.mark.slow),
        pytest.param("serve --port 0", "taken", marks=pytest.mark.slow),
    ],
)
def test_a_workspace_that_can_be_none(typed: Explorer, tmp_path: Path, words: str, workspace: str) -> None:
    """2, also from what only looks: a file is in its place or on the way to it, or its name is too long."""
    (tmp_path / "taken").write_text("")
    lines = told(typed(*words.split(), "--workspace", workspace), 2)
    assert f"there can be no runs in {workspace}" in lines[0]
    assert "--workspace" in lines[1]


@pytest.mark.slow
def test_a_run_that_is_not_there(typed: Explorer, kept_run: Path) -> None:
    """5, with the list to look at."""
    assert kept_run.is_dir()
    lines = told(typed("resume", "20200101"), 5)
    assert "'20200101'" in lines[0]
    assert "explorer runs" in lines[1]


def test_a_journal_that_is_damaged(typed: Explorer, kept_run: Path) -> None:
    """1, by the record's number; nothing is guessed, nothing is written."""
    journal = kept_run / ".explorer" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:6], *lines[7:]]))
    before = journal.read_bytes()
    output = told(typed("resume", "latest", "And then?"), 1)
    assert "record 7" in output[0]
    assert "explorer doctor" in output[1]
    assert journal.read_bytes() == before


@pytest.mark.slow
def test_a_disk_that_is_full(here: Explorer, tmp_path: Path) -> None:
    """1 with the way on; once there is room, the run goes on where it was."""
    command = f"ulimit -f 100; exec {SCRIPT} demo -q"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        # Without the variables by which coverage would follow: its own files would be too big as well.
        # Nor with bytecode to write: what is cut off at the bound would stay in the installation.
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    lines = told(done, 1)
    assert "everything acknowledged so far is safe" in lines[0]
    folder = only_run(tmp_path / "workspace")
    assert f"explorer resume {folder.name}" in lines[1]
    kept = read_records(folder)
    again = here("resume", folder.name, "-q")
    assert again.returncode == 0, again.stderr
    assert read_records(folder)[: len(kept)] == kept


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ROLE.replace("description: Looks.", "descriptoin: Looks."), "field `description`"),
        (ROLE.replace("[read_file]", "[read_file, raed_file]"), "there is no tool 'raed_file'"),
        ("You look.\n", "has no frontmatter"),
    ],
    ids=["field", "tool", "none"],
)
def test_a_role_file_that_cannot_be_used(typed: Explorer, tmp_path: Path, text: str, words: str) -> None:
    """2, by file and field; no run is made."""
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "searcher.md").write_text(text)
    lines = told(typed("--model", "offline", "--roles", "roles", "q q"), 2)
    assert "roles/searcher.md" in lines[0]
    assert words in lines[0]
    assert not (tmp_path / "workspace").exists()


@pytest.mark.parametrize(
    ("name", "words"), [("report.odt", "the endings are: .md"), ("there.md", "add --overwrite"), (".", "folder")]
)
def test_a_report_that_cannot_be_written_there(typed: Explorer, tmp_path: Path, name: str, words: str) -> None:
    """2, before anything is asked; the hint has what would do, and a file that exists stays as it is."""
    (tmp_path / "there.md").write_text("mine")
    with OpenAIServer([]) as server:
        done = typed("-o", name, "q q", OPENAI_BASE_URL=server.url)
    assert words in "\n".join(told(done, 2))
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.slow
def test_a_run_is_named_by_the_path_that_was_printed(typed: Explorer, kept_run: Path, tmp_path: Path) -> None:
    """By every command that takes a run, also from outside its workspace; a follow-up stays in that workspace."""
    paths = (f"workspace/{kept_run.name}", f"workspace/{kept_run.name}/", f"{kept_run}/report.md")
    for path in paths:
        for command in ("show", "report", "verify", "doctor"):
            assert typed(command, path).returncode == 0, (command, path)
    (tmp_path / "elsewhere").mkdir()
    assert typed("watch", f"{kept_run}/", "--speed", "max", "--workspace", "elsewhere").returncode == 0
    done = typed("resume", f"{kept_run}/report.md", "And the prices?", "--workspace", "elsewhere")
    assert done.returncode == 0, done.stderr
    assert f"resume {kept_run.name} --workspace {kept_run.parent}" in done.stderr
    forked = typed("fork", paths[1], "--no-run")
    assert forked.returncode == 0, forked.stderr
    assert (kept_run.parent / forked.stdout.strip()).is_dir()


def test_a_run_against_an_unknown_host_ends_at_once(typed: Explorer, tmp_path: Path) -> None:
    """From the command line: one attempt, one line with host and setting, exit 6, and the run can be resumed."""
    settings = {"OPENAI_BASE_URL": "http://no-such-host.invalid/v1", "OPENAI_API_KEY": "sk-test"}
    done = typed("What is new?", "--model", "openai:m", **settings)
    assert done.returncode == 6
    assert "the host name no-such-host.invalid cannot be resolved" in done.stderr
    assert "OPENAI_BASE_URL" in done.stderr
    (journal,) = tmp_path.glob("**/journal.jsonl")
    assert journal.read_text().count('"type":"turn_failed"') == 1


def test_a_point_that_is_none_is_refused(typed: Explorer, tmp_path: Path) -> None:
    """The command says what would be right, and starts nothing."""
    refused = typed("demo", EXPLORER_CRASH="on_tuesday:1")
    assert refused.returncode == 2
    assert "EXPLORER_CRASH=on_tuesday:1" in refused.stderr
    assert all(point in refused.stderr for point in CHECKPOINTS)
    assert not (tmp_path / "workspace").exists()
