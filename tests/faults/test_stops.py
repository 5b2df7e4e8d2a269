"""A run that is stopped ends in time, with a report, and can be resumed: real processes and signals."""

from pathlib import Path

import pytest

from faults.stop_table import STOPS, WORKS, Stop, Work, outcome_of


def _name(one: Stop | Work) -> str:
    return one.name


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("stop", STOPS, ids=_name)
@pytest.mark.parametrize("work", WORKS, ids=_name)
def test_a_stopped_run_ends_in_time(work: Work, stop: Stop, tmp_path: Path) -> None:
    """Within 35 s once, 3 s at once, whatever it waits for."""
    seen = outcome_of(work, stop, tmp_path)
    assert seen.is_well, seen.row
