import os
import resource
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from engine_stage import contents
from explorer.schema.errors import StorageError, ToolError
from explorer.workspace.workspace import MAX_FILE_BYTES, Workspace, sha256
from thoroughness import examples
from workspace.hostile_folder import (
    OPENINGS,
    SECRET,
    as_nobody,
    make_folder,
    opening_called,
    outside_is_intact,
    plant_symlinks,
    swapping,
)

TRAVERSALS = {
    "parent": "../secret.txt",
    "parent deeper": "notes/../../secret.txt",
    "parent at the end": "notes/..",
    "parent alone": "..",
    "parent behind dots": "./.././secret.txt",
    "parent behind slashes": "notes//..//../secret.txt",
    "padded": "  ../secret.txt  ",
    "absolute": "/etc/passwd",
    "absolute doubled": "//etc/passwd",
    "home": "~/secret.txt",
    "someone's home": "~root/secret.txt",
    "NUL": "notes/a.md\0../../secret.txt",
    "newline": "notes/a\n.md",
    "backslash": "..\\secret.txt",
    "backslash inside": "notes\\..\\..\\secret.txt",
    "drive": "C:/secret.txt",
    "drive relative": "c:secret.txt",
    "network share": "\\\\host\\share",
    "right to left": "notes/\u202etxt.exe",
    "zero width": "notes/a\u200b.md",
    "byte order mark": "\ufeffnotes/a.md",
    "tag characters": "notes/a\U000e0041.md",
    "surrogate": "notes/\udc80.md",
    "private use": "notes/\ue000.md",
    "4 kB": "a/" * 2_048,
    "long name": "n" * 300,
    "empty": "",
    "blank": "   ",
    "dot": ".",
    "folder itself": "././",
}
ENGINE_SPELLINGS = [
    ".explorer/journal.jsonl",
    ".EXPLORER/journal.jsonl",
    "./.Explorer/x",
    " .explorer/x",
    ".//.explorer//x",
    ".explorer",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path)


@pytest.fixture(params=OPENINGS)
def workspace(folder: Path, request: pytest.FixtureRequest) -> Workspace:
    return Workspace(folder, opening_called(request.param))


@pytest.mark.parametrize("path", TRAVERSALS.values(), ids=TRAVERSALS.keys())
def test_no_spelling_leads_out(path: str, workspace: Workspace, folder: Path) -> None:
    """Every way of using such a path is refused in words for the model, and nothing outside is touched."""
    uses: list[Callable[[], object]] = [
        lambda: workspace.read_text(path),
        lambda: workspace.write_text(path, "x"),
        lambda: workspace.foresee(path, "x"),
        lambda: workspace.lock(path),
    ]
    for use in uses:
        with pytest.raises(ToolError) as caught:
            use()
        caught.value.message.encode()
        assert len(caught.value.message) < 5_000
    assert not workspace.exists(path)
    assert workspace.digest(path) == ""
    assert outside_is_intact(folder)


def test_a_naive_workspace_is_escaped(folder: Path) -> None:
    """The control: with plain paths the same spellings read what they must not."""
    escaped = 0
    for path in TRAVERSALS.values():
        with suppress(OSError, ValueError):
            escaped += (folder / path.strip()).read_text() != ""
    assert escaped >= 5


@pytest.mark.parametrize("path", ENGINE_SPELLINGS)
def test_agents_never_write_the_engines_folder(path: str, workspace: Workspace, folder: Path) -> None:
    """However it is spelled; the engine itself may write there, and agents may read it."""
    for use in (lambda: workspace.write_text(path, "x"), lambda: workspace.foresee(path, "x")):
        with pytest.raises(ToolError, match="engine's own"):
            use()
    assert list((folder / ".explorer").iterdir()) == []
    workspace.write_own(".explorer/sources/S1.md", "text")
    assert workspace.read_text(".explorer/sources/S1.md") == "text"


def test_planted_links_are_not_followed(workspace: Workspace, folder: Path) -> None:
    """A link is neither read nor listed, and a write goes past it or is refused; what it points to stays."""
    for label, path in plant_symlinks(folder).items():
        with pytest.raises(ToolError):
            workspace.read_bytes(path)
        assert not workspace.exists(path), label
        with suppress(ToolError):
            workspace.write_text(path, "written by an agent")
        assert outside_is_intact(folder), label
    assert not (folder.parent / "not-there.txt").exists()
    assert (folder / "notes" / "a.md").read_text() == "# A\n\nin the run\n"
    links_written = [info.path for info in workspace.files() if info.path != "notes/a.md"]
    assert set(links_written) <= {"secret.md", "new.md", "env.md"}


def test_naive_links_are_followed(folder: Path) -> None:
    """The control: a plain read goes through the very same links."""
    paths = plant_symlinks(folder)
    assert (folder / paths["file"]).read_text() == SECRET
    assert (folder / paths["folder"]).read_text() == SECRET
    assert (folder / paths["process"]).read_bytes() != b""


@pytest.mark.slow
def test_folders_exchanged_for_links_meanwhile(workspace: Workspace, folder: Path) -> None:
    """No read or write gets out while someone swaps a folder and a link; a check before opening would not do."""
    (folder / "link").symlink_to(folder.parent / "outside")
    seen: set[str] = set()
    naive: set[str] = set()
    with swapping(folder / "notes", folder / "link"):
        for number in range(examples(2_000)):
            with suppress(ToolError):
                seen.add(workspace.read_text("notes/a.md"))
            if number % 10 == 0:
                with suppress(ToolError):
                    workspace.write_text("notes/new.md", "x")
        # On a busy machine the folder may have been the link each time that it was looked at.
        deadline = time.monotonic() + 40
        while (not seen or SECRET not in naive) and time.monotonic() < deadline:
            with suppress(ToolError):
                seen.add(workspace.read_text("notes/a.md"))
            with suppress(OSError):
                if (folder / "notes" / "a.md").resolve().is_relative_to(folder):
                    naive.add((folder / "notes" / "a.md").read_text())
    assert seen == {"# A\n\nin the run\n"}
    assert outside_is_intact(folder)
    assert SECRET in naive, "the control was never caught: the test has no teeth here"


def test_hard_links_are_not_read_and_not_written_through(workspace: Workspace, folder: Path) -> None:
    """A second name of a file outside is refused; a write replaces the name, not what else bears the content."""
    (folder / "twin.md").hardlink_to(folder.parent / "secret.txt")
    with pytest.raises(ToolError, match="hard link"):
        workspace.read_text("twin.md")
    workspace.write_text("twin.md", "mine")
    assert outside_is_intact(folder)
    assert workspace.read_text("twin.md") == "mine"


def test_pipes_sockets_devices_and_folders_are_refused_at_once(workspace: Workspace, folder: Path) -> None:
    """Nothing that is no plain file can be read, and nothing hangs."""
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket"))
    names = ["pipe", "socket", "notes"]
    with suppress(PermissionError):
        os.mknod(folder / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
        names.append("zero")
    begun = time.monotonic()
    for name in names:
        with pytest.raises(ToolError):
            workspace.read_bytes(name)
        assert not workspace.exists(name)
    with pytest.raises(ToolError, match="is a folder"):
        workspace.write_text("notes", "x")
    with pytest.raises(ToolError, match="not a plain folder"):
        workspace.write_text("notes/a.md/b.md", "x")
    assert [info.path for info in workspace.files()] == ["notes/a.md"]
    workspace.write_text("pipe", "now a file")
    assert workspace.read_text("pipe") == "now a file"
    assert time.monotonic() - begun < 20


def test_huge_and_binary_files_are_refused_with_their_size(workspace: Workspace, folder: Path) -> None:
    """A sparse terabyte costs nothing; a binary file is not shown as garbage; 8 MB and one byte are too much."""
    with (folder / "huge.md").open("wb") as file:
        file.truncate(1 << 40)
    (folder / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    with pytest.raises(ToolError, match=rf"huge.md has {1 << 40} bytes; the limit is {MAX_FILE_BYTES}"):
        workspace.read_bytes("huge.md")
    with pytest.raises(ToolError, match=r"image.png is a PNG image \(16 bytes\); .* !\[what it shows\]\(image.png\)"):
        workspace.read_text("image.png")
    with pytest.raises(ToolError, match="split it"):
        workspace.write_text("new.md", "x" * (MAX_FILE_BYTES + 1))
    assert workspace.write_text("new.md", "x" * MAX_FILE_BYTES).bytes == MAX_FILE_BYTES
    listed = {info.path: (info.lines, info.bytes) for info in workspace.files()}
    assert (listed["huge.md"], listed["image.png"]) == ((0, 1 << 40), (0, 16))


@pytest.mark.slow
def test_a_reader_sees_the_old_or_the_new_file(workspace: Workspace, folder: Path) -> None:
    """During 30 replacements each read brings one whole text; no temporary file is left."""
    texts = ["A" * 300_000, "B" * 300_000]
    workspace.write_text("notes/a.md", texts[0])
    over = threading.Event()
    seen: list[str] = []

    def read() -> None:
        while not over.is_set():
            seen.append(Workspace(folder).read_text("notes/a.md"))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(30):
        workspace.write_text("notes/a.md", texts[number % 2])
    over.set()
    reader.join()
    assert len(seen) > 3
    assert set(seen) <= set(texts)
    assert [path.name for path in (folder / "notes").iterdir()] == ["a.md"]


def test_a_read_only_folder_is_said_so() -> None:
    """The error names the file and the reason; what was there stands there."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "a.md").write_text("old")
        (folder / "a.md").chmod(0o444)
        folder.chmod(0o555)
        with as_nobody():
            workspace = Workspace(folder)
            with pytest.raises(StorageError, match=r"a\.md could not be written: Permission denied; .* unchanged"):
                workspace.write_text("a.md", "new")
            with pytest.raises(ToolError, match=r"cannot make the folder of notes/b\.md: Permission denied"):
                workspace.write_text("notes/b.md", "new")
            assert workspace.read_text("a.md") == "old"
        folder.chmod(0o755)
        assert contents(folder) == {"a.md": "old"}


def test_a_full_disk_leaves_the_old_file(workspace: Workspace, folder: Path) -> None:
    """A write that fails half-way, as the kernel plays it, changes nothing and leaves no temporary file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        with pytest.raises(StorageError, match="File too large"):
            workspace.write_text("notes/a.md", "x" * 5_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert contents(folder) == {"notes/a.md": "# A\n\nin the run\n"}


@pytest.mark.parametrize("name", ["n" * 198, "参" * 66, "é" * 99], ids=["ascii", "chinese", "accents"])
def test_long_names_that_fit_can_be_written(name: str, workspace: Workspace) -> None:
    """Names of up to 200 bytes work in any script, temporary names included; longer ones are refused."""
    assert workspace.write_text(f"{name}/a.md", "x").path == f"{name}/a.md"
    workspace.write_text(f"notes/{name}", "x")
    assert workspace.read_text(f"notes/{name}") == "x"
    with pytest.raises(ToolError, match="choose a shorter one"):
        workspace.write_text(f"{name[:200]}xxx", "x")


def test_twins_in_unicode_are_one_file(workspace: Workspace) -> None:
    """Two encodings of one name meet in one file and under one lock."""
    workspace.write_text("caf\u00e9.md", "one")
    workspace.write_text("cafe\u0301.md", "two")
    assert [info.path for info in workspace.files()] == ["caf\u00e9.md", "notes/a.md"]
    assert workspace.read_text("cafe\u0301.md") == "two"
    assert workspace.lock("cafe\u0301.md") is workspace.lock("./caf\u00e9.md")


def test_what_the_journal_is_told_about_a_file(workspace: Workspace, folder: Path) -> None:
    """Path, first words, lines as an editor counts them, bytes, and the hash of what is on disk."""
    written = workspace.write_text("./notes//b.md", "\n## Übersicht *\nzwei\ndrei")
    assert (written.path, written.title, written.lines, written.bytes) == ("notes/b.md", "Übersicht", 4, 26)
    assert written.sha256 == sha256((folder / "notes" / "b.md").read_bytes()) == workspace.digest("notes/b.md")
    empty = workspace.write_text("empty.md", "")
    assert (empty.title, empty.lines, empty.bytes) == ("", 0, 0)


def test_foreseen_is_what_happens(workspace: Workspace) -> None:
    """The hashes named before a write are those found around it, also for text no UTF-8 can hold."""
    for text in ("new", "", "lone \ud800"):
        change = workspace.foresee("notes/x.md", text)
        assert change.before == workspace.digest("notes/x.md")
        workspace.write_text("notes/x.md", text)
        assert change.after == workspace.digest("notes/x.md")


def test_removing_and_listing(workspace: Workspace, folder: Path) -> None:
    """Removing takes plain files only; listing leaves the engine's folder out unless asked, and sorts."""
    workspace.write_own(".explorer/sources/S1.md", "x")
    for name in ("b.md", "a.txt", "notes/deep/c.md"):
        workspace.write_text(name, "x")
    (folder / "bad\udc80name").write_text("x")
    assert [info.path for info in workspace.files()] == ["a.txt", "b.md", "notes/a.md", "notes/deep/c.md"]
    assert [info.path for info in workspace.files("notes")] == ["notes/a.md", "notes/deep/c.md"]
    assert [info.path for info in workspace.files("", "*.md")] == ["b.md", "notes/a.md", "notes/deep/c.md"]
    assert [info.path for info in workspace.files("", "notes/*.md")] == ["notes/a.md", "notes/deep/c.md"]
    assert [info.path for info in workspace.files(".explorer")] == [".explorer/sources/S1.md"]
    for outside in ("..", "/etc", "notes/../..", "~"):
        with pytest.raises(ToolError):
            workspace.files(outside)
    workspace.remove("b.md")
    workspace.remove("b.md")
    workspace.remove("notes")
    assert not workspace.exists("b.md")
    assert (folder / "notes").is_dir()
