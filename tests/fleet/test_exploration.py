"""One session of a run that a worker has, without the worker around it."""

from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

from explorer.fleet.exploration import Exploration, WorkerPlan, explore
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.journal.listing import read_records
from explorer.observe.tracing import Collector, Tracing
from explorer.run.hooks import RunHooks
from explorer.schema.settings import Settings
from fleet.test_queue import queue, tables, worker
from otlp_reader import read_spans
from sources.loopback import Answer, serving

_ = (queue, tables)


async def test_a_run_of_a_worker_is_told_to_the_collector(queue: FleetQueue, tmp_path: Path) -> None:
    """Each agent, turn and call is a span, as of a run of the command line."""
    settings = Settings(workspace=tmp_path / "workspace", model="offline", shell="off", corpus=tmp_path / "notes")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "ropes.md").write_text("# Ropes\n\nThe ropes cost 120 euros in March 2026.\n")
    run_id, _new = queue.submit(NewRun("What did the ropes cost?", {}))
    taken = worker(queue, "one").take(run_id)
    assert taken is not None
    with serving({"/v1/traces": Answer(b"")}) as site:
        collector = Collector(f"{site.url}/v1/traces", {})
        plan = WorkerPlan(settings, RunHooks, lambda _folder: settings, tracing=lambda: Tracing(collector, print))
        work = Exploration(plan, queue.database, taken, settings.workspace / run_id)
        ending = await explore(work, RunHooks(run_id=run_id))
    assert ending.state is QueueState.DONE, ending
    types = [record.event.type for record in read_records(settings.workspace / run_id)]
    kinds = [span.name.partition(" ")[0] for asked in site.asked for span in read_spans(asked.body)]
    found = {kind: kinds.count(kind) for kind in ("chat", "execute_tool", "invoke_agent")}
    assert found == {
        "chat": types.count("turn"),
        "execute_tool": types.count("tool_finished"),
        "invoke_agent": types.count("agent_started"),
    }
    assert found["chat"] > 1
