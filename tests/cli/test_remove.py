"""`runs rm` and `runs gc`."""

import json
import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

from cli.stage import SCRIPT, Explorer, clean_environment
from explorer.journal.listing import list_runs
from explorer.run.archive import remove


def aged(folder: Path, name: str, *, records: int | None = None) -> Path:
    """A copy of a run under another id; cut off after so many records when that is given."""
    copy = folder.parent / name
    shutil.copytree(folder, copy)
    if records is not None:
        path = copy / ".explorer" / "journal.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:records]))
    return copy


def ids(workspace: Path) -> list[str]:
    """All runs of a workspace."""
    return [run.run_id for run in list_runs(workspace)]


def test_a_run_is_removed_when_that_is_sure(kept_run: Path, here: Explorer) -> None:
    """Without a terminal a yes has to be said in advance; nothing of the run is left."""
    refused = here("runs", "rm", "latest")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--yes" in refused.stderr
    other = aged(kept_run, "20200101-000000-other-0000")
    message = json.loads(here("runs", "rm", kept_run.name, "--yes", "--output-format", "json").stdout)
    assert message["removed"] is True
    assert [run["run_id"] for run in message["runs"]] == [kept_run.name]
    assert message["bytes"] > 100_000
    assert list(other.parent.glob("[!.]*")) == [other]
    assert here("runs", "rm", "latest", "2020", "-y").stdout.startswith("removed 1 run, ")
    assert list(other.parent.glob("[!.]*")) == []


def test_an_unknown_run_among_others_removes_none(kept_run: Path, here: Explorer) -> None:
    """All names are looked up before the first folder goes."""
    assert here("runs", "rm", "latest", "1999", "--yes").returncode == 5
    assert here("runs", "rm", "--yes").returncode == 2
    assert kept_run.is_dir()


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "is_kept"), [("", True), pytest.param("y", False, marks=pytest.mark.slow)])
def test_a_person_is_asked(kept_run: Path, tmp_path: Path, answer: str, is_kept: bool) -> None:  # noqa: FBT001
    """On a terminal, with the list of what would go; only a yes is a yes."""
    terminal, inner = pty.openpty()
    with subprocess.Popen(
        [str(SCRIPT), "runs", "rm", "latest"],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        cwd=tmp_path,
        env=clean_environment(tmp_path),
    ) as process:
        os.close(inner)
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(terminal, 65536)
        os.write(terminal, f"{answer}\n".encode())
    os.close(terminal)
    assert kept_run.name.encode() in shown
    assert process.returncode == 0
    assert kept_run.is_dir() == is_kept


@pytest.mark.slow
def test_old_runs_go_and_others_stay(kept_run: Path, here: Explorer) -> None:
    """Neither young, nor unfinished, nor damaged ones, unless an unfinished one is asked for; first comes a look."""
    workspace = kept_run.parent
    aged(kept_run, "20200101-000000-old-0000")
    aged(kept_run, "20200102-000000-cut-0000", records=40)
    broken = aged(kept_run, "20200103-000000-broken-0000") / ".explorer" / "journal.jsonl"
    content = bytearray(broken.read_bytes())
    content[1000] ^= 1
    broken.write_bytes(content)

    assert here("runs", "gc").stdout == "nothing to remove\n"
    look = here("runs", "gc", "--older-than", "0h", "--keep", "1", "--dry-run")
    assert "20200101-000000-old-0000" in look.stdout
    assert "nothing was removed" in look.stdout
    assert len(ids(workspace)) == 4
    assert here("runs", "gc", "--keep", "1", "--yes").stdout.startswith("removed 1 run, ")
    assert ids(workspace) == ["20200102-000000-cut-0000", "20200103-000000-broken-0000", kept_run.name]
    assert here("runs", "gc", "--keep", "0", "--unfinished", "--yes", "-q").returncode == 0
    assert ids(workspace) == ["20200103-000000-broken-0000"]


@pytest.mark.parametrize("flags", [("--older-than", "soon"), ("--older-than", "9" * 9 + "w"), ("--keep", "-1")])
def test_an_age_or_a_number_that_is_none_is_refused(kept_run: Path, here: Explorer, flags: tuple[str, ...]) -> None:
    """By the flag's name."""
    done = here("runs", "gc", *flags, "--yes")
    assert done.returncode == 2
    assert flags[0] in done.stderr
    assert kept_run.is_dir()


def test_a_link_to_a_run_is_removed_and_the_run_is_not(kept_run: Path, tmp_path: Path) -> None:
    """What stands outside the workspace is not ours to remove."""
    link = tmp_path / "linked"
    link.symlink_to(kept_run)
    remove(link)
    assert not os.path.lexists(link)
    assert kept_run.is_dir()


def test_the_cache_of_pages_is_dropped_when_asked(kept_run: Path, here: Explorer) -> None:
    """`--cache` throws fetched pages away and says how much that was; runs stay."""
    page = kept_run.parent / ".cache" / "pages" / "ab" / "abcdef"
    page.parent.mkdir(parents=True)
    page.write_bytes(b"x" * 5_000)
    assert here("runs", "gc", "--cache", "--dry-run").returncode == 0
    assert page.exists()
    done = here("runs", "gc", "--cache")
    assert (done.returncode, page.exists(), kept_run.exists()) == (0, False, True)
    assert "of fetched pages" in done.stderr


def test_what_a_killed_import_or_removal_left_is_removed(kept_run: Path, here: Explorer) -> None:
    """All of it that is older than any import takes; one at work, a link and the runs stay."""
    workspace = kept_run.parent
    for name in (".import-killed", ".removed-killed", ".import-at-work"):
        shutil.copytree(kept_run, workspace / name / kept_run.name)
    (workspace / ".removed-link").symlink_to(kept_run)
    for name in (".import-killed", ".removed-killed"):
        os.utime(workspace / name, (1_000_000_000, 1_000_000_000))
    assert "left when it was killed" not in here("runs", "gc", "--dry-run").stderr
    assert (workspace / ".import-killed").is_dir()
    done = here("runs", "gc")
    assert done.returncode == 0
    assert "that an import or a removal left when it was killed" in done.stderr
    left = {".import-at-work", ".removed-link", kept_run.name}
    assert {one.name for one in workspace.iterdir()} & (left | {".import-killed", ".removed-killed"}) == left
    assert (kept_run / "report.md").is_file()
    assert "left when it was killed" not in here("runs", "gc").stderr
