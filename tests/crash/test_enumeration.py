"""Runs cut off at every point of no return, taken up again, and compared with undisturbed ones.

The work is done by `enumerate.py`, in a process of its own: it forks, which a process with threads must not.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ENUMERATE = Path(__file__).with_name("enumerate.py")
SCENARIOS = ("plain", "truncation", "parallel", "helpers", "follow_up", "compaction", "external")
AGENTS_AT_ONCE = {"helpers": 3}
"""By scenario, where it is more than one: an orchestrator that waits for its helpers asks nothing."""
SAMPLE = 1
SAMPLE_SECONDS = 180
"""Far more than it takes, for a machine that has other things to do."""
POINTS_SECONDS = 1_800
"""For a slow machine; two free cores take two minutes."""

pytestmark = pytest.mark.timeout(SAMPLE_SECONDS)


def enumerate_crashes(*options: str, home: Path, seconds: float = SAMPLE_SECONDS) -> tuple[int, list[dict[str, Any]]]:
    """Run the command; its exit code and figures."""
    done = subprocess.run(
        [sys.executable, str(ENUMERATE), "--json", *options],
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The figures of a sample, by scenario."""
    _, figures = enumerate_crashes("--sample", str(SAMPLE), home=tmp_path_factory.mktemp("sampled"))
    return {each["scenario"]: each for each in figures}


def check(figures: dict[str, Any]) -> None:
    """Nothing acknowledged is lost, hardly anything is done again, and the report is the same."""
    assert figures["breaches"] == []
    assert figures["reports_equal"] == figures["cases"] > 0
    assert figures["effects_repeated"] == 0
    assert figures["repeated_most"] <= AGENTS_AT_ONCE.get(figures["scenario"], 1)
    assert figures["cut"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_run_that_was_cut_off_ends_as_if_it_had_not_been(scenario: str, sampled: dict[str, dict[str, Any]]) -> None:
    """At a sample of points, by kill, power cut, Ctrl-C and SIGTERM: every promise of the journal holds."""
    check(sampled[scenario])


@pytest.mark.parametrize(
    ("journal", "scenario", "sample", "broken"),
    [
        pytest.param("careless", "external", 60, {"journal", "requests", "effects"}, marks=pytest.mark.slow),
        pytest.param("careless", "plain", 16, {"journal", "requests", "files"}, marks=pytest.mark.slow),
        pytest.param("unsynced", "external", 24, {"journal", "requests", "effects"}, marks=pytest.mark.slow),
    ],
)
def test_a_journal_without_barriers_is_noticed(
    journal: str, scenario: str, sample: int, broken: set[str], tmp_path: Path
) -> None:
    """The same checks fail for a journal that acknowledges before it writes, and for one that never syncs."""
    options = ("--stand-in", journal, "--scenario", scenario, "--ending", "KILL", "--ending", "POWER")
    code, (figures,) = enumerate_crashes(*options, "--sample", str(sample), home=tmp_path)
    assert code == 1
    assert {breach.split(":")[0] for breach in figures["breaches"]} >= broken


@pytest.mark.slow
@pytest.mark.timeout(POINTS_SECONDS)
def test_every_point_with_one_ending_after_the_other(tmp_path: Path) -> None:
    """The whole enumeration but for the endings, of which each point has one; `make crash` takes all of them."""
    _, figures = enumerate_crashes("--points", home=tmp_path, seconds=POINTS_SECONDS)
    assert [each["scenario"] for each in figures] == list(SCENARIOS)
    for each in figures:
        check(each)
        assert each["cases"] >= (each["points"] if each["scenario"] != "truncation" else 100)
