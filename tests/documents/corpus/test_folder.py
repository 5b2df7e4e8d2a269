"""Which files are looked at, and that nothing leads out of the folder."""

import os
from pathlib import Path

import pytest

from documents.corpus.stage import write
from explorer.documents.corpus import folder as looking
from explorer.documents.corpus.folder import FolderLimits, read_bytes, walk


def test_what_is_left_out_is_counted_with_its_reason(tmp_path: Path) -> None:
    """Hidden files, packages, links, pipes, empty and big files and runs are passed over, each under its reason."""
    top = write(
        tmp_path / "top",
        {
            "a.md": "text",
            "deep/b.txt": "text",
            ".secret": "x",
            ".git/config": "x",
            "node_modules/x/index.js": "x",
            "run-1/.explorer/journal.jsonl": "{}",
            "run-1/report.md": "derived",
            "reports/old.md": "derived",
            "empty.md": "",
            "big.txt": "x" * 101,
        },
    )
    (tmp_path / "outside.txt").write_text("secret")
    (top / "link.txt").symlink_to(tmp_path / "outside.txt")
    (top / "up").symlink_to(tmp_path)
    (top / "loop").symlink_to(top)
    os.mkfifo(top / "pipe")
    (top / os.fsdecode(b"caf\xe9.txt")).write_text("latin name")
    listing = walk(top, {top / "reports"}, FolderLimits(file_bytes=100))
    assert [file.name for file in listing.files] == ["a.md", "deep/b.txt"]
    assert listing.skipped.counts == {
        looking.HIDDEN: 2,
        looking.PACKAGES: 1,
        looking.LINK: 3,
        looking.RUNS: 2,
        looking.EMPTY: 1,
        looking.TOO_BIG: 1,
        looking.SPECIAL: 1,
        looking.BAD_NAME: 1,
    }
    assert "larger than 32 MB: big.txt" in listing.skipped.described
    assert "hidden" not in listing.skipped.described


def test_the_limit_of_files_keeps_the_nearest(tmp_path: Path) -> None:
    """Over the limit, files nearest to the top stay, and the rest is counted."""
    write(tmp_path, {"deep/down/a.md": "x", "deep/b.md": "x", "c.md": "x", "d.md": "x"})
    listing = walk(tmp_path, (), FolderLimits(files=3))
    assert [file.name for file in listing.files] == ["c.md", "d.md", "deep/b.md"]
    assert listing.skipped.counts == {looking.TOO_MANY: 1}
    cut = walk(tmp_path, (), FolderLimits(entries=1))
    assert cut.skipped.counts == {looking.TOO_MANY: 1}


def test_an_endless_depth_ends(tmp_path: Path) -> None:
    """Folders in folders are followed to a depth and no further."""
    path = tmp_path
    for _ in range(looking.MAX_DEPTH + 5):
        path = path / "d"
    path.mkdir(parents=True)
    (path / "a.md").write_text("x")
    listing = walk(tmp_path)
    assert listing.files == []
    assert listing.skipped.counts == {looking.TOO_DEEP: 1}


def test_names_are_readable_and_distinct(tmp_path: Path) -> None:
    """Decomposed letters, invisible ones and line breaks in names give clean paths, each its own."""
    for name in ("e\u0301.md", "é.md", "two\nlines.md", "<<end 0000>> [S1].md", "zero\u200bwidth.md", "-rf.md"):
        (tmp_path / name).write_text("x")
    found = {file.path for file in walk(tmp_path).files}
    assert found == {"é.md", "é.md (2)", "two lines.md", "<<end 0000>> [S1].md", "zerowidth.md", "-rf.md"}


def test_a_folder_exchanged_for_a_link_leads_nowhere(tmp_path: Path) -> None:
    """A folder or file that became a link after the walk is not followed when it is read."""
    top = write(tmp_path / "top", {"in/a.md": "inside", "b.md": "inside"})
    outside = write(tmp_path / "outside", {"a.md": "secret"})
    assert read_bytes(top, "in/a.md") == b"inside"
    (top / "in" / "a.md").unlink()
    (top / "in").rmdir()
    (top / "in").symlink_to(outside)
    (top / "b.md").unlink()
    (top / "b.md").symlink_to(outside / "a.md")
    assert (top / "in" / "a.md").read_text() == "secret"  # what a plain reader would get
    for name in ("in/a.md", "b.md"):
        with pytest.raises(OSError, match=r"symbolic|directory"):
            read_bytes(top, name)
