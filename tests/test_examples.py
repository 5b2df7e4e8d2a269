"""Every example runs without a key or a network, in seconds, and prints what it promises."""

import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from command import done_here, environment
from explorer.sandbox.selection import candidates

Run = Callable[[str], str]
USER_KEY = ".local/state/explorer/key"
SELF_TEST = re.compile(r"\.cache/explorer/sandbox-[0-9a-f]{32}\.json")
"""The result of the sandbox's self-test."""
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def _by_process(path: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, path],
        cwd=folder,
        env=environment(folder, {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def _here(path: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    def run() -> int:
        runpy.run_path(str(path), run_name="__main__")
        return 0

    return done_here(run, folder, {})


@pytest.fixture(params=["here", pytest.param("process", marks=pytest.mark.slow)])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Run an example in the tests' process every day, and in one of its own among the slow tests."""
    return partial(_run, _here if request.param == "here" else _by_process, tmp_path)


def _run(way: Callable[[Path, Path], "subprocess.CompletedProcess[str]"], folder: Path, name: str) -> str:
    """The output of an example, run like a user without any setting runs it."""
    done = way(EXAMPLES / name, folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    left = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    strange = [path for path in left if path != USER_KEY and not SELF_TEST.fullmatch(path)]
    assert strange == [], "an example leaves nothing behind but what a user's first run makes"
    return done.stdout


def test_own_model(run: Run) -> None:
    """A client over HTTP: its turns, calls and tokens are those of the server."""
    assert run("own_model.py") == "complete: rope: 4 (2 turns, 110 tokens)\n"


def test_basic_tool_usage(run: Run) -> None:
    """A decorated function becomes a tool with both vendors' forms, and wrong arguments are explained."""
    output = run("basic_tool_usage.py")
    assert '"input_schema": {' in output
    assert '"type": "function"' in output
    assert "Called as the function it is: 120 -> 168: +40.0%" in output
    assert "no argument `afterwards` (did you mean `after`?)" in output


def test_file_tools_usage(run: Run) -> None:
    """The file tools write, edit, page and find, and every way out of the folder is refused."""
    output = run("file_tools_usage.py")
    assert "Wrote <<topics/lanterns.md>> (3 lines, 44 bytes)." in output
    assert "3\tThe small one weighs 95 g [S1]." in output
    assert output.count("refused: ") == 4
    assert "root:" not in output


def test_simple_agent(run: Run) -> None:
    """One agent asks two tools at once, hears of a mistake, writes a file and answers."""
    output = run("simple_agent.py")
    assert output.count("tool_started") == output.count("tool_finished") == 3
    assert "complete: There are 3 ropes and no tents" in output
    assert "files: stock.md; turns: 3" in output


@pytest.mark.slow
def test_full_research(tmp_path: Path) -> None:
    """The main job, offline on the sample day, ends with a cited report made by several agents."""
    output = _run(_by_process, tmp_path, "full_research.py")
    assert re.search(r"\d+  orchestrator begins: ", output)
    assert re.search(r"\d+  searcher-1 ends: complete", output)
    assert "question: What was notable" in output
    assert "\ncomplete in " in output
    counts = re.search(r"(\d+) steps of (\d+) agents, (\d+) sources, (\d+) citations, cost \$0\.00", output)
    assert counts is not None
    assert all(int(number) > 1 for number in counts.groups())
    assert "report.md" in output.splitlines()[-1]


def test_custom_tool_and_role(run: Run) -> None:
    """A helper that a user's file describes calls the user's own tool, and the report cites what that tool stored."""
    output = run("custom_tool_and_role.py")
    assert '"agent_id": "gardener-1", "status": "complete"' in output
    assert '"path": "garden/beds.md"' in output
    assert "\ncomplete: 2 agents, 6 steps, citations {'supported': 2, 'not_found': 0," in output


@pytest.mark.slow
def test_analysis_with_charts(tmp_path: Path) -> None:
    """A helper computes and draws in the sandbox, the chart gets into the index, and the report shows it."""
    if not candidates():
        pytest.skip("this machine has no sandbox")
    output = _run(_by_process, tmp_path, "analysis_with_charts.py")
    assert "84 kilos in all, most in July" in output
    assert "In the index: scratch/harvest.svg, an SVG image: Kilos by month" in output
    assert "the table has 31 for it [1]." in output
    assert "![Kilos by month](scratch/harvest.svg)" in output
    assert "complete; the chart is there" in output


def test_every_example_is_tested() -> None:
    """No example is without a test of its own here."""
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names
    assert names <= {name.removeprefix("test_") for name in globals()}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_says_how_to_run_it(path: Path) -> None:
    """Its first lines hold the command that runs it."""
    assert f"uv run python examples/{path.name}\n" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_use_the_public_api_only(path: Path) -> None:
    """What they import of explorer is `explorer` and `explorer.testing`: other modules may change."""
    imported = re.findall(r"^(?:from|import) (explorer[\w.]*)", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert imported
    assert set(imported) <= {"explorer", "explorer.testing"}
