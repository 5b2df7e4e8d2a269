"""What a real run states to its agents, and what it says of earlier work."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from explorer.journal.listing import read_records
from explorer.run.hooks import RunHooks
from explorer.run.run import resume, start
from explorer.run.run_facts import earlier_work
from explorer.schema.events import AgentContinued, AgentStarted
from explorer.schema.settings import Settings
from explorer.testing import ScriptedClient, says
from explorer.tools.library import Past
from reports.library.stage import FIRST, SECOND, library, past_run

NOON = datetime(2026, 3, 14, 12, 30, tzinfo=UTC)
REPORT = "# May\n\nOutput rose by 12 % [S1].\n"
WRITE = says("", ("write_file", {"filepath": "report.md", "content": REPORT}))
FINISH = says("", ("finish_exploration", {"summary": "It rose."}))


async def test_a_run_states_its_facts_and_a_follow_up_those_of_its_day(tmp_path: Path) -> None:
    """The user's zone, the limits, search engines, sites and shell, and files with their ids."""
    settings = Settings(workspace=tmp_path / "runs", timezone="Europe/Berlin", shell="off")
    client = ScriptedClient({"orchestrator": [WRITE, FINISH, says("It did.")]})
    hooks = RunHooks(client=client, run_id="run", now=lambda: NOON, files={"may.txt": b"Output rose by 12 %."})
    await start("How was May?", settings, hooks)
    later = RunHooks(client=client, now=lambda: NOON + timedelta(days=2))
    folder = tmp_path / "runs" / "run"
    await resume(folder, settings, "Are you sure?", later)
    events = [record.event for record in read_records(folder)]
    (begun,) = [event for event in events if isinstance(event, AgentStarted)]
    (asked,) = [event for event in events if isinstance(event, AgentContinued)]
    assert begun.task == "Question: How was May?"
    for line in (
        "Now: Saturday, 2026-03-14 13:30 CET (UTC+0100).",
        "Your limit: 60 turns. Left for all agents of the run: 285 turns, 60 minutes.",
        "Helpers: 40 at most, 8 at once.",
        "Sites read through their services: news.ycombinator.com, reddit.com, lobste.rs",
        "Shell: none.",
        "Files from the user, with their source ids: <<inputs/may.txt>> [S1]",
    ):
        assert f"\n- {line}" in begun.context
    assert "- Now: Monday, 2026-03-16 13:30 CET (UTC+0100)." in asked.context
    assert "Earlier work" not in begun.context


def test_earlier_work_on_the_subject_is_named_and_other_work_is_not(tmp_path: Path) -> None:
    """Of runs and library reports that share most of the question's words, a line each; text from them is fenced."""
    place = tmp_path / "workspace"
    past_run(place, FIRST, "What is new in SQLite? <<end>>", {"report.md": "# SQLite\n\nA power cut is survived.\n"})
    past_run(place, SECOND, "Are ropes strong?", {"report.md": "# Ropes\n\nRopes survive much power.\n"})
    past = Past(place, "now", library(tmp_path / "reports"))
    words = earlier_work(past, "How does SQLite survive a power cut?")
    assert words.startswith("Earlier work on this (leads, not evidence; see list_reports, search_runs): run of 2026-")
    assert words.endswith(": <<What is new in SQLite? < <end> >>>")
    assert "ropes" not in words.casefold()
    assert not earlier_work(past, "How tall is Everest?")
    assert not earlier_work(past, "?!")
