"""The README is true: its commands run, its tables match the program, its recording is of a real run.

The recording is updated by `--update-golden`.
"""

import os
import platform
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from command import environment, explorer_here
from explorer.cli.help_text import COMMANDS, HELP
from explorer.cli.screens.output import HUNG_UP, INTERRUPTED, TERMINATED
from sources.loopback import closed_port, kept_port

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
REPLAY = ROOT.parent / "shared" / "data" / "replay.py"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECORDING = re.compile(r"(?<=<!-- recorded).*?```text\n(.*?)```\n<!-- end of recording -->", re.DOTALL)
RUN_ID = re.compile(r"\d{8}-\d{6}-[a-z0-9-]+?-[0-9a-f]{4}\b")
CLOCK = re.compile(r"\d\d:\d\d:\d\d|\b\d+s\b")
WIDTH = 118
SHOWN = re.compile(
    r"^exploring: |^model |^offline mode is|run \d{8}-.* started|orchestrator  task|searcher-\d  task"
    r"|searcher-1  (get|write|complete)"
    r"|(analyzer|writer)-1  (task|write)"
    r"|orchestrator  (finish|complete)|run complete"
)
REPORT_LINES = 14
NEEDS_A_KEY = {"ANTHROPIC_API_KEY": "anthropic:claude-opus-5-5", "OPENAI_API_KEY": "openai:gpt-6.1-sol"}
NOTES = "Stock of the boathouse.\n\nThe ropes cost 12 euros each. The lanterns weigh 90 g.\n"


@dataclass(frozen=True)
class Line:
    """One command of the README, and what was exported before it in its block."""

    words: tuple[str, ...]
    exported: frozenset[str]


def _blocks(language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(_page("README.md")) if name == language]


def _page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _lines() -> list[Line]:
    lines: list[Line] = []
    for block in _blocks("sh"):
        exported: set[str] = set()
        for text in block.splitlines():
            words = shlex.split(text, comments=True)
            if words[:1] == ["export"]:
                exported.add(words[1].partition("=")[0])
            elif words:
                # A pipe needs a shell.
                line = ("bash", "-c", text) if "|" in words else tuple(words)
                lines.append(Line(line, frozenset(exported)))
    return lines


@contextmanager
def _sources() -> Generator[dict[str, str]]:
    """Recorded real sources on loopback: the settings that lead to them, or nothing where there is no recording."""
    if not REPLAY.is_file():
        yield {}
        return
    with kept_port() as port:
        server = subprocess.Popen(
            [sys.executable, "-u", REPLAY, "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            assert server.stdout is not None
            # It says where it listens once it does.
            server.stdout.readline()
            place = f"http://127.0.0.1:{port}"
            yield {
                "EXPLORER_HN_API_URL": f"{place}/v0",
                "EXPLORER_HN_SEARCH_URL": f"{place}/api/v1",
                "EXPLORER_READER_URL": f"{place}/reader",
                "EXPLORER_TAVILY_URL": place,
                "EXPLORER_ALLOW_HOSTS": "127.0.0.1",
            }
        finally:
            server.kill()
            server.communicate()


def _run(
    words: tuple[str, ...], folder: Path, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env=environment(folder, {"PATH": PATH, **(more or {})}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def _expected(line: Line) -> tuple[dict[str, str], int]:
    """With which model a command is run here, and the exit code it must have."""
    for variable, model in NEEDS_A_KEY.items():
        if variable in line.exported:
            return {"EXPLORER_MODEL": model}, 4
    if "OPENAI_BASE_URL" in line.exported:
        return {"OPENAI_BASE_URL": f"http://127.0.0.1:{closed_port()}/v1"}, 6
    # A plan that is to be approved waits where no terminal is.
    return {"EXPLORER_MODEL": "offline"}, 7 if line.words[-1] == "--plan" else 0


def _here(line: Line) -> tuple[str, ...]:
    """The command without `uv run`, which would make an environment of its own around the tests'."""
    return line.words[2:] if line.words[:2] == ("uv", "run") else line.words


def _reads_the_world(line: Line, code: int) -> bool:
    return code == 0 and any(word.startswith("What was notable on Hacker News") for word in line.words)


def test_ci_begins_with_the_first_commands_of_the_readme() -> None:
    """What CI runs before all else are the two commands that a new user is given first, word for word."""
    printed = subprocess.run([ROOT / ".ci" / "readme-commands"], capture_output=True, text=True, check=True).stdout
    assert printed == _blocks("sh")[0]
    assert printed.splitlines() == ["uv run explorer demo", "uv run pytest"]


@pytest.mark.slow
def test_ci_finds_the_pythons_of_this_machine() -> None:
    """Oldest first, each with a path that runs that version, and the one that runs the tests among them."""
    printed = subprocess.run([ROOT / ".ci" / "pythons"], capture_output=True, text=True, check=True).stdout
    found = dict(line.split(maxsplit=1) for line in printed.splitlines())
    versions = [tuple(int(part) for part in version.split(".")) for version in found]
    assert versions == sorted(set(versions))
    assert min(versions) >= (3, 11)
    assert platform.python_version() in found
    for version, python in found.items():
        output = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout
        assert output == f"Python {version}\n"


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_every_command_runs(tmp_path: Path) -> None:
    """In the README's order and one folder, each command ends as documented; without a key, where one is needed."""
    (tmp_path / "notes.md").write_text(NOTES, encoding="utf-8")
    (tmp_path / "my-notes").mkdir()
    (tmp_path / "my-notes" / "ropes.md").write_text(NOTES, encoding="utf-8")
    (tmp_path / "my-roles").mkdir()
    (tmp_path / "my-roles" / "skeptic.md").write_text(_blocks("markdown")[0], encoding="utf-8")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    left_out: list[str] = []
    with _sources() as sources:
        for line in _lines():
            words = _here(line)
            more, code = _expected(line)
            if words in {("pytest",), ("make", "check")}:
                continue
            if _reads_the_world(line, code) and not sources:
                left_out.append(shlex.join(words))
                continue
            if words == ("explorer", "resume", "latest"):
                # There has to be something to go on with: a run that a limit ended. Its later lives get another.
                sources["EXPLORER_MAX_STEPS"] = "300"
                assert _run(("explorer", "demo"), tmp_path, {"EXPLORER_MAX_STEPS": "6"}).returncode == 3
            done = _run(words, tmp_path, {**sources, **more})
            assert done.returncode == code, f"{shlex.join(words)}\n{done.stderr}"
            assert "Traceback" not in done.stderr, shlex.join(words)
    if left_out:
        pytest.skip(f"no recorded sources at {REPLAY}, so not run: {'; '.join(left_out)}")


def test_a_fresh_machine_needs_two_commands() -> None:
    """The first block of commands is the demo and the tests, and the check command holds the same tests."""
    assert _blocks("sh")[0].split("\n")[:-1] == ["uv run explorer demo", "uv run pytest"]
    check = _page(".ci/check")
    assert re.search(r"^step pytest( |$)", check, re.MULTILINE)
    assert ".ci/check" in _page(".ci/run")
    assert re.search(r"^check:.*\n\t\.ci/check$", _page("Makefile"), re.MULTILINE)


def test_a_helper_is_a_file(tmp_path: Path) -> None:
    """The README's role file is listed as a role with its tools."""
    (tmp_path / "skeptic.md").write_text(_blocks("markdown")[0], encoding="utf-8")
    done = explorer_here("agents", "--roles", str(tmp_path), cwd=tmp_path)
    assert re.search(r"^skeptic$", done.stdout, re.MULTILINE)
    assert f"{tmp_path}/skeptic.md" in done.stdout


@pytest.mark.slow
def test_the_program_in_the_readme_runs(tmp_path: Path) -> None:
    """The lines for embedding work as they stand, and end with a complete run."""
    (program,) = _blocks("python")
    done = _run((sys.executable, "-W", "error", "-c", program), tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"complete 0\.0 \S+/report\.md\n", done.stdout)
    assert done.stderr == ""


def test_the_tables_are_those_of_the_program() -> None:
    """The README's commands, exit codes and examples are the ones there are."""
    text = _page("README.md")
    named = re.findall(r"^\| `explorer ([\w-]+)", text, re.MULTILINE)
    assert set(named) == set(COMMANDS)
    codes = re.findall(r"^\| ([\d, ]+) \|", text, re.MULTILINE)
    listed = HELP.partition("Exit codes:")[2].partition("\n\n")[0]
    assert set(re.findall(r"\d+", " ".join(codes))) == set(re.findall(r"\d+", listed))
    assert {str(code) for code in (HUNG_UP, INTERRUPTED, TERMINATED)} <= set(re.findall(r"\d+", listed))
    examples = re.findall(r"^\| \[`(\w+\.py)`\]", text, re.MULTILINE)
    assert sorted(examples) == sorted(path.name for path in (ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize(
    "name",
    ["README.md", "CLAUDE.md", "CHANGELOG.md", "docs/architecture.md", "docs/configuration.md", "docs/python.md"],
)
def test_links_lead_somewhere(name: str) -> None:
    """Every relative link of a page leads to a file of the project."""
    page = ROOT / name
    links = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_the_layers_in_the_docs_are_those_that_are_checked() -> None:
    """The diagram of docs/architecture.md has the layers of the import contract, in their order."""
    settings = tomllib.loads(_page("pyproject.toml"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    diagram = _page("docs/architecture.md").partition("flowchart TD")[2].partition("```")[0]
    assert re.findall(r'\["(.+?)<br/>', diagram) == layers


def test_a_question_can_be_followed_in_twenty_files() -> None:
    """The list of docs/architecture.md has at most so many, each is there, and each is said to do something."""
    rows = re.findall(r"^\| `([a-z_/]+\.py)` \| (.+) \|$", _page("docs/architecture.md"), re.MULTILINE)
    assert 15 <= len(rows) <= 20
    assert [name for name, _ in rows if not (ROOT / "src" / "explorer" / name).is_file()] == []


def test_each_package_has_a_place_in_the_reading_order() -> None:
    """docs/architecture.md names every package, in the order or in the table, and every file of both is there."""
    engine = ROOT / "src" / "explorer"
    text = _page("docs/architecture.md").partition("## A reading order")[2].partition("## Terms")[0]
    order, _, table = text.partition("| Package |")
    rows = re.findall(r"^\| `(\w+)/` \| .+ \| (.+) \|$", table, re.MULTILINE)
    paths = [f"{package}/{name}" for package, files in rows for name in re.findall(r"`([\w/]+\.py)`", files)]
    paths += re.findall(r"`(\w+/\w+\.py)`", order)
    assert [path for path in paths if not (engine / path).is_file()] == []
    packages = {path.parent.name for path in engine.glob("*/__init__.py")}
    assert {path.partition("/")[0] for path in paths} == packages


def test_changelog_entries_are_short() -> None:
    """No entry is longer than 25 words."""
    entries = re.findall(r"^- (.+)$", _page("CHANGELOG.md"), re.MULTILINE)
    assert entries
    assert [entry for entry in entries if len(entry.split()) > 25] == []


def _recorded(stdout: str, stderr: str) -> str:
    """A run as the README shows it: its telling lines, the report's head, the closing account."""
    account_at = stderr.index("\ncomplete: ")
    events = [line for line in stderr[:account_at].splitlines() if SHOWN.search(line)]
    body = stdout.split("\n---\n", 1)[1].strip().splitlines()[:REPORT_LINES]
    account = [re.sub(r"/\S*/workspace/", "workspace/", line) for line in stderr[account_at:].strip().splitlines()]
    shown = ["$ explorer demo", *events, "", *body, "[...]", "", *account]
    return "".join(f"{line if len(line) <= WIDTH else line[: WIDTH - 1] + '…'}\n" for line in shown)


def _timeless(text: str) -> str:
    return CLOCK.sub("<time>", RUN_ID.sub("<run>", text))


@pytest.mark.slow
def test_the_recording_is_of_a_real_run(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The README's first page shows what `explorer demo` really says, but for times and the run's id; no log."""
    done = _run(("explorer", "demo"), tmp_path)
    assert not re.search(r"^\S+ (DEBUG|INFO|WARNING) explorer\.", done.stderr, re.MULTILINE)
    recorded = _recorded(done.stdout, done.stderr)
    text = _page("README.md")
    found = RECORDING.search(text)
    assert found is not None
    if request.config.getoption("--update-golden"):
        README.write_text(text[: found.start(1)] + recorded + text[found.end(1) :], encoding="utf-8")
        return
    assert _timeless(found[1]) == _timeless(recorded)
