"""What somebody who owns a command in the run's folder tries against the file tools, by both ways of opening files."""

import asyncio
import errno
import os
import resource
import socket
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from engine_stage import Recorder, call_room, contents, started
from explorer.agents.tool_calls import execute_calls
from explorer.schema.errors import StorageError, ToolError
from explorer.schema.events import AnyEvent, ToolStarted, TurnTaken
from explorer.schema.tool import Tool, ToolContext
from explorer.testing import says
from explorer.tools.files import CHANGED_BY_ANOTHER, EditTool, ListTool, ReadTool, SearchTool, WriteTool
from explorer.workspace.safe_open import A_FILE, Openat2, OpenatWalk, Opening, best_opening
from explorer.workspace.tree import MAX_SCANNED_BYTES
from explorer.workspace.workspace import MAX_FILE_BYTES, RECOUNT_AFTER, FolderUsage, Quota, QuotaTracker, Workspace
from sandbox.cages import room
from thoroughness import each_slow_but
from tool_call import NO_RUN, call_plainly
from workspace.hostile_folder import (
    OPENINGS,
    SECRET,
    make_folder,
    mounted,
    opening_called,
    outside_is_intact,
    plant_symlinks,
    swapping,
)

NOTE = "# A\n\nin the run\n"
HANG_S = 0.1
"""So long the control is watched: it never comes back."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path)


@pytest.fixture(params=OPENINGS)
def opening(request: pytest.FixtureRequest) -> Opening:
    return opening_called(request.param)


@pytest.fixture
def workspace(folder: Path, opening: Opening) -> Workspace:
    return Workspace(folder, opening)


async def told(tool: Tool, context: ToolContext = NO_RUN, /, **arguments: object) -> str:
    """What a tool says, in success or refusal."""
    try:
        return (await call_plainly(tool, context, **arguments)).text
    except ToolError as error:
        return error.message


def opens(opening: Opening, folder: Path, path: str) -> bool:
    """Whether a way to open files opens this."""
    root = os.open(folder, os.O_RDONLY)
    try:
        os.close(opening(root, path.split("/"), A_FILE))
    except OSError:
        return False
    finally:
        os.close(root)
    return True


# What leads out


def test_the_opening_itself_leads_nowhere(opening: Opening, folder: Path) -> None:
    """Even where no path was checked before: no link, mount or `..` in any place of a path is gone through."""
    for path in plant_symlinks(folder).values():
        assert not opens(opening, folder, path), path
    assert opens(opening, folder, "notes/a.md")
    assert not any(opens(opening, folder, path) for path in ("../secret.txt", "notes/../../secret.txt"))


@pytest.mark.slow
def test_the_walk_takes_over_where_the_kernel_does_not_answer(folder: Path) -> None:
    """Under a filter that answers ENOSYS or EPERM to `openat2`, as old kernels and containers do, files are read."""
    for error in (errno.ENOSYS, errno.EPERM):
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_OPENAT2, str(folder), str(error)], capture_output=True, text=True, check=True
        )
        assert done.stdout == f"OpenatWalk {NOTE}"
    assert isinstance(best_opening(), Openat2 | OpenatWalk)


WITHOUT_OPENAT2 = """
import ctypes, struct, sys
from pathlib import Path
from explorer.workspace.safe_open import OPENAT2, best_opening
from explorer.kernel import bpf
from explorer.workspace.workspace import Workspace

lines = [bpf.line(bpf.LOAD, 0)]
lines += bpf.if_call(OPENAT2, [bpf.line(bpf.RETURN, bpf.REFUSE | int(sys.argv[2]))])
program = b"".join([*lines, bpf.line(bpf.RETURN, bpf.ALLOW)])
kept = ctypes.create_string_buffer(program, len(program))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, struct.pack("HP", len(program) // 8, ctypes.addressof(kept)), 0, 0) == 0
print(type(best_opening()).__name__, Workspace(Path(sys.argv[1])).read_text("notes/a.md"), end="")
"""


def test_a_mount_is_not_entered(workspace: Workspace, folder: Path) -> None:
    """Neither another file system inside the folder nor a folder bound into it is read, listed or written."""
    (folder / "inner").mkdir()
    (folder / "bound").mkdir()
    with mounted(folder / "inner", "size=64k"):
        (folder / "inner" / "a.md").write_text(SECRET)
        subprocess.run(["mount", "--bind", folder.parent / "outside", folder / "bound"], check=True)
        try:
            for path in ("inner/a.md", "bound/a.md"):
                assert (folder / path).read_text() == SECRET, "the control: a plain read goes in"
                with pytest.raises(ToolError, match="another file system"):
                    workspace.read_text(path)
                with pytest.raises(ToolError, match="another file system"):
                    workspace.write_text(path, "x")
            assert [info.path for info in workspace.files()] == ["notes/a.md"]
        finally:
            subprocess.run(["umount", "-l", folder / "bound"], check=True)
    assert outside_is_intact(folder)


def race(workspace: Workspace, folder: Path, reads: int) -> tuple[set[str], set[str]]:
    """What is read, and what a check before opening reads, while a folder and a file are exchanged for links."""
    (folder / "link").symlink_to(folder.parent / "outside")
    (folder / "top.md").write_text(NOTE)
    (folder / "top-link.md").symlink_to(folder.parent / "secret.txt")
    seen: set[str] = set()
    naive: set[str] = set()
    with swapping(folder / "notes", folder / "link"), swapping(folder / "top.md", folder / "top-link.md"):
        for number in range(reads):
            with suppress(ToolError):
                seen.add(workspace.read_text("top.md" if number % 2 else "notes/a.md"))
            if number % 10 == 0:
                with suppress(ToolError):
                    workspace.write_text("notes/new.md", "x")
        deadline = time.monotonic() + 20
        while SECRET not in naive and time.monotonic() < deadline:
            with suppress(OSError):
                if (folder / "notes" / "a.md").resolve().is_relative_to(folder):
                    naive.add((folder / "notes" / "a.md").read_text())
    return seen, naive


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_long_race_has_no_winner(workspace: Workspace, folder: Path) -> None:
    """30,000 reads and 3,000 writes against two exchangers: 0 escapes, and a check before opening is caught."""
    seen, naive = race(workspace, folder, 30_000)
    assert seen == {NOTE}
    assert outside_is_intact(folder)
    assert SECRET in naive, "the control was never caught: the test has no teeth here"


# What is no plain file


@pytest.mark.timeout(30)
async def test_what_is_no_file_is_answered_at_once(workspace: Workspace, folder: Path) -> None:
    """Every file tool answers about pipes, sockets and folders, and none hangs as a naive open of the pipe does.

    What hangs is ended by the test's time limit: how long an answer takes says more about the machine.
    """
    os.mkfifo(folder / "pipe.md")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket.md"))
    for name in ("pipe.md", "socket.md", "notes"):
        words = [
            await told(ReadTool(workspace), filepath=name),
            await told(EditTool(workspace), filepath=name, old_string="a", new_string="b"),
            await told(WriteTool(workspace), filepath=f"{name}/x/y.md" if name != "notes" else name, content="x"),
        ]
        assert all("plain" in word or "is a folder" in word or "socket" in word for word in words), words
    assert await told(ListTool(workspace)) == "notes/a.md (3 lines, 16 bytes)"
    assert await told(SearchTool(workspace), pattern="run") == "notes/a.md:3: in the run"
    reader = threading.Thread(target=(folder / "pipe.md").read_text, daemon=True)
    reader.start()
    reader.join(HANG_S)
    assert reader.is_alive(), "the control came back: this pipe does not hang anybody"
    (folder / "pipe.md").write_text("now end")
    reader.join()


PLANTED = r"""
ln -s {secret} link.md; ln -s /proc/self/environ env.md; ln -s .. up; ln -s /proc/self/root r; ln -s .explorer engine
mkfifo pipe.md; truncate -s 200M huge.md; echo x > one.md; ln one.md two.md
printf '\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\2\200\0\0\1\340' > chart.png; echo '<svg/>' > chart.svg
"""


async def test_what_a_command_planted_is_not_followed(opening: Opening, tmp_path: Path) -> None:
    """Links, pipes, second names and holes made in the sandbox itself are neither read nor written through."""
    (tmp_path / "secret.txt").write_text(SECRET)
    async with room("bubblewrap", tmp_path) as place:
        ended, printed = await place.run(PLANTED.format(secret=tmp_path / "secret.txt"))
        assert ended.exit_code == 0, printed
        workspace = Workspace(place.folder, opening)
        for path in ("link.md", "env.md", "up/secret.txt", "r/etc/passwd", "pipe.md", "one.md", "two.md"):
            words = await told(ReadTool(workspace), filepath=path)
            assert any(why in words for why in ("cannot be read", "not a plain file", "hard link")), words
        assert (place.folder / "link.md").resolve() == tmp_path / "secret.txt", "the control: the link leads out"
        assert "not a plain folder" in await told(WriteTool(workspace), filepath="engine/journal.jsonl", content="x")
        assert "Wrote" in await told(WriteTool(workspace), filepath="link.md", content="x", mode="overwrite")
        assert "Wrote" in await told(WriteTool(workspace), filepath="one.md", content="new", mode="overwrite")
        assert (tmp_path / "secret.txt").read_text() == SECRET
        assert (place.folder / "two.md").read_text() == "x\n"
        listed = await told(ListTool(workspace))
        assert "chart.png (0 lines, 24 bytes)\nchart.svg (1 lines, 7 bytes)\n" in listed
        assert "huge.md (0 lines, 209715200 bytes)" in listed
        assert "pipe" not in listed
        assert "a PNG image of 640 x 480 pixels" in await told(ReadTool(workspace), filepath="chart.png")


async def test_hard_links_are_refused_whoever_asks(workspace: Workspace, folder: Path) -> None:
    """Not read, not listed, not edited; a write takes the name and leaves the secret; a plain read shows it."""
    (folder / "twin.md").hardlink_to(folder.parent / "secret.txt")
    assert (folder / "twin.md").read_text() == SECRET, "the control"
    for words in (
        await told(ReadTool(workspace), filepath="twin.md"),
        await told(EditTool(workspace), filepath="twin.md", old_string="secret", new_string="x"),
        await told(WriteTool(workspace), filepath="twin.md", content="x", mode="append"),
    ):
        assert words == "twin.md is a hard link; copies are read, links are not"
    assert await told(SearchTool(workspace), pattern="secret") == "No matches."
    assert [info.path for info in workspace.files()] == ["notes/a.md"]
    workspace.write_text("twin.md", "mine")
    assert outside_is_intact(folder)


def test_the_engines_folder_by_another_name(workspace: Workspace, folder: Path) -> None:
    """Names that some file systems take for the same are refused, and a folder that is the same one by its identity."""
    for name in (".explorer.", ".EXPLORER ", ".explorer\ufe0f", ".explorer\u034f", ".\uff45xplorer"):
        with pytest.raises(ToolError, match="engine's own"):
            workspace.write_text(f"{name}/journal.jsonl", "x")
    (folder / "alias").mkdir()
    done = subprocess.run(["mount", "--bind", folder / ".explorer", folder / "alias"], check=False, capture_output=True)
    if done.returncode == 0:
        try:
            with pytest.raises(ToolError):
                workspace.write_text("alias/journal.jsonl", "x")
        finally:
            subprocess.run(["umount", "-l", folder / "alias"], check=True)
    assert list((folder / ".explorer").iterdir()) == []


# What is too big, or no text


async def test_big_files_are_read_by_line_and_refused_as_a_whole(workspace: Workspace, folder: Path) -> None:
    """8 MB and a byte is read in parts with true numbers; what is further in than is looked is said so."""
    line = "x" * 99 + "\n"
    with (folder / "big.md").open("w") as file:
        file.write(line * (MAX_FILE_BYTES // 100) + "y" * (MAX_FILE_BYTES % 100) + "\n")
    total = MAX_FILE_BYTES // 100 + 1
    assert (folder / "big.md").stat().st_size == MAX_FILE_BYTES + 1
    with pytest.raises(ToolError, match=rf"big.md has {MAX_FILE_BYTES + 1} bytes; the limit is {MAX_FILE_BYTES}"):
        workspace.read_text("big.md")
    end = await told(ReadTool(workspace), filepath="big.md", start_line=total - 1)
    assert end.split("\n") == [
        f"big.md, lines {total - 1}-{total} of {total}",
        f"{total - 1}\t{line[:-1]}",
        f"{total}\t{'y' * (MAX_FILE_BYTES % 100)}",
    ]
    assert (await told(ReadTool(workspace), filepath="big.md")).endswith(
        f"({total - 400} more lines; read on with start_line=401)"
    )
    assert f"has {total} lines; start_line={total + 1}" in await told(
        ReadTool(workspace), filepath="big.md", start_line=total + 1
    )
    assert f"big.md ({total} lines, {MAX_FILE_BYTES + 1} bytes)" in await told(ListTool(workspace))
    assert "not searched, over" in await told(SearchTool(workspace), pattern="y")


@pytest.mark.slow
async def test_a_sparse_terabyte_is_never_gone_through(workspace: Workspace, folder: Path) -> None:
    """Neither reading, listing, searching, digesting nor counting what there is takes more than a moment of work."""
    for name, text in (("hole.md", ""), ("sly.csv", "a,b\n" * 4_000)):
        (folder / name).write_text(text)
        os.truncate(folder / name, 1 << 40)
    begun = time.process_time()
    assert f"hole.md is a binary file ({1 << 40} bytes)" in await told(ReadTool(workspace), filepath="hole.md")
    head = await told(ReadTool(workspace), filepath="sly.csv", end_line=2)
    assert head.startswith("sly.csv, lines 1-2 of more than 4000\n1\ta,b\n2\ta,b\n(3998 more lines; read on")
    assert f"only the 4000 lines within its first {MAX_SCANNED_BYTES} bytes" in await told(
        ReadTool(workspace), filepath="sly.csv", start_line=5_000
    )
    assert f"sly.csv (0 lines, {1 << 40} bytes)" in await told(ListTool(workspace))
    assert "No matches." in await told(SearchTool(workspace), pattern="lunar")
    assert workspace.digest("sly.csv") == ""
    workspace.write_text("notes/b.md", "holes take no room of anybody's")
    assert time.process_time() - begun < 4


def test_what_is_no_text_is_named_and_not_shown(workspace: Workspace, folder: Path) -> None:
    """Random bytes, pictures and archives come back as words; text in any script, and Latin-1, comes back as text."""
    kinds = {
        os.urandom(4_000): "a binary file",
        b"\xfe\xfa\x90\x91" * 8: "a binary file",
        b"\xff\xd8\xff\xe0\x00\x10JFIF": "a JPEG image",
        b"%PDF-1.7\n": "a PDF document",
        b"\x1f\x8b\x08\x00": "a gzip archive",
    }
    for content, kind in kinds.items():
        (folder / "it").write_bytes(content)
        words = rf"it is {kind} \({len(content)} bytes\); it cannot be read as text"
        with pytest.raises(ToolError, match=words):
            workspace.read_text("it")
        with pytest.raises(ToolError, match=words):
            workspace.read_lines("it", 1, 9)
    for text in ("Grüße\n", "热门话题\n" * 3_000, "параллельно\n", "ok"):
        (folder / "it").write_text(text)
        assert workspace.read_text("it") == text
    (folder / "it").write_bytes("Das wären größere Änderungen.\n".encode("latin-1"))
    assert workspace.read_text("it").startswith("Das w\ufffdren")


@pytest.mark.parametrize(
    "text", each_slow_but(3, zip(["a\r\nb\rc\u2028d\ne", "é\r\n" * 400_000, "", "\n\n", "x" * 3_000_000 + "\r\nend\n"]))
)
def test_pieces_make_the_same_lines_as_the_whole(text: str, workspace: Workspace, folder: Path) -> None:
    """Wherever a piece ends, between two bytes of a character or of a line's end, lines and numbers are the same."""
    (folder / "it.md").write_text(text, newline="")
    lines = text.splitlines()
    found = workspace.read_lines("it.md", 1, 10_000_000)
    assert (found.total, found.is_whole) == (len(lines), True)
    assert found.lines == [line[:100_000] for line in lines]


# Two agents at once


async def foreseen(tool: EditTool, edit: dict[str, str]) -> ToolContext:
    """The context of a call whose change is on record."""
    return replace(NO_RUN, change=await tool.foresee(tool.arguments.model_validate(edit)))


async def change_at_once(tools: list[EditTool], edits: list[dict[str, str]]) -> list[str]:
    """Let agents foresee their changes of one file first, and then make them all at once, as the engine does."""
    contexts = [await foreseen(tool, edit) for tool, edit in zip(tools, edits, strict=True)]

    async def one(place: int) -> str:
        return await told(tools[place], contexts[place], **edits[place])

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(place)) for place in range(len(tools))]
    return [task.result() for task in tasks]


@pytest.mark.slow
async def test_of_edits_of_the_same_text_one_wins(workspace: Workspace, folder: Path) -> None:
    """50 rounds of four agents: one wins each, the others are told to read again, and the file is as one left it."""
    conflict = CHANGED_BY_ANOTHER.format(path="a.md")
    tools = [EditTool(workspace) for _ in range(4)]
    text = "round 0 of nobody\n"
    (folder / "a.md").write_text(text)
    for number in range(1, 51):
        edits = [
            {"filepath": "a.md", "old_string": text.strip(), "new_string": f"{text.strip()}+{number}{agent}"}
            for agent in "abcd"
        ]
        results = await change_at_once(tools, edits)
        assert results.count(conflict) == 3
        (won,) = [edit for edit, result in zip(edits, results, strict=True) if result.startswith("Edited")]
        text = f"{won['new_string']}\n"
        assert (folder / "a.md").read_text() == text


async def test_edits_that_know_no_base_lose_text(folder: Path) -> None:
    """The control: who reads, waits for the others and writes without lock and hash loses all but the last."""
    path = folder / "a.md"
    path.write_text("base\n")
    everybody_has_read = asyncio.Barrier(4)

    async def naive(agent: str) -> None:
        text = path.read_text()
        await everybody_has_read.wait()
        path.write_text(f"{text}{agent}\n")

    async with asyncio.TaskGroup() as group:
        for agent in "abcd":
            group.create_task(naive(agent))
    assert len(path.read_text().split()) == 2


async def test_the_engine_lets_nobody_overwrite_another(workspace: Workspace, folder: Path) -> None:
    """Two agents of one run overwrite a file both foresaw: the second is told; what is added at its end is kept."""
    for mode, wins in (("overwrite", [False, True]), ("append", [True, True])):
        (folder / "a.md").write_text("old")
        foreseen = asyncio.Barrier(2)
        recorders = [Waiting(foreseen, mode, content) for content in (" mine", " yours")]
        async with asyncio.TaskGroup() as group:
            for recorder in recorders:
                group.create_task(
                    execute_calls(recorder.state(), call_room(recorder, [WriteTool(workspace)], workspace))
                )
        results = [result for recorder in recorders for result in recorder.results()]
        wrote = [result.startswith("Wrote") for result in results]
        assert sorted(wrote) == wins, mode
        words = (folder / "a.md").read_text().split()
        if mode == "append":
            assert sorted(words) == ["mine", "old", "yours"]
        else:
            assert results[wrote.index(False)] == CHANGED_BY_ANOTHER.format(path="a.md")
            assert words == (["mine"] if wrote[0] else ["yours"])


class Waiting(Recorder):
    """A journal of one agent that writes, in which the start of its call waits for the other agent's."""

    def __init__(self, foreseen: asyncio.Barrier, mode: str, content: str) -> None:
        call = ("write_file", {"filepath": "a.md", "content": content, "mode": mode})
        super().__init__([started(), TurnTaken(agent="searcher-1", turn=says("", call), seconds=0.0)])
        self.foreseen = foreseen

    async def record(self, event: AnyEvent) -> None:
        """Keep an event; at a start, wait."""
        await super().record(event)
        if isinstance(event, ToolStarted):
            await self.foreseen.wait()


async def test_a_command_that_changes_the_file_meanwhile_is_noticed(workspace: Workspace, folder: Path) -> None:
    """What stands there when the lock is held is compared with what was foreseen, whoever changed it."""
    tool, edit = EditTool(workspace), {"filepath": "notes/a.md", "old_string": "in the run", "new_string": "here"}
    context = await foreseen(tool, edit)
    (folder / "notes" / "a.md").write_text("in the run, said a command\n")
    assert await told(tool, context, **edit) == CHANGED_BY_ANOTHER.format(path="notes/a.md")
    assert (folder / "notes" / "a.md").read_text() == "in the run, said a command\n"


@pytest.mark.slow
def test_a_reader_during_150_replacements(workspace: Workspace, folder: Path) -> None:
    """Each read brings one whole text of 300 KB; no temporary file is listed meanwhile, and none is left."""
    texts = ["A" * 300_000, "B" * 300_000]
    workspace.write_text("notes/a.md", texts[0])
    over = threading.Event()
    seen: set[str] = set()
    listed: set[str] = set()

    def read() -> None:
        while not over.is_set():
            seen.add(workspace.read_text("notes/a.md"))
            listed.update(workspace.sizes())

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(150):
        workspace.write_text("notes/a.md", texts[number % 2])
    over.set()
    reader.join()
    assert seen == set(texts)
    assert listed == {"notes/a.md"}
    assert [path.name for path in (folder / "notes").iterdir()] == ["a.md"]


# What there is no room for


@pytest.mark.parametrize("how", ["full", "no inodes", "read-only"])
def test_a_disk_that_refuses_leaves_everything_as_it_was(how: str, opening: Opening, tmp_path: Path) -> None:
    """A file system that is full, without inodes, or read-only: a clear error, no half file, no rest of one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, "size=64k,nr_inodes=4" if how == "no inodes" else "size=64k"):
        workspace = Workspace(disk, opening)
        workspace.write_text("notes/a.md", "old")
        if how == "no inodes":
            (disk / "filler").write_text("")
        if how == "read-only":
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        words = "Read-only file system" if how == "read-only" else "No space left on device"
        naive = disk / "notes" / "naive.md"
        with pytest.raises(OSError, match=words):
            naive.write_text("n" * 100_000)
        with suppress(OSError):
            naive.unlink()
        for path in ("notes/a.md", "more/b.md"):
            with pytest.raises(StorageError, match=rf"{path} could not be written: {words}; what was there is unch"):
                workspace.write_text(path, "x" * 100_000)
        assert {path: text for path, text in contents(disk).items() if path != "filler"} == {"notes/a.md": "old"}


def test_too_big_for_this_process_is_said_so(workspace: Workspace, folder: Path) -> None:
    """A limit on the size of files, as a quota would, leaves the old text; what is made afterwards works."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        with pytest.raises(StorageError, match="unchanged"):
            workspace.write_text("notes/a.md", "x" * 5_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert contents(folder) == {"notes/a.md": NOTE}
    workspace.write_text("notes/a.md", "x" * 5_000)


def test_a_folder_that_goes_away_meanwhile_ends_no_run(folder: Path, opening: Opening) -> None:
    """A command that removes a folder between two steps of a write is the agents' doing, and no fault of the disk."""

    def meddling(root: int, parts: Sequence[str], flags: int) -> int:
        descriptor = opening(root, parts, flags)
        with suppress(OSError):
            (folder / "busy").rmdir()
        return descriptor

    with pytest.raises(ToolError, match=r"busy/x.md could not be written: .*; list_files, then try again"):
        Workspace(folder, meddling).write_text("busy/x.md", "x")
    assert Workspace(folder, opening).write_text("busy/x.md", "x").bytes == 1


def test_agents_have_their_share_and_no_more(folder: Path, opening: Opening) -> None:
    """Files and bytes beyond are refused with what would help; less, an old file's, and the report's are not."""
    workspace = Workspace(folder, opening, Quota(bytes=1_000, files=5))
    workspace.write_text("b.md", "x" * 900)
    with pytest.raises(ToolError, match=r"would have 4 files and 1017 bytes, and 5 files and 1000 bytes are the limit"):
        workspace.write_text("c.md", "x" * 101)
    workspace.write_text("report.md", "x" * 5_000)
    workspace.remove("report.md")
    workspace.write_text("b.md", "x" * 800)
    workspace.write_text("c.md", "x")
    workspace.write_text("d.md", "x")
    with pytest.raises(ToolError, match="6 files"):
        workspace.write_text("e.md", "x")
    (folder / "d.md").unlink()
    workspace.write_text("e.md", "x")
    workspace.write_own(".explorer/sources/S1.md", "the engine's own " * 1_000)
    workspace.write_text("e.md", "y")


def test_what_commands_wrote_is_counted(folder: Path, opening: Opening) -> None:
    """At the next look, which comes after some writes: their files take the room of agents, whoever wrote them."""
    workspace = Workspace(folder, opening, Quota(bytes=10_000, files=100))
    workspace.write_text("b.md", "x")
    (folder / "made.bin").write_bytes(b"x" * 20_000)
    for number in range(RECOUNT_AFTER - 1):
        workspace.write_text("b.md", "x" * (number + 2))
    with pytest.raises(ToolError, match="are the limit"):
        workspace.write_text("b.md", "x" * 100)


def test_the_folder_is_looked_at_seldom() -> None:
    """Counting what is there is done once in many writes, and again before something is refused."""
    looks: list[FolderUsage] = []

    def look() -> FolderUsage:
        looks.append(FolderUsage(5, 500))
        return looks[-1]

    room_left = QuotaTracker(Quota(files=100, bytes=1_000), look)
    for _ in range(RECOUNT_AFTER):
        room_left.take("a.md", 0, 1)
    assert len(looks) == 1
    room_left.take("a.md", 0, 1)
    assert len(looks) == 2
    with pytest.raises(ToolError):
        room_left.take("a.md", 0, 501)
    assert len(looks) == 3


# Names


def test_a_name_in_two_encodings_is_one_file_whoever_made_it(workspace: Workspace, folder: Path) -> None:
    """What a command named with `e` and an accent is read, listed, edited and locked under the name it looks like."""
    composed, taken_apart = "caf\u00e9/men\u00fc.md", unicodedata.normalize("NFD", "caf\u00e9/men\u00fc.md")
    (folder / taken_apart).parent.mkdir()
    (folder / taken_apart).write_text("by a command\n")
    assert not (folder / composed).exists(), "the control: plain paths are two files here"
    for spelling in (composed, taken_apart):
        assert workspace.read_text(spelling) == "by a command\n"
        assert workspace.lock(spelling) is workspace.lock(composed)
    assert [info.path for info in workspace.files()] == [composed, "notes/a.md"]
    assert [info.path for info in workspace.files("caf\u00e9")] == [composed]
    workspace.write_text(composed, "by an agent\n")
    assert (folder / taken_apart).read_text() == "by an agent\n"
    assert len(list(folder.glob("caf*/*"))) == 1


def test_upper_and_lower_case_share_a_lock_where_they_are_one_file(tmp_path: Path) -> None:
    """The file system decides: two locks where `A` and `a` are two files, one where they are one."""
    plain = Workspace(make_folder(tmp_path / "plain"))
    blind = Workspace(make_folder(tmp_path / "blind"))
    # A folder that answers to both names, as one does where case is ignored.
    (blind.folder / ".EXPLORER").symlink_to(".explorer")
    assert plain.lock("Notes/A.md") is not plain.lock("notes/a.md")
    assert blind.lock("Notes/A.md") is blind.lock("notes/a.md")


def test_names_that_are_no_agents_are_not_listed(workspace: Workspace, folder: Path) -> None:
    """Neither names that are no plain text, for the sake of models and terminals, nor files that are being written."""
    for name in (
        b".b.md.17230-d45dd3c0.tmp",
        b"bad\xff.md",
        b"a\nb.md",
        b"\x1b[2J.md",
        "\u202etxt.md".encode(),
        b"back\\slash.md",
    ):
        (Path(os.fsdecode(os.fsencode(folder) + b"/" + name))).write_text("x")
    assert [info.path for info in workspace.files()] == ["notes/a.md"]
