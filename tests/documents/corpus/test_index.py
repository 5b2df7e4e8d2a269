"""The index over a real folder: what is found, what a change costs, and what survives."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from documents.corpus.stage import NOTES, CountingParser, opened, paths, pdf, write
from explorer.documents.corpus.folder import TOO_BIG, TOO_MANY, FolderLimits
from explorer.documents.corpus.index import NOT_PARSED, Corpus, Progress, checked_folder, index_path
from explorer.schema.errors import ConfigError, ToolError


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder with a few notes."""
    return write(tmp_path / "notes", NOTES)


async def test_questions_find_their_documents(notes: Path) -> None:
    """Natural questions in English and Chinese find the right document first; endings and accents do not matter."""
    async with opened(notes) as corpus:
        assert (await paths(corpus, "How much does a rope cost every year?"))[0] == "harbour/ropes.md"
        assert (await paths(corpus, "who painted the crane"))[0] == "harbour/cranes.txt"
        assert await paths(corpus, "cafe") == ["kitchen.md"]
        assert await paths(corpus, "数据库的维护成本下降了多少？") == ["数据库.md"]
        assert await paths(corpus, "zeppelin") == []
        hit = (await corpus.search("五月")).hits[0]
        assert hit.title == "数据库维护"
        assert "五月下降了百分之六十一" in hit.snippet
        assert await corpus.line() == "Corpus: <<notes>>, 4 documents (search_corpus)"
        with pytest.raises(ToolError, match="no word to search for"):
            await corpus.search("?!")


async def test_globs_and_quoted_words(notes: Path) -> None:
    """A glob holds for path or name; quoted words alone must stand together, and it is told when they do not."""
    async with opened(notes) as corpus:
        assert await paths(corpus, "the year of the ropes and the crane", "*.txt") == ["harbour/cranes.txt"]
        assert set(await paths(corpus, "ropes crane milk", "harbour/*")) == {"harbour/ropes.md", "harbour/cranes.txt"}
        with pytest.raises(ToolError, match="matches the glob"):
            await corpus.search("ropes", glob="*.docx")
        exact = await corpus.search('"ropes cost"')
        assert [hit.path for hit in exact.hits] == ["harbour/ropes.md"]
        relaxed = await corpus.search('"cost ropes"')
        assert relaxed.is_relaxed
        assert relaxed.hits[0].path == "harbour/ropes.md"
        assert not exact.is_relaxed


async def test_a_named_document_comes_along(tmp_path: Path) -> None:
    """A document whose title the best hit names is found too, and says who named it."""
    folder = write(
        tmp_path / "wiki",
        {
            "treaty.md": "# The Lantern Treaty\n\nIt was signed by three ministers, among them Ines Valdor.",
            "person.md": "# Ines Valdor\n\nBorn on the coast, later shot during a failed coup.",
            "other.md": "# Harbour\n\nShips and ropes.",
        },
    )
    async with opened(folder) as corpus:
        found = (await corpus.search("Who signed the Lantern Treaty?")).hits
    assert [(hit.path, hit.named_in) for hit in found] == [("treaty.md", ""), ("person.md", "treaty.md")]


async def test_only_what_changed_is_read_again(notes: Path) -> None:
    """A second run parses changed and new files only; what is gone leaves; a touched file costs no parsing."""
    async with opened(notes) as corpus:
        assert (await corpus.overview()).documents == 4
    write(notes, {"kitchen.md": "# Kitchen rules\n\nThe zeppelin hangs over the stove.", "new.md": "A fresh page."})
    (notes / "harbour" / "ropes.md").rename(notes / "harbour" / "cords.md")
    (notes / "harbour" / "cranes.txt").unlink()
    os.utime(notes / "数据库.md", (1, 1))
    again = CountingParser()
    async with opened(notes, again) as corpus:
        assert await paths(corpus, "zeppelin") == ["kitchen.md"]
        assert await paths(corpus, "ropes") == ["harbour/cords.md"]
        assert await paths(corpus, "crane milk") == []
        assert (await corpus.read("数据库.md")).mtime_ns == 1_000_000_000
    assert sorted(again.asked) == ["file:harbour/cords.md", "file:kitchen.md", "file:new.md"]
    third = CountingParser()
    async with opened(notes, third) as corpus:
        assert (await corpus.overview()).documents == 4
    assert third.asked == []


async def test_pdf_by_page(tmp_path: Path) -> None:
    """A PDF's passages know their page, its text is whole, and its own title is shown."""
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "tide.pdf").write_bytes(
        pdf("The first page is about boats.", "The tide rose by 3.4 metres in March.", title="On tides")
    )
    async with opened(folder) as corpus:
        hit = (await corpus.search("How far did the tide rise in March?")).hits[0]
    assert (hit.title, hit.page, hit.document.pages) == ("On tides", 2, 2)
    assert hit.document.text[hit.offset :].startswith("[page 2]")


async def test_html_and_other_encodings(tmp_path: Path) -> None:
    """HTML is read as its text; UTF-16, GB 18030 and Windows-1252 texts are read in their own encodings."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    page = "<html><head><title>Buoys</title><script>x()</script></head><body><article><h1>Buoys</h1><p>{}</p></article>"
    (folder / "b.html").write_text(
        page.format("The red buoy marks the channel to the old pier. " * 8), encoding="utf-8"
    )
    (folder / "wide.txt").write_text("The wide lantern.", encoding="utf-16")
    (folder / "gb.txt").write_bytes("港口的灯塔每晚点亮。".encode("gb18030"))
    (folder / "west.txt").write_bytes("Le phare éclaire la côte bretonne.".encode("cp1252"))
    (folder / "image.bin").write_bytes(bytes(range(256)) * 20)
    async with opened(folder) as corpus:
        assert await paths(corpus, "red buoy channel") == ["b.html"]
        assert "x()" not in (await corpus.read("b.html")).text
        assert await paths(corpus, "lantern") == ["wide.txt"]
        assert await paths(corpus, "灯塔") == ["gb.txt"]
        assert await paths(corpus, "cote eclaire") == ["west.txt"]
        assert (
            "not text, HTML, PDF, Word, PowerPoint, Excel or EPUB: image.bin"
            in (await corpus.overview()).skipped.described
        )


async def test_what_cannot_be_parsed_is_told_and_tried_again_a_few_times(notes: Path) -> None:
    """A file the parser gives up on is counted with the reason, tried in later runs, and then left until it changes."""
    (notes / "bad.pdf").write_bytes(b"%PDF-1.4 broken")
    for run in range(4):
        parser = CountingParser(fail=lambda body: body.startswith(b"%PDF"))
        async with opened(notes, parser) as corpus:
            overview = await corpus.overview()
        assert overview.documents == 4
        assert overview.skipped.examples[NOT_PARSED] == ["bad.pdf: it took too long"]
        assert parser.asked.count("file:bad.pdf") == (run < 3)
    (notes / "bad.pdf").write_bytes(pdf("Mended at last."))
    async with opened(notes) as corpus:
        assert await paths(corpus, "mended") == ["bad.pdf"]


async def test_big_folders_are_bounded_and_say_so(notes: Path) -> None:
    """Files over the size, and files and text over the limits, are left out and counted."""
    write(notes, {"huge.log": "x " * 5_000})
    async with opened(notes, bounds=FolderLimits(files=3, file_bytes=5_000)) as corpus:
        overview = await corpus.overview()
    assert overview.documents == 3
    assert overview.skipped.counts == {TOO_BIG: 1, TOO_MANY: 1}
    async with opened(notes, index=notes.parent / "b.sqlite", bounds=FolderLimits(chars=20)) as corpus:
        assert (await corpus.overview()).skipped.counts[TOO_MANY] == 4


def damaged(path: Path, how: str) -> None:
    """Spoil an index."""
    if how == "not a database":
        path.write_bytes(b"this is no database at all" * 400)
    elif how == "bytes in the middle":
        content = bytearray(path.read_bytes())
        content[4096 : len(content) - 4096] = bytes(len(content) - 8192)
        path.write_bytes(content)
    else:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(how)


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        "not a database",
        "bytes in the middle",
        "PRAGMA user_version = 99",
        "DROP TABLE passages",
        "DROP TABLE words_data",
        "UPDATE documents SET text = x'00'",
        "UPDATE documents SET digest = 'no'",
        "DELETE FROM passages",
        "DELETE FROM words WHERE rowid = 1",
    ],
)
async def test_a_damaged_or_newer_index_is_made_anew(how: str, notes: Path) -> None:
    """Whatever is wrong with the index, the answers are those of the folder."""
    index = notes.parent / "index.sqlite"
    async with opened(notes) as corpus:
        expected = await paths(corpus, "ropes and cranes of the harbour")
    damaged(index, how)
    async with opened(notes) as corpus:
        assert await paths(corpus, "ropes and cranes of the harbour") == expected
        assert (await corpus.read("harbour/ropes.md")).text.endswith("in May.")
        assert (await corpus.overview()).documents == 4


async def test_an_index_that_cannot_be_kept_is_told(notes: Path) -> None:
    """Where no index can be written, the tool says so in words, and nothing else breaks."""
    (notes.parent / "taken").write_text("a file")
    async with opened(notes, index=notes.parent / "taken" / "index.sqlite") as corpus:
        with pytest.raises(ToolError, match="cannot be searched"):
            await corpus.search("ropes")
        assert (await corpus.line()).startswith("Corpus: <<notes>>: the folder cannot be searched")
    (notes.parent / "folder.sqlite").mkdir()
    async with opened(notes, index=notes.parent / "folder.sqlite") as corpus:
        with pytest.raises(ToolError, match="cannot be searched"):
            await corpus.search("ropes")


async def test_cancelled_indexing_keeps_what_it_has(notes: Path) -> None:
    """Files read before a cancellation are not read again; the next search goes on with the rest."""
    reached = asyncio.Event()

    def stop_at_third(progress: Progress) -> None:
        if progress.done == 2:
            reached.set()

    class Stuck(CountingParser):
        async def parse(self, kind: str, body: bytes, *, url: str = "", content_type: str = ""):  # noqa: ANN202
            if reached.is_set():
                await asyncio.Event().wait()
            return await super().parse(kind, body, url=url, content_type=content_type)

    first, second = Stuck(), CountingParser()
    async with opened(notes, first, on_progress=stop_at_third) as corpus:
        task = asyncio.create_task(corpus.overview())
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    seen: list[Progress] = []
    async with opened(notes, second, on_progress=seen.append) as corpus:
        assert (await corpus.overview()).documents == 4
    assert len(first.asked) == 2
    assert len(second.asked) == 2
    assert [(one.done, one.total) for one in seen] == [(0, 2), (1, 2), (2, 2)]


async def test_what_is_not_searched_is_said_after_each_indexing(notes: Path) -> None:
    """People are told, in the first run and in later ones, and not only the model."""
    write(notes, {f"log{number}.md": "x " * 5_000 for number in range(5)})
    for _ in range(2):
        seen: list[Progress] = []
        async with opened(notes, bounds=FolderLimits(file_bytes=5_000), on_progress=seen.append) as corpus:
            await corpus.overview()
        words = "larger than 32 MB: log0.md, log1.md, log2.md, ... (5 in all)"
        assert seen[-1].words == f"not searched in the folder: {words}"


async def test_many_ask_at_once_and_it_is_indexed_once(notes: Path) -> None:
    """Parallel first searches wait for one indexing."""
    parser = CountingParser()
    async with opened(notes, parser) as corpus, asyncio.TaskGroup() as group:
        tasks = [group.create_task(corpus.search(words)) for words in ("ropes", "crane", "milk", "数据")]
    assert [task.result().hits[0].path for task in tasks] == [
        "harbour/ropes.md",
        "harbour/cranes.txt",
        "kitchen.md",
        "数据库.md",
    ]
    assert len(parser.asked) == 4


PROGRAM = """
import asyncio, sys
from pathlib import Path
from explorer.documents.corpus.index import Corpus, Options
from explorer.workspace.user_key import UserKey
from explorer.documents.parsing.parser import TrustingParser

async def main():
    options = Options(key=UserKey(b"k" * 32))
    async with Corpus(Path(sys.argv[1]), Path(sys.argv[2]), TrustingParser(), options) as corpus:
        found = await corpus.search("page 17")
        print((await corpus.overview()).documents, found.hits[0].path)

asyncio.run(main())
"""


@pytest.mark.slow
def test_two_processes_at_once(tmp_path: Path) -> None:
    """Processes that index the same folder at the same time all answer rightly."""
    folder = write(tmp_path / "many", {f"p{n}.md": f"# Page {n}\n\nThis is page {n}." for n in range(60)})
    command = [sys.executable, "-c", PROGRAM, str(folder), str(tmp_path / "index.sqlite")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=200)[0] for process in running] == ["60 p17.md\n"] * 2


async def test_an_index_belongs_to_its_folder(notes: Path, tmp_path: Path) -> None:
    """Each folder has a file of its own beneath the workspace; what is no folder is refused with the way out."""
    assert index_path(tmp_path, notes) != index_path(tmp_path, tmp_path)
    assert index_path(tmp_path, notes / ".." / "notes") == index_path(tmp_path, notes)
    for wrong in (tmp_path / "missing", notes / "kitchen.md"):
        with pytest.raises(ConfigError) as caught:
            checked_folder(wrong)
        assert "--corpus DIR" in caught.value.hint
    async with opened(notes) as corpus:
        for path in ("../notes/kitchen.md", str(notes / "kitchen.md"), "/etc/passwd", "harbour/../kitchen.md"):
            with pytest.raises(ToolError, match="no document"):
                await corpus.read(path)
        with pytest.raises(ToolError, match=r"did you mean harbour/ropes\.md"):
            await corpus.read("harbor/rope.md")
        assert (await corpus.read("file:kitchen.md")).title == "Kitchen rules"


async def test_a_closed_corpus_opens_no_file(notes: Path) -> None:
    """A corpus nobody asks makes no index."""
    async with Corpus(notes, notes.parent / "idle.sqlite", CountingParser()):
        pass
    assert not (notes.parent / "idle.sqlite").exists()
