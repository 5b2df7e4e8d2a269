"""No call of a model and no command makes a run unreadable, unresumable or leaves it without a report."""

import subprocess
from pathlib import Path

import pytest

from attacks.hostile_calls import HOSTILE, Hostile, outcome_of
from explorer.sandbox.selection import candidates


def _name(hostile: Hostile) -> str:
    return hostile.name


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("hostile", HOSTILE, ids=_name)
def test_a_hostile_call_costs_no_run(hostile: Hostile, tmp_path: Path) -> None:
    """Killed after it, the run is shown, has a report, is resumed to its end, and takes a follow-up."""
    if not candidates() and any(name == "execute_shell" for name, _ in hostile.calls):
        pytest.skip("this machine has no sandbox")
    seen = outcome_of(hostile, tmp_path)
    # Python's own way to remove a tree goes as deep as the tree.
    subprocess.run(["/bin/rm", "-rf", str(tmp_path / "workspace")], check=True)
    assert seen.faults == []
