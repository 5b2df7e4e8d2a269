"""What a life does about what an earlier one left."""

from pathlib import Path

from explorer.agents.budget import Budget
from explorer.run.hooks import StopSignal
from explorer.schema.reasons import EndCause, limit_reached
from explorer.schema.settings import Limits
from explorer.workspace.workspace import Workspace


def test_half_written_files_are_swept_away(tmp_path: Path) -> None:
    """Names that only an interrupted write leaves are removed everywhere; whatever else looks alike stays."""
    left = [".a.md.17230-d45dd3c0.tmp", "notes/.b.md.1-00000000.tmp", ".explorer/sources/.S1.md.99-abcdef01.tmp"]
    kept = ["a.md", "notes/b.tmp", ".hidden.tmp", ".explorer/sources/S1.md", "notes/.b.md.1-short.tmp"]
    for name in [*left, *kept]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    Workspace(tmp_path).sweep()
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()} == set(kept)


def test_a_winding_down_is_taken_back_by_a_stop_at_once() -> None:
    """After the second Ctrl-C no agent takes itself for ended early; another reason to wind down stays."""
    budget = Budget(Limits(), lambda: 0.0)
    stop = StopSignal()
    stop.attach(budget)
    stop.wind_down("interrupted by the user")
    assert budget.winding_down == "interrupted by the user"
    stop.stop_at_once("interrupted twice")
    assert budget.winding_down == ""
    assert not budget.stopping.is_asked
    budget.wind_down(limit_reached(EndCause.STEP_LIMIT))
    stop.wind_down("interrupted by the user")
    stop.stop_at_once("interrupted twice")
    assert budget.winding_down == "step limit"
