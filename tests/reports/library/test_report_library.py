"""The library's folder: begun, added to, found again; by several processes, after a crash, with hostile files in it."""

import os
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from filelock import FileLock

from explorer.reports.library import Library, NewReport
from explorer.reports.library_page import SLUG_CHARS, ReportPage, is_same_address, is_same_title, slug_of
from explorer.schema.errors import ToolError
from explorer.workspace.access import MAX_NAME_BYTES
from reports.library.stage import FIRST, NOON, SECOND, SOURCES, TITLE, begun, library, said, source

LATER = NOON + timedelta(hours=3)
NAME = "2026-08-10/sqlite-4-is-out.md"


def test_a_report_is_a_readable_file(tmp_path: Path) -> None:
    """Frontmatter, heading, text with numbers, references with title, date and address; no id of the run's in sight."""
    assert begun(tmp_path, "It is out [S1]; people doubt it [S2, S1].") == NAME
    assert (tmp_path / NAME).read_text() == (
        "---\n"
        "title: SQLite 4 is out\n"
        "story_id: '123'\n"
        "url: https://sqlite.example/four\n"
        "verdict: ''\n"
        "created: '2026-08-10T12:00:00+00:00'\n"
        "updated: '2026-08-10T12:00:00+00:00'\n"
        "run:\n"
        f"- {FIRST}\n"
        "---\n\n"
        "# SQLite 4 is out\n\n"
        f"<!-- call {FIRST}/writer-1.t1.1 -->\n\n"
        "It is out [1]; people doubt it [2][1].\n\n"
        "<!-- references -->\n\n"
        "## References\n\n"
        f"1. SQLite 4. sqlite.example, 2026-08-09, https://sqlite.example/four <!-- {FIRST}:S1 -->\n"
        f"2. What people say (discussion). news.example, https://news.example/item?id=1 <!-- {FIRST}:S2 -->\n"
    )


def test_a_second_run_adds_a_dated_section(tmp_path: Path) -> None:
    """Its own ids go on with the numbers there are, what was cited before keeps its own; the verdict is the new one."""
    begun(tmp_path, "It is out [S1].")
    theirs = {
        "S1": source("S1", "https://other.example/", "Another"),
        "S9": SOURCES["S1"].model_copy(update={"id": "S9"}),
    }
    addition = said("Benchmarks came [S1]; the page stands [S9].", SECOND, "writer-1.t2.1", "worth reading", theirs)
    name, title = library(tmp_path, LATER).append(NAME, addition)
    assert (name, title) == (NAME, f"Update 2026-08-10 15:00 (run {SECOND})")
    text = (tmp_path / NAME).read_text()
    assert f"## {title}\n\n<!-- call {SECOND}/writer-1.t2.1 -->\n\nBenchmarks came [2]; the page stands [1].\n" in text
    assert text.count("<!-- references -->") == text.count("## References") == 1
    assert text.endswith(f"2. Another. other.example, https://other.example/ <!-- {SECOND}:S1 -->\n")
    (stored_report,) = library(tmp_path).stored_reports()
    assert stored_report.fields is not None
    assert (stored_report.fields.verdict, stored_report.fields.run) == ("worth reading", (FIRST, SECOND))
    assert (stored_report.fields.created[11:16], stored_report.fields.updated[11:16]) == ("12:00", "15:00")


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        ({"title": "Something else", "story_id": "123", "url": ""}, "the same story_id"),
        (
            {"title": "Else", "story_id": "", "url": "http://www.sqlite.example/four/?utm_source=x#a"},
            "the same address",
        ),
        ({"title": "Show HN: SQLite 4 is out!", "story_id": "", "url": ""}, "nearly the same title"),
    ],
)
def test_the_same_is_not_begun_twice_a_day(tmp_path: Path, about: dict[str, str], reason: str) -> None:
    """The model is told the report that is there; tomorrow it is another matter."""
    begun(tmp_path)
    again = said("It is out.", SECOND)
    with pytest.raises(ToolError, match="append_report") as refused:
        library(tmp_path, LATER).create(NewReport(**about), again)
    assert NAME in refused.value.message
    assert reason in refused.value.message
    assert library(tmp_path, NOON + timedelta(days=1)).create(NewReport(**about), again).startswith("2026-08-11/")


@pytest.mark.parametrize(
    "about",
    [
        {"title": "SQLite 5 is out"},
        {"title": TITLE, "story_id": "124", "url": "https://elsewhere.example/"},
        {"title": "Postgres is out", "url": "https://sqlite.example/"},
    ],
)
def test_what_is_alike_only_at_a_glance_is_begun(tmp_path: Path, about: dict[str, str]) -> None:
    """Another figure in the title, another story of the same name, another page of the same site."""
    begun(tmp_path)
    name = library(tmp_path).create(NewReport(**about), said("News.", call="writer-1.t2.1"))
    assert name != NAME
    assert len(library(tmp_path).stored_reports("2026-08-10")) == 2


def test_a_repeated_call_recognises_itself(tmp_path: Path) -> None:
    """After a crash in the middle, the next day even: the same answers, nothing written twice."""
    tomorrow = NOON + timedelta(days=1)
    new, first = NewReport(TITLE, "123"), said("It is out [S1].")
    name = library(tmp_path).create(new, first)
    assert library(tmp_path, tomorrow).create(new, first) == name
    second = said("More [S2].", call="writer-1.t2.1")
    shown = library(tmp_path).append(name, second)
    before = (tmp_path / name).read_bytes()
    assert library(tmp_path, tomorrow).append(name, second) == shown
    assert library(tmp_path, tomorrow).create(new, first) == name
    assert (tmp_path / name).read_bytes() == before
    assert [path.name for path in sorted(tmp_path.iterdir())] == [".lock", "2026-08-10"]


def test_a_call_without_a_key_cannot_be_recognised(tmp_path: Path) -> None:
    """The control: it is the key in the file by which the second writing is known."""
    name = begun(tmp_path)
    for number in range(2):
        library(tmp_path).append(name, said(f"More {'.' * number}", call=""))
    assert (tmp_path / name).read_text().count("## Update") == 2


def test_another_call_that_says_the_same_is_refused(tmp_path: Path) -> None:
    """A run that was forked, or a forgetful model, repeats nothing; one that says more adds."""
    name = begun(tmp_path)
    with pytest.raises(ToolError, match="says exactly this already"):
        library(tmp_path).append(name, said("It  is out\n[S1].", call="writer-1.t9.1"))
    library(tmp_path).append(name, said("It is out [S1] everywhere.", call="writer-1.t9.1"))


@pytest.mark.parametrize(
    ("content", "words"), [("It is out [S7].", "cites S7, which no stored source"), ("---\na: 1\n---\n \n", "is empty")]
)
def test_what_is_not_sound_is_not_written(tmp_path: Path, content: str, words: str) -> None:
    """An invented id, or nothing: refused with words, and no file is left."""
    with pytest.raises(ToolError, match=words):
        begun(tmp_path, content)
    assert library(tmp_path).stored_reports() == []


APPENDER = """
import sys
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from explorer.reports.library_page import Contribution
from explorer.reports.library import Library
library = Library(Path(sys.argv[1]), lambda: datetime(2026, 8, 10, 13, 0, tzinfo=UTC))
for number in range(15):
    library.append(sys.argv[2], Contribution(f"{sys.argv[3]} adds {number}.", sys.argv[3], f"w.t{number}.1"))
"""


@pytest.mark.slow
def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    """Both add to one report at once: every section is there, once, and the file is whole."""
    name = begun(tmp_path)
    runs = ("20260810-130000-a-0001", "20260810-130000-b-0002")
    processes = [subprocess.Popen([sys.executable, "-c", APPENDER, str(tmp_path), name, run]) for run in runs]
    assert [process.wait(200) for process in processes] == [0, 0]
    text = (tmp_path / name).read_text()
    assert all(text.count(f"{run} adds {number}.") == 1 for run in runs for number in range(15))
    (stored_report,) = library(tmp_path).stored_reports()
    assert stored_report.fields is not None
    assert set(stored_report.fields.run) == {FIRST, *runs}


class Unlocked(Library):
    """Writes without asking who else does; between reading and writing, another process adds."""

    def _writing(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()

    def _put(self, name: str, page: ReportPage) -> None:
        library(self.folder).append(name, said("Theirs.", SECOND))
        super()._put(name, page)


def test_without_a_lock_something_is_lost(tmp_path: Path) -> None:
    """The control: the test above can fail."""
    name = begun(tmp_path)
    Unlocked(tmp_path, lambda: NOON).append(name, said("Ours.", call="writer-1.t2.1"))
    text = (tmp_path / name).read_text()
    assert "Ours." in text
    assert "Theirs." not in text


def test_without_the_lock_nothing_is_written(tmp_path: Path) -> None:
    """Another process holds it for long: the model is told to try again, and nothing is changed."""
    name = begun(tmp_path)
    impatient = Library(tmp_path, lambda: NOON, max_wait_s=0.05)
    with FileLock(tmp_path / ".lock"), pytest.raises(ToolError, match="another process is writing"):
        impatient.append(name, said("More.", call="writer-1.t2.1"))
    impatient.append(name, said("More.", call="writer-1.t2.1"))


def test_a_write_that_was_cut_off_leaves_nothing_behind(tmp_path: Path) -> None:
    """Its temporary file is never listed, and is gone with the next write."""
    name = begun(tmp_path)
    torn = tmp_path / "2026-08-10" / ".sqlite-4-is-out.md.77-0123abcd.tmp"
    torn.write_text("half")
    assert [stored_report.name for stored_report in library(tmp_path).stored_reports()] == [name]
    library(tmp_path).append(name, said("More.", call="writer-1.t2.1"))
    assert not torn.exists()


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("../../etc/passwd", "etc-passwd"),
        ("/absolute\\path: C:\\x", "absolute-path-c-x"),
        ("Ünïcode — Größe №5", "ünïcode-grösse-no5"),
        ("数据库：四个新版本", "数据库-四个新版本"),
        ("a\u202eb\u200b\x1b[31m\U000e0041c\ufe0f", "ab-31mc"),
        ("🔥🔥🔥", "report"),
        ("...", "report"),
        (".lock", "lock"),
        ("x" * 500, "x" * SLUG_CHARS),
    ],
)
def test_names_are_plain_words(title: str, slug: str) -> None:
    """Letters and digits of any script and hyphens: nothing that walks, hides, or looks like something else."""
    assert slug_of(title) == slug


@pytest.mark.parametrize("title", ["長" * 300, "../" * 90 + "x", "\0a\nb", "--help"])
def test_hostile_titles_become_files_in_the_day(tmp_path: Path, title: str) -> None:
    """Whatever a title says, its file is in the day's folder and can be found again."""
    name = begun(tmp_path, title=title)
    assert len(Path(name).name.encode()) <= MAX_NAME_BYTES
    assert (tmp_path / name).parent == tmp_path / "2026-08-10"
    assert library(tmp_path).find(name).problem == ""


def test_titles_and_addresses_are_compared_by_what_they_say() -> None:
    """Chinese titles too; an address that is none is compared as it stands; an empty one is like none."""
    assert is_same_title("新版数据库发布了", "新版数据库发布了！")
    assert not is_same_title("新版数据库发布了", "旧版浏览器停更了")
    assert not is_same_title("", "")
    assert is_same_address("http://[broken", "http://[broken")
    assert not is_same_address("", "")


def test_a_title_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    """A file of somebody else's under the name is not written over."""
    foreign = tmp_path / NAME
    foreign.parent.mkdir()
    foreign.write_text("mine")
    assert begun(tmp_path) == "2026-08-10/sqlite-4-is-out-2.md"
    assert foreign.read_text() == "mine"


HOSTILE_FILES = {
    "no-head.md": b"# A note of my own\n",
    "no-end.md": b"---\ntitle: x\n",
    "no-title.md": b"---\nurl: x\n---\nbody\n",
    "list.md": b"---\n- a\n---\nbody\n",
    "bomb.md": b"---\na: &a [x, x]\nb: &b [*a, *a]\ntitle: [*b, *b]\n---\nbody\n",
    "deep.md": b"---\ntitle: " + b"[" * 2_000 + b"\n---\nbody\n",
    "date.md": b"---\ntitle: x\ncreated: 2026-13-45\n---\nbody\n",
    "binary.md": b"---\0title",
    "not-utf8.md": b"\xff\xfe---\n",
}


@pytest.mark.slow
def test_foreign_files_are_shown_and_left_alone(tmp_path: Path) -> None:
    """Broken, binary, linked, hard-linked, a pipe, a folder: each is listed as unreadable and never written."""
    begun(tmp_path)
    day = tmp_path / "2026-08-10"
    secret = tmp_path.parent / f"{tmp_path.name}-secret.md"
    secret.write_text("---\ntitle: secret\n---\nsecret\n")
    for name, content in HOSTILE_FILES.items():
        (day / name).write_bytes(content)
    (day / "link.md").symlink_to(secret)
    os.link(secret, day / "hard.md")
    os.mkfifo(day / "pipe.md")
    (day / "folder.md").mkdir()
    (tmp_path / "2026-08-11").symlink_to(day)
    (tmp_path / "notes").mkdir()
    shelf = library(tmp_path, LATER)
    unreadable = {
        stored_report.name: stored_report for stored_report in shelf.stored_reports() if stored_report.fields is None
    }
    assert all("secret" in (day / name).read_text() for name in ("link.md", "hard.md")), "the traps are live"
    assert len(unreadable) == len(HOSTILE_FILES) + 4
    assert all(stored_report.problem and "secret" not in stored_report.text for stored_report in unreadable.values())
    for name in unreadable:
        with pytest.raises(ToolError, match="left as it is"):
            shelf.append(name, said("More."))
    assert {name: (day / name).read_bytes() for name in HOSTILE_FILES} == HOSTILE_FILES
    assert secret.read_text().endswith("secret\n")
    shelf.append(NAME, said("More.", call="writer-1.t2.1"))


def test_a_days_folder_that_leads_out_is_not_written(tmp_path: Path) -> None:
    """A link in its place: refused, and nothing appears at its other end."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "2026-08-10").symlink_to(outside)
    with pytest.raises(ToolError, match="not a plain folder"):
        begun(tmp_path / "reports")
    assert list(outside.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A file in its place: words for the model, which goes on without a library."""
    (tmp_path / "reports").write_text("")
    with pytest.raises(ToolError, match="continue without it"):
        begun(tmp_path / "reports")
    assert library(tmp_path / "reports").stored_reports() == []


@pytest.mark.parametrize("name", [NAME, NAME.removesuffix(".md"), f"reports/{NAME}", "sqlite-4-is-out"])
def test_a_report_is_found_by_its_names(tmp_path: Path, name: str) -> None:
    """With and without the suffix, the folder and the date."""
    begun(tmp_path / "reports")
    assert library(tmp_path / "reports").find(name).name == NAME


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", ".lock", "2026-08-10/../../x", "", "2026-08-10"])
def test_no_other_file_is_found(tmp_path: Path, name: str) -> None:
    """Only names that a listing shows are names; a near miss is told what is close."""
    begun(tmp_path)
    with pytest.raises(ToolError, match="there is no report"):
        library(tmp_path).find(name)
    with pytest.raises(ToolError) as caught:
        library(tmp_path).find("2026-08-10/sqlite-4-is-ou")
    assert caught.value.words.endswith(f" in the library; close: <<{NAME}>>")


def test_a_name_that_two_days_have_needs_its_date(tmp_path: Path) -> None:
    """Which one is meant is not guessed."""
    begun(tmp_path)
    library(tmp_path, NOON + timedelta(days=1)).create(NewReport(TITLE), said("Again.", SECOND))
    with pytest.raises(ToolError, match=r"fits 2 reports: 2026-08-11/sqlite-4-is-out.md, 2026-08-10/"):
        library(tmp_path).find("sqlite-4-is-out")


def test_the_day_is_the_askers(tmp_path: Path) -> None:
    """Late in the evening in Berlin it is tomorrow in Shanghai, and a report of today stands there."""
    evening = NOON.replace(hour=20)
    shelf = Library(tmp_path, lambda: evening.astimezone(ZoneInfo("Asia/Shanghai")))
    assert shelf.create(NewReport(TITLE), said("It is out.")) == "2026-08-11/sqlite-4-is-out.md"
    assert [stored_report.day for stored_report in shelf.stored_reports("today")] == ["2026-08-11"]
    assert "created: '2026-08-11T04:00:00+08:00'" in shelf.find("sqlite-4-is-out").text


def test_reports_are_listed_by_date_and_words(tmp_path: Path) -> None:
    """Newest day first; a day, a month, words of the clock, words of the text; anything else is refused."""
    begun(tmp_path)
    library(tmp_path, NOON + timedelta(days=30)).create(NewReport("Postgres"), said("Vacuum.", SECOND))
    shelf = library(tmp_path, NOON + timedelta(days=1))
    listed = {
        (date, query): [stored_report.name[:10] for stored_report in shelf.stored_reports(date, query)]
        for date, query in (("", ""), ("2026-08", ""), ("2026-09-09", ""), ("yesterday", ""), ("today", ""))
    } | {
        ("", query): [stored_report.name[:10] for stored_report in shelf.stored_reports("", query)]
        for query in ("VACUUM", "is out", "no")
    }
    assert listed == {
        ("", ""): ["2026-09-09", "2026-08-10"],
        ("2026-08", ""): ["2026-08-10"],
        ("2026-09-09", ""): ["2026-09-09"],
        ("yesterday", ""): ["2026-08-10"],
        ("today", ""): [],
        ("", "VACUUM"): ["2026-09-09"],
        ("", "is out"): ["2026-08-10"],
        ("", "no"): [],
    }
    with pytest.raises(ToolError, match="is not understood"):
        shelf.stored_reports("last week")
