"""Text piped in next to a question: a file it is about; and every stdin that holds nothing changes nothing."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.stage import SCRIPT, Explorer, clean_environment
from explorer.cli.launch import NOTHING, piped_files
from explorer.journal.listing import read_records
from team_script import cited_references, only_run

ROPES = "Stock of the boathouse.\n\nThe ropes cost 12 euros each. The lanterns weigh 90 g.\n"
QUESTION = "What do the ropes cost?"


def plan_with(stdin: int | None, folder: Path, script: str = "") -> tuple[float, "subprocess.CompletedProcess[str]"]:
    """Plan a question with this stdin: how long it took, and how it ended."""
    command = ["bash", "-c", f"exec {SCRIPT} --dry-run '{QUESTION}' {script}"]
    environment = {**clean_environment(folder), "EXPLORER_MODEL": "offline"}
    before = time.monotonic()
    done = subprocess.run(
        command, stdin=stdin, capture_output=True, text=True, cwd=folder, env=environment, timeout=200, check=False
    )
    return time.monotonic() - before, done


def test_what_is_piped_in_is_a_source(typed: Explorer, tmp_path: Path) -> None:
    """`cat notes | explorer "..."`: kept in the run as stdin.txt, read, and cited."""
    done = typed("--model", "offline", "-q", QUESTION, stdin=ROPES)
    assert done.returncode == 0, done.stderr
    assert "12 euros" in done.stdout
    assert "stdin.txt" in done.stdout
    assert cited_references(done.stdout) == {"S1"}
    folder = only_run(tmp_path / "workspace")
    assert (folder / "inputs" / "stdin.txt").read_text() == ROPES
    assert read_records(folder)


@pytest.mark.slow
def test_it_stands_beside_files_and_a_redirected_file_is_as_good(here: Explorer, tmp_path: Path) -> None:
    """A plan has them with their sizes; a file of the same name keeps its own."""
    (tmp_path / "stdin.txt").write_text("Other notes.\n")
    done = here("--dry-run", "--file", "stdin.txt", QUESTION, stdin=ROPES, EXPLORER_MODEL="offline")
    assert f"stdin.txt (13 B), stdin.txt ({len(ROPES)} B)" in done.stdout
    both = here("--file", "stdin.txt", "-q", QUESTION, stdin=ROPES, EXPLORER_MODEL="offline")
    assert both.returncode == 0, both.stderr
    inputs = only_run(tmp_path / "workspace") / "inputs"
    assert sorted(path.name for path in inputs.iterdir()) == ["2-stdin.txt", "stdin.txt"]
    (tmp_path / "notes.md").write_text(ROPES)
    _, redirected = plan_with(None, tmp_path, "< notes.md")
    assert f"stdin.txt ({len(ROPES)} B)" in redirected.stdout


def test_a_page_that_is_piped_in_is_read_as_one(here: Explorer, tmp_path: Path) -> None:
    """`curl ... | explorer "..."` gives HTML; what is no text at all is refused before anything is made."""
    page = f"<!doctype html><html><head><title>Stock</title></head><body><p>{ROPES}</p></body></html>"
    assert "stdin.html (" in here("--dry-run", QUESTION, stdin=page, EXPLORER_MODEL="offline").stdout
    done = here(QUESTION, stdin="\0\0\1\2", EXPLORER_MODEL="offline")
    assert (done.returncode, done.stdout) == (2, "")
    assert "stdin.txt is none of text, HTML, PDF" in done.stderr
    assert not (tmp_path / "workspace").exists()


@pytest.mark.slow
def test_a_follow_up_takes_no_file(here: Explorer, kept_run: Path) -> None:
    """Nothing that is piped in is passed over in silence; as the follow-up itself it is taken."""
    assert kept_run.is_dir()
    done = here("-c", "And this?", stdin=ROPES)
    assert (done.returncode, done.stdout) == (2, "")
    assert "text is piped in" in done.stderr
    assert here("-c", "-", "-q", stdin="And the prices?").returncode == 0


def test_a_question_on_stdin_is_no_file(here: Explorer) -> None:
    """`-` takes stdin for the question, as before."""
    done = here("--dry-run", "-", stdin=QUESTION, EXPLORER_MODEL="offline")
    assert f"question   {QUESTION}\n" in done.stdout
    assert "files      none" in done.stdout


def test_a_pipe_that_stays_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is taken and that is said; what comes in time is taken, and a pipe that was closed holds nothing."""
    output: list[str] = []
    read_end, write_end = os.pipe()
    with open(read_end, encoding="utf-8") as stdin:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stdin", stdin)
        with open(write_end, "wb", buffering=0) as writing:  # noqa: PTH123 - a descriptor
            assert piped_files(output.append, wait_s=0.01) == {}
            assert output == [NOTHING]
            writing.write(ROPES.encode())
        assert piped_files(output.append, wait_s=30) == {"stdin.txt": ROPES.encode()}
        assert piped_files(output.append, wait_s=30) == {}
    assert output == [NOTHING]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["open pipe", "/dev/null", "blank", "closed", "empty pipe", "empty file", "open socket"],
)
def test_a_stdin_that_holds_nothing_changes_nothing(kind: str, tmp_path: Path) -> None:
    """Nothing hangs: a pipe that stays open and silent, as some CI has it, is given up after two seconds, and said."""
    (tmp_path / "empty").write_bytes(b"")
    read_end, write_end = os.pipe()
    left, right = socket.socketpair()
    scripts = {"closed": "<&-", "empty file": "< empty", "blank": "< <(echo)"}
    stdin = {"open pipe": read_end, "empty pipe": read_end, "open socket": left.fileno()}.get(kind, subprocess.DEVNULL)
    try:
        if kind == "empty pipe":
            os.close(write_end)
        seconds, done = plan_with(stdin, tmp_path, scripts.get(kind, ""))
    finally:
        os.close(read_end)
        if kind != "empty pipe":
            os.close(write_end)
        left.close()
        right.close()
    assert done.returncode == 0, done.stderr
    assert "files      none" in done.stdout
    assert (NOTHING in done.stderr) == (kind in {"open pipe", "open socket"})
    assert seconds < 30
