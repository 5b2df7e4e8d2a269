"""Small things that ended runs or commands once: names, nesting, what is in the report's place, endless answers.

A command of a model, or a folder that somebody sent, has them. The product is the real command line over a real run; a
control is what a program does that takes names for text, paths for short, and files for what they are called.
"""

import asyncio
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from urllib.request import urlopen

from attacks.attack import Attack
from cli.test_hostile_journals import OLD, RUN, sealed
from command import explorer_here
from explorer.journal.listing import read_records
from explorer.reports.render import render
from explorer.schema.errors import ToolError
from explorer.workspace.access import journal_path
from nesting import nest
from reports.test_report_images import SOURCES, TRAP, at_once
from sources.loopback import Handler, open_plain_web, serving

LATIN = os.fsdecode(b"caf\xe9.md")
WORDS = "The ropes cost 12 euros in May, says the log of the plant on the hill.\n" * 5
SECRET = "PRIVATE KEY of someone else"
ESCAPE = "\x1b]0;owned\x07\x1b[2J"
DEPTH = 3_000
AWAY = "http://127.0.0.1:9"
NOWHERE = {"EXPLORER_HN_API_URL": AWAY, "EXPLORER_HN_SEARCH_URL": AWAY, "EXPLORER_TAVILY_URL": AWAY}
DONE = (0, 3)
QUESTION = "What do the ropes cost?"
Do = Callable[[Path], bool]
Make = Callable[[Path], object]


@cache
def _finished() -> Path:
    """A workspace with one finished run, made once."""
    folder = Path(tempfile.mkdtemp(prefix="explorer-small-"))
    assert explorer_here("demo", cwd=folder).returncode == 0
    return folder / "workspace"


def run_in(folder: Path) -> Path:
    """A finished run in a workspace of this folder."""
    shutil.copytree(_finished(), folder / "workspace")
    (run,) = (path for path in (folder / "workspace").iterdir() if (path / ".explorer").exists())
    return run


def fails(folder: Path, *words: str, codes: tuple[int, ...] = DONE, shows: str = "") -> bool:
    """Whether a command ends in another way than it has to."""
    try:
        done = explorer_here(*words, cwd=folder, settings=NOWHERE)
    except Exception:  # noqa: BLE001 - a fault of the product is what is looked for
        return True
    return done.returncode not in codes or shows not in done.stdout + done.stderr


def shown(folder: Path, *words: str) -> str:
    """What a command prints."""
    done = explorer_here(*words, cwd=folder, settings=NOWHERE)
    return done.stdout + done.stderr


def deepest(folder: Path) -> Path:
    """The path to the last one."""
    return folder / "/".join("d" * DEPTH) / "x.md"


def tidied(do: Do) -> Do:
    """Remove the nest afterwards with a program that can: Python's way to remove a folder cannot."""

    def done(folder: Path) -> bool:
        try:
            return do(folder)
        finally:
            subprocess.run(["/bin/rm", "-rf", *map(str, folder.iterdir())], check=True)

    return done


def raises(do: Callable[[Path], object], *kinds: type[BaseException]) -> Do:
    """Whether something that is done in a folder ends with one of these errors."""

    def done(folder: Path) -> bool:
        try:
            do(folder)
        except kinds:
            return True
        return False

    return done


# A file name that is not UTF-8.


def _put_names(folder: Path) -> None:
    """A folder of notes, one of whose names is Latin-1, and an archive with such names."""
    (folder / "notes").mkdir()
    for name in (LATIN, "plain.md"):
        (folder / "notes" / name).write_text(WORDS)
    with zipfile.ZipFile(folder / "notes" / "latin.zip", "w") as archive:
        archive.writestr("cafX.md", WORDS)
    packed = folder / "notes" / "latin.zip"
    packed.write_bytes(packed.read_bytes().replace(b"cafX", b"caf\xe9"))


def _named_as_text(folder: Path) -> object:
    _put_names(folder)
    return "\n".join(path.name for path in (folder / "notes").iterdir()).encode()


def _with_notes(folder: Path, words: tuple[str, ...], codes: tuple[int, ...] = DONE, shows: str = "12 euros") -> bool:
    _put_names(folder)
    return fails(folder, *words, codes=codes, shows=shows)


def _with_names_in_run(folder: Path, commands: tuple[tuple[str, ...], ...]) -> bool:
    run = run_in(folder)
    for place in (run, run / "scratch"):
        place.mkdir(exist_ok=True)
        (place / LATIN).write_text(WORDS)
    return any(fails(folder, *words) for words in commands)


def _carried(folder: Path) -> bool:
    """Pack a run that has such names, and unpack it elsewhere."""
    if _with_names_in_run(folder, (("runs", "export", "latest"),)):
        return True
    (packed,) = folder.glob("*.tar.gz")
    return fails(folder, "runs", "import", str(packed), "--workspace", "other")


def _workspace_of_any_name(folder: Path) -> bool:
    run_in(folder)
    name = os.fsdecode(b"caf\xe9")
    (folder / "workspace").rename(folder / name)
    return any(fails(folder, *words, "--workspace", name) for words in (*LOOKS, RESUME))


NAMED_AS_TEXT = raises(_named_as_text, UnicodeEncodeError)
OFFLINE = ("--model", "offline")
LOOKS = (("runs",), ("show", "latest"), ("doctor", "latest"), ("verify", "latest"), ("grep", "cluster"))
RESUME = ("resume", "latest", "And the costs?")
NAMES = [
    Attack(
        "name-in-folder",
        "A file of the folder that is searched has a name that is not UTF-8.",
        partial(_with_notes, words=(*OFFLINE, "--corpus", "notes", QUESTION)),
        NAMED_AS_TEXT,
    ),
    Attack(
        "name-of-input",
        "A file that the user gives has such a name.",
        partial(_with_notes, words=(*OFFLINE, "--file", f"notes/{LATIN}", QUESTION)),
        NAMED_AS_TEXT,
    ),
    Attack(
        "names-in-zip",
        "An archive with such names is given, and lies in the folder that is searched.",
        partial(
            _with_notes,
            words=(*OFFLINE, "--file", "notes/latin.zip", QUESTION),
            codes=(2,),
            shows="latin.zip is none of text",
        ),
        NAMED_AS_TEXT,
    ),
    Attack(
        "name-in-run",
        "A command of a model leaves such names in the run, and the run is resumed.",
        partial(_with_names_in_run, commands=(RESUME,)),
        NAMED_AS_TEXT,
    ),
    Attack(
        "name-in-run-shown",
        "Such a run is listed, shown, checked, verified and searched.",
        partial(_with_names_in_run, commands=LOOKS),
        NAMED_AS_TEXT,
    ),
    Attack("name-in-archive", "Such a run is packed, and unpacked elsewhere.", _carried, NAMED_AS_TEXT),
    Attack("name-of-workspace", "The workspace itself has such a name.", _workspace_of_any_name, NAMED_AS_TEXT),
]


# Thousands of folders in each other.


def _with_nest(folder: Path, words: tuple[str, ...]) -> bool:
    nest(run_in(folder), DEPTH, "d")
    return fails(folder, *words)


def _nest_removed(folder: Path) -> bool:
    run = run_in(folder)
    nest(run, DEPTH, "d")
    return fails(folder, "runs", "rm", "latest", "--yes") or run.exists()


def _nest_in_notes(folder: Path) -> bool:
    _put_names(folder)
    nest(folder / "notes", DEPTH, "d")
    return fails(folder, *OFFLINE, "--corpus", "notes", QUESTION, shows="12 euros")


def _nest_among_runs(folder: Path) -> bool:
    run_in(folder)
    nest(folder / "workspace", DEPTH, "d")
    return any(fails(folder, *words) for words in LOOKS)


def _opened_by_path(folder: Path) -> object:
    nest(folder, DEPTH, "d")
    return deepest(folder).read_text()


def _packed_by_path(folder: Path) -> object:
    nest(folder, DEPTH, "d")
    with tarfile.open(folder.parent / f"{folder.name}.tar", "w") as archive:
        return archive.add(folder)


NESTED = [
    Attack(f"nest-{name}", tried, tidied(attempt), tidied(raises(control, OSError, RecursionError)))
    for name, tried, attempt, control in (
        ("resumed", "A run with 3,000 nested folders is resumed.", partial(_with_nest, words=RESUME), _opened_by_path),
        ("packed", "It is packed.", partial(_with_nest, words=("runs", "export", "latest")), _packed_by_path),
        ("removed", "It is removed.", _nest_removed, _opened_by_path),
        ("searched", "It is searched.", partial(_with_nest, words=("grep", "cluster")), _opened_by_path),
        ("checked", "It is checked.", partial(_with_nest, words=("doctor", "latest")), _opened_by_path),
        ("shown", "It is shown.", partial(_with_nest, words=("show", "latest")), _opened_by_path),
        ("forked", "It is forked.", partial(_with_nest, words=("fork", "latest", "--no-run")), _opened_by_path),
        ("in-notes", "The folder that is searched has them.", _nest_in_notes, _opened_by_path),
        ("among-runs", "They lie next to the runs.", _nest_among_runs, _opened_by_path),
    )
]


# Something else in the report's place.


def _make_folder(report: Path) -> None:
    report.mkdir()
    (report / "inner.md").write_text("inner")


def _make_binary(report: Path) -> None:
    report.write_bytes(bytes(range(256)) * 40)


def _make_sparse(report: Path) -> None:
    with report.open("wb") as file:
        file.truncate(1 << 40)


def _make_link(report: Path) -> None:
    secret = report.parents[2] / "id_ed25519"
    secret.write_text(f"# Report\n\n{SECRET}\n")
    report.symlink_to(secret)


def _replaced(folder: Path, make: Make) -> Path:
    report = run_in(folder) / "report.md"
    report.unlink()
    make(report)
    return report


def _ends_without_report(folder: Path, make: Make) -> bool:
    """Ask a follow-up while something else is in the report's place."""
    report = _replaced(folder, make)
    return (
        fails(folder, *RESUME) or report.is_symlink() or not report.is_file() or "References" not in report.read_text()
    )


def _shows_secret(folder: Path, words: tuple[str, ...]) -> bool:
    _replaced(folder, _make_link)
    return SECRET in shown(folder, *words)


def _writes_secret(folder: Path) -> bool:
    report = _replaced(folder, _make_link)
    before = (folder / "id_ed25519").read_text()
    shown(folder, *RESUME)
    return (folder / "id_ed25519").read_text() != before or SECRET in report.read_text()


def _report_ends_badly(folder: Path, make: Make) -> bool:
    _replaced(folder, make)
    return fails(folder, "report", "latest", codes=(0, 1, 3, 5))


def _rewritten(folder: Path, make: Make) -> object:
    report = _replaced(folder, make)
    text = report.read_text(encoding="utf-8")
    return report.write_text(text, encoding="utf-8")


def _followed(folder: Path) -> bool:
    return SECRET in _replaced(folder, _make_link).read_text()


KINDS: dict[str, Make] = {
    "folder": _make_folder,
    "binary": _make_binary,
    "sparse": _make_sparse,
    "pipe": os.mkfifo,
}
AS_TEXT = raises(partial(_rewritten, make=_make_folder), IsADirectoryError)
IN_PLACE = [
    *(
        Attack(f"report-is-{name}{seen}", what.format(name), partial(do, make=make), AS_TEXT)
        for seen, what, do in (
            ("", "A command puts a {} in the report's place, and a follow-up is asked.", _ends_without_report),
            ("-shown", "A command puts a {} in the report's place, and the report is printed.", _report_ends_badly),
        )
        for name, make in KINDS.items()
    ),
    *(
        Attack(
            f"link-followed-by-{'-'.join(words[:1])}",
            "A command puts a link to a file of the user in the report's place.",
            partial(_shows_secret, words=words),
            _followed,
        )
        for words in (
            ("report", "latest"),
            ("watch", "latest", "--speed", "max"),
            ("show", "latest"),
            ("grep", "PRIVATE"),
        )
    ),
    Attack("link-written-through", "The same, and a follow-up writes the report.", _writes_secret, _followed),
]


# A report that is printed, or rendered by a viewer.


def _escapes(folder: Path, words: tuple[str, ...]) -> bool:
    run = run_in(folder)
    for name in ("report.md", "overview.md"):
        (run / name).write_text(f"# cluster {ESCAPE}\n\nThe cluster {ESCAPE} is gone.\n")
    return "\x1b" in shown(folder, *words) or "\x07" in shown(folder, *words)


def _escapes_as_they_are(folder: Path) -> bool:
    report = run_in(folder) / "report.md"
    report.write_text(f"# cluster {ESCAPE}")
    return "\x1b" in subprocess.run(["cat", str(report)], capture_output=True, text=True, check=True).stdout


def _named(folder: Path) -> Path:
    """A run whose agents have names with escapes, as whoever sends it may write its journal."""
    records = [json.loads(line) for line in OLD.read_text().strip().split("\n")]
    run = folder / "workspace" / RUN
    (run / ".explorer").mkdir(parents=True)
    journal_path(run).write_bytes(sealed([record | {"agent": f"{record['agent']}{ESCAPE}"} for record in records]))
    return run


def _escapes_in_names(folder: Path, words: tuple[str, ...]) -> bool:
    _named(folder)
    return "\x1b" in shown(folder, *words) or "\x07" in shown(folder, *words)


def _names_as_they_are(folder: Path) -> bool:
    names = {str(record.event.agent) for record in read_records(_named(folder))}
    return any("\x1b" in name for name in names)


def _loads(_folder: Path, payload: str, *, is_rendered: bool = True) -> bool:
    text = f"Text [S1].\n\n{payload}\n"
    return bool(at_once(render(text, SOURCES, "en").text if is_rendered else text))


PRINTED = [
    *(
        Attack(
            f"escapes-in-{words[0]}",
            "A report and a file have terminal escapes, and are printed to a pipe.",
            partial(_escapes, words=words),
            _escapes_as_they_are,
        )
        for words in (
            ("report", "latest"),
            ("grep", "cluster"),
            ("watch", "latest", "--speed", "max"),
            ("show", "latest"),
        )
    ),
    *(
        Attack(
            f"escapes-in-names-{words[0]}",
            "The agents of a run that somebody sent have names with terminal escapes, and it is looked at.",
            partial(_escapes_in_names, words=words),
            _names_as_they_are,
        )
        for words in (("watch", "latest", "--speed", "max"), ("show", "latest"))
    ),
    *(
        Attack(
            f"image-{name}",
            "A report loads a picture from another machine in a viewer, hidden behind what one viewer takes for code.",
            partial(_loads, payload=payload),
            partial(_loads, payload=payload, is_rendered=False),
        )
        for name, payload in {
            "in-table-after-tildes": f"| a |\n|---|\n~~~ |\n| ![x]({TRAP}) |",
            "after-tildes-in-table": f"| a |\n|---|\n~~~ |\n\n~~~\n![x]({TRAP})\n~~~\n\n![x]({TRAP})\n\n~~~",
            "in-table-of-list": f"- | a |\n  |---|\n  ~~~ |\n  | ![x]({TRAP}) |",
            "in-table-after-backticks": f"| a |\n|---|\n``` |\n| ![x]({TRAP}) |",
            "in-table-of-quote": f"> | a |\n> |---|\n> ~~~ |\n> | ![x]({TRAP}) |",
        }.items()
    ),
]


# Answers that never begin.

INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n" * 400
ENOUGH = 40_000_000
"""Bytes that no reader has to take before an answer begins; what sockets hold is far less."""


def _sends_without_end(read: Callable[[str], object]) -> bool:
    """Whether a server that sends interim answers only is read on and on."""
    sent = [0]

    def interim(handler: Handler) -> None:
        handler.close_connection = True
        with suppress(OSError):
            while sent[0] < ENOUGH:
                handler.wfile.write(INTERIM)
                sent[0] += len(INTERIM)

    with serving({"/": interim}) as site, suppress(ToolError, OSError):
        read(f"{site.url}/")
    return sent[0] >= ENOUGH


def _read_page(url: str) -> object:
    async def read() -> object:
        async with open_plain_web() as web:
            return await web.get(url)

    return asyncio.run(read())


def _read_patiently(url: str) -> object:
    """Read as Python's own client does: it waits for an answer, whatever comes before it."""
    with urlopen(url, timeout=60) as answer:
        return answer.read()


ENDLESS = [
    Attack(
        "interim-answers",
        "A server sends interim answers (1xx) without end instead of a page.",
        lambda _: _sends_without_end(_read_page),
        lambda _: _sends_without_end(_read_patiently),
    ),
]
ATTACKS = [*NAMES, *NESTED, *IN_PLACE, *PRINTED, *ENDLESS]
