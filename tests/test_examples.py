"""Every example runs without a key or a network, in seconds, and prints what it promises."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from command import environment
from explorer.sandbox.choosing import candidates

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def _run(name: str, folder: Path) -> str:
    """The output of an example, run like a user without any setting runs it."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / name],
        cwd=folder,
        env=environment(folder, {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert list(folder.iterdir()) == [], "an example leaves nothing behind"
    return done.stdout


def test_basic_tool_usage(tmp_path: Path) -> None:
    """A decorated function becomes a tool with both vendors' forms, and wrong arguments are explained."""
    said = _run("basic_tool_usage.py", tmp_path)
    assert '"input_schema": {' in said
    assert '"type": "function"' in said
    assert "Called directly: 120 -> 168: +40.0%" in said
    assert "no argument `afterwards` (did you mean `after`?)" in said


def test_file_tools_usage(tmp_path: Path) -> None:
    """The file tools write, edit, page and find, and every way out of the folder is refused."""
    said = _run("file_tools_usage.py", tmp_path)
    assert "Wrote topics/lanterns.md (3 lines, 44 bytes)." in said
    assert "     3\tThe small one weighs 95 g [S1]." in said
    assert said.count("refused: ") == 4
    assert "root:" not in said


def test_simple_agent(tmp_path: Path) -> None:
    """One agent asks two tools at once, hears of a mistake, writes a file and answers."""
    said = _run("simple_agent.py", tmp_path)
    assert said.count("tool_started") == said.count("tool_finished") == 3
    assert "complete: There are 3 ropes and no tents" in said
    assert "files: stock.md; turns: 3" in said


@pytest.mark.slow
def test_full_research(tmp_path: Path) -> None:
    """The main job, offline on the sample day, ends with a cited report made by several agents."""
    said = _run("full_research.py", tmp_path)
    assert re.search(r"\d+  orchestrator begins: ", said)
    assert re.search(r"\d+  searcher-1 ends: complete", said)
    assert "question: What was notable" in said
    assert "\ncomplete in " in said
    counts = re.search(r"(\d+) steps of (\d+) agents, (\d+) sources, (\d+) citations, cost \$0\.00", said)
    assert counts is not None
    assert all(int(number) > 1 for number in counts.groups())
    assert "report.md" in said.splitlines()[-1]


def test_custom_tool_and_role(tmp_path: Path) -> None:
    """The orchestrator calls a helper that a user's file describes, and that helper calls the user's own tool."""
    said = _run("custom_tool_and_role.py", tmp_path)
    assert '"agent_id": "gardener-1", "status": "complete"' in said
    assert '"path": "garden/beds.md"' in said
    assert "partial: 2 agents, 7 steps" in said


@pytest.mark.slow
def test_analysis_with_charts(tmp_path: Path) -> None:
    """A helper computes and draws in the sandbox, the chart gets into the index, and the report shows it."""
    if not candidates():
        pytest.skip("this machine has no sandbox")
    said = _run("analysis_with_charts.py", tmp_path)
    assert "84 kilos in all, most in July" in said
    assert "In the index: scratch/harvest.svg, an SVG image: Kilos by month" in said
    assert "the table has 31 for it [1]." in said
    assert "![Kilos by month](scratch/harvest.svg)" in said
    assert "complete; the chart is there" in said


def test_every_example_is_tested() -> None:
    """No example is without a test of its own here."""
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names
    assert names <= {name.removeprefix("test_") for name in globals()}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_says_how_to_run_it(path: Path) -> None:
    """Its first lines hold the command that runs it."""
    assert f"uv run python examples/{path.name}\n" in path.read_text(encoding="utf-8")
