"""After a limit: the command that goes on names the flag to raise, on the terminal and in the report."""

import json
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cli.conftest import STORY, turn
from cli.stage import Explorer
from explorer.journal.run_state import RunState
from explorer.run.outcome import resume_command
from explorer.schema.events import AgentStarted, AnyEvent, JournalRecord, RunStarted
from explorer.schema.reasons import EndCause

RUN = "20260810-120000-x-1234"
Number = Callable[[Sequence[AnyEvent]], list[JournalRecord]]


def fold_of(limits: dict[str, float], turns: int = 1) -> RunState:
    """A run with limits that took so many turns: 1,000 tokens and a cent each."""
    lead = "orchestrator"
    started = RunStarted(run_id=RUN, question="q", engine="0", settings={"limits": limits})
    agent = AgentStarted(agent=lead, role=lead, task="q", max_steps=9)
    return RunState.of([started, agent, *[turn(lead) for _ in range(turns)]])


@pytest.mark.parametrize(
    ("cause", "limits", "turns", "command"),
    [
        (EndCause.STEP_LIMIT, {"max_steps": 6}, 6, f"explorer resume {RUN} --max-steps 12"),
        (EndCause.STEP_LIMIT, {"max_steps": 6}, 20, f"explorer resume {RUN} --max-steps 40"),
        (EndCause.STEP_LIMIT, {"max_steps": 3}, 3, f"explorer resume {RUN} --max-steps 6"),
        (EndCause.COST_LIMIT, {"max_cost_usd": 0.5}, 2, f"explorer resume {RUN} --max-cost 1.00"),
        (EndCause.COST_LIMIT, {"max_cost_usd": 0.001}, 0, f"explorer resume {RUN} --max-cost 0.002000"),
        (EndCause.TOKEN_LIMIT, {"max_tokens": 5_000}, 4, f"explorer resume {RUN} --max-tokens 10000"),
        (EndCause.CALL_LIMIT, {"max_tool_calls": 30}, 4, f"explorer resume {RUN} --max-tool-calls 60"),
        (EndCause.TIME_LIMIT, {"max_time_s": 90}, 1, f"explorer resume {RUN} --max-time 180s"),
        (EndCause.OTHER, {"max_steps": 300}, 40, f"explorer resume {RUN}"),
    ],
)
def test_what_ran_out_is_doubled(cause: EndCause, limits: dict[str, float], turns: int, command: str) -> None:
    """Twice the limit, or twice what a later life with a larger one used; other ends need no flag."""
    assert resume_command(fold_of(limits, turns), RUN, cause) == command


@pytest.mark.slow
def test_a_run_out_of_steps_goes_on_with_the_command_it_tells(here: Explorer, tmp_path: Path) -> None:
    """On the terminal and in the report; typed as it stands, the run is completed."""
    done = here("demo", STORY, "--max-steps", "1", "--workspace", "my runs")
    assert done.returncode == 1
    match = re.search(
        r"→ continue: explorer (resume \S+ --max-steps 2 --workspace 'my runs')$", done.stderr, re.MULTILINE
    )
    assert match is not None, done.stderr
    (folder,) = (tmp_path / "my runs").glob("[!.]*")
    report = (folder / "report.md").read_text()
    assert "> **Failed:** Step limit; nothing was found." in report
    assert f"explorer resume {folder.name} --max-steps 2" in report
    words = [word if word != "2" else "100" for word in shlex.split(match[1])]
    shown = json.loads(here(*words, "-q", "--output-format", "json").stdout)
    assert (shown["status"], shown["run_id"]) == ("complete", folder.name)
