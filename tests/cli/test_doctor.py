"""`doctor`: what is wrong, and what mends it."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.cli.commands.doctor import check_python, check_roles, check_workspace, parser_result
from explorer.documents.parsing.document import ConfinementReport
from explorer.schema.settings import Settings
from small_disk import small_disk, write_protect

Explorer = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.slow
def test_doctor_ends_soon_and_finds_nothing_that_fails_on_a_plain_machine(here: Explorer) -> None:
    """Without network and keys it warns, and says what to do."""
    before = time.monotonic()
    done = here("doctor", "--output-format", "json")
    # Each service has a few seconds; asked one after the other, or waited for without end, they would take longer.
    assert time.monotonic() - before < 45
    findings = json.loads(done.stdout)
    assert done.returncode == 0
    names = {finding["name"] for finding in findings}
    assert {"python", "workspace", "disk", "roles", "parser", "anthropic key", "hacker news", "local models"} <= names
    assert all(finding["fix"] for finding in findings if finding["level"] != "ok")


@pytest.mark.slow
def test_a_workspace_that_is_read_only_is_a_finding(here: Explorer, tmp_path: Path) -> None:
    """Neither the check nor a question crashes on the disk; both say which folder cannot be written."""
    with small_disk(tmp_path / "disk", 1_000_000) as disk:
        write_protect(disk)
        done = here("doctor", "--workspace", str(disk))
        asked = here("demo", "--workspace", str(disk))
    assert done.returncode == 1
    assert "fail workspace " in done.stdout
    assert asked.returncode == 2
    assert f"cannot write in {disk}: Read-only file system\n  → choose another folder: --workspace DIR" in asked.stderr


@pytest.mark.slow
def test_a_run_on_a_disk_that_is_read_only_can_be_read(here: Explorer, tmp_path: Path) -> None:
    """What looks at it works; what would continue it names the folder, and the command that says more."""
    with small_disk(tmp_path / "disk", 8_000_000) as disk:
        assert here("demo", "--no-shell", "--workspace", str(disk)).returncode == 0
        write_protect(disk)
        for command in ("show", "report", "verify"):
            done = here(command, "--workspace", str(disk))
            assert (done.returncode, "explorer: " in done.stderr) == (0, False), done.stderr
        for words in (("resume", "latest", "And?"), ("fork", "latest", "And?")):
            done = here(*words, "--workspace", str(disk))
            assert done.returncode == 1
            assert "Read-only file system\n  → see what is wrong with it: explorer doctor" in done.stderr


@pytest.mark.slow
def test_an_address_the_user_chose_must_answer(here: Explorer) -> None:
    """A service that is down fails the check; the line names the variable."""
    done = here("doctor", EXPLORER_HN_API_URL="http://127.0.0.1:9/v0", ANTHROPIC_API_KEY="sk-secret-1")
    assert done.returncode == 1
    assert "fail hacker news" in done.stdout
    assert "environment EXPLORER_HN_API_URL" in done.stdout
    assert "sk-secret-1" not in done.stdout + done.stderr


@pytest.mark.slow
def test_a_mistyped_variable_is_warned_of(here: Explorer) -> None:
    """With what was probably meant."""
    assert "did you mean EXPLORER_MODEL?" in here("doctor", EXPLORER_MODLE="x").stdout


@pytest.mark.slow
def test_a_model_without_its_key_fails(here: Explorer) -> None:
    """The fix is the variable."""
    done = here("doctor", EXPLORER_MODEL="anthropic:claude-opus-5-5")
    assert done.returncode == 1
    assert "set ANTHROPIC_API_KEY" in done.stdout


@pytest.mark.slow
def test_the_search_engine_is_named(here: Explorer) -> None:
    """Which one would be asked and why, where it does not answer, and what is missing for one set by name."""
    nowhere = "http://127.0.0.1:9"
    chosen = here("doctor", BRAVE_API_KEY="brave-secret-1", EXPLORER_BRAVE_URL=nowhere, EXPLORER_TAVILY_URL=nowhere)
    assert "ok   search engine   brave: BRAVE_API_KEY is set; when it fails, tavily-keyless" in chosen.stdout
    assert "fail web search      does not answer" in chosen.stdout
    assert "environment EXPLORER_BRAVE_URL" in chosen.stdout
    assert "brave-secret-1" not in chosen.stdout + chosen.stderr
    missing = here("doctor", EXPLORER_SEARCH="exa", EXPLORER_EXA_URL=nowhere)
    assert missing.returncode == 1
    assert "fail search engine   search is set to exa, but its key is missing" in missing.stdout
    assert "set EXA_API_KEY" in missing.stdout


def test_a_workspace_that_cannot_be_written_fails(tmp_path: Path) -> None:
    """It is tried out: a file stands where the folder should be."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    finding = check_workspace(blocked)
    assert finding.level == "fail"
    assert "--workspace" in finding.fix


def test_a_broken_role_file_fails(tmp_path: Path) -> None:
    """The finding names the file."""
    (tmp_path / "searcher.md").write_text("no frontmatter")
    finding = check_roles(Settings(roles_dir=tmp_path))
    assert finding.level == "fail"
    assert "searcher.md" in finding.words


@pytest.mark.parametrize(("version", "level"), [((3, 10, 9), "fail"), ((3, 11, 0), "ok"), ((3, 14, 1), "ok")])
def test_the_python_version_is_checked(version: tuple[int, ...], level: str) -> None:
    """From 3.11 on."""
    assert check_python(version).level == level


@pytest.mark.parametrize(
    ("found", "level", "words"),
    [
        (
            ConfinementReport(has_seccomp=True, landlock=7, why=""),
            "ok",
            "no network, no files, seccomp (Landlock ABI 7)",
        ),
        (
            ConfinementReport(has_seccomp=True, landlock=0, why=""),
            "ok",
            "no network, no files, seccomp (no Landlock in this kernel)",
        ),
        (
            ConfinementReport(has_seccomp=False, landlock=7, why="refused", open=("run a program",)),
            "warn",
            "Landlock ABI 7 and rlimits only: refused",
        ),
        (ConfinementReport(has_seccomp=False, landlock=0, why="refused"), "warn", "rlimits only: refused"),
        (
            ConfinementReport(has_seccomp=True, landlock=7, why="", open=("connect",)),
            "fail",
            "it is confined, and could still: connect",
        ),
    ],
)
def test_what_confines_the_parser_is_said(found: ConfinementReport, level: str, words: str) -> None:
    """One line names the walls; where some are missing, why, and what to do."""
    said = parser_result(found)
    assert (said.level, said.words, bool(said.fix)) == (level, words, level != "ok")
