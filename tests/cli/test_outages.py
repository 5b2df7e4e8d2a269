"""An outage as people see it: in lines, in the live view, on the page of a run, and as data."""

import io
from datetime import datetime, timedelta
from pathlib import Path

from rich.console import Console

from explorer.cli.screens.live import drawing
from explorer.cli.screens.screen import line_of
from explorer.journal.codec import encode_all, scan
from explorer.observe.run_view import RunView, outage_words
from explorer.run.results import run_facts
from explorer.schema.events import AnyEvent, JournalRecord, RoleLoaded, TurnFailed, TurnTaken
from explorer.testing import says

MODEL = "openai:model-a"


def outage_run(small_run: list[JournalRecord], *events: AnyEvent) -> tuple[RunView, list[str]]:
    """The state after a run's records and further ones, and the lines of those."""
    view, lines, last = RunView(), list[str](), small_run[-1]
    loaded = RoleLoaded(role="searcher", model=MODEL, system="", tools=(), max_steps=9)
    more = [loaded, *events]
    records = [
        JournalRecord(v=1, seq=last.seq + n, at=last.at + timedelta(seconds=n), event=e) for n, e in enumerate(more, 1)
    ]
    for record in [*small_run, *records]:
        lines.append(line_of(record, view))
        view.apply(record)
    return view, lines


def failed(since: datetime, waits_s: float | None) -> TurnFailed:
    """An attempt that met an outage."""
    words = "no connection to the server"
    return TurnFailed(
        agent="searcher-1", fault="transport", message=words, attempt=3, waits_s=waits_s, waiting_since=since
    )


def test_an_outage_is_said_in_a_line_and_shown_live(small_run: list[JournalRecord]) -> None:
    """The model, since when, and the next try: as a line of the log, of its agent, and above the agents, counting."""
    since = small_run[-1].at - timedelta(minutes=4)
    view, lines = outage_run(small_run, failed(since, 20.0))
    clock = f"{since.astimezone():%H:%M}"
    words = f"waiting for {MODEL} since {clock}, next try in 20 s"
    assert lines[-1] == f"searcher-1  {words}: no connection to the server"
    assert view.agents["searcher-1"].doing == words
    drawn = io.StringIO()
    console = Console(file=drawn, width=90, height=30, color_system=None)
    assert view.last is not None
    console.print(drawing(view, view.last + timedelta(seconds=13), console))
    assert f"\nwaiting for {MODEL} since {clock}, next try in 7 s" in drawn.getvalue()
    (outage,) = view.outages.values()
    assert outage_words(outage, view.last + timedelta(seconds=60)).endswith("trying again now")


def test_an_outage_that_was_given_up_says_so(small_run: list[JournalRecord]) -> None:
    """After the last attempt nothing is waited for, and the words say since when the model has been silent."""
    since = small_run[-1].at - timedelta(minutes=10)
    _, lines = outage_run(small_run, failed(since, None))
    assert f"{MODEL} has not answered since {since.astimezone():%H:%M}; no further attempt" in lines[-1]


def test_a_turn_of_the_model_ends_the_outage(small_run: list[JournalRecord]) -> None:
    """Once the model answers any agent, nothing is said of an outage any more."""
    turn = TurnTaken(agent="searcher-2", turn=says("Back."), seconds=1.0)
    view, _ = outage_run(small_run, failed(small_run[-1].at, 20.0), turn)
    assert not view.outages


def test_an_outage_is_data(small_run: list[JournalRecord], tmp_path: Path) -> None:
    """Programs find it in the facts of a run, and its beginning comes back from the journal as it was written."""
    since = small_run[-1].at - timedelta(minutes=4)
    view, _ = outage_run(small_run, failed(since, 20.0))
    facts = run_facts(view, tmp_path, small_run)
    assert facts["outages"] == [{"model": MODEL, "since": since.isoformat(), "waits_s": 20.0}]
    record = JournalRecord(v=1, seq=1, at=since, event=failed(since, 20.0))
    assert scan(encode_all([record])).records[0] == record
