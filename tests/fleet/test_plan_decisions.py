"""Plans of a fleet's runs: the decision comes from any machine, and a worker resumes the run with it, once."""

from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

import sqlalchemy as sa

from command import explorer_here
from explorer.cli.commands.fleet import decide_in_fleet
from explorer.cli.runs_at_hand import run_to_resume
from explorer.fleet.database import ORDERS
from explorer.fleet.exploration import Exploration, WorkerPlan, explore
from explorer.fleet.leases import Ending
from explorer.fleet.orders import KIND, decision_for, waiting_call
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.fleet.store_choice import agree_on_store
from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.run.hooks import RunHooks
from explorer.schema.errors import ConfigError
from explorer.schema.events import ORCHESTRATOR, PlanDecided, PlanProposed, Status
from explorer.schema.plan import Plan, PlanDecision, PlanVerdict, SubQuestion
from explorer.schema.settings import Settings
from fleet.test_queue import queue, tables, worker
from fleet.test_run_copy import settings_of, started
from fleet.test_store import KEY, Machine, machine

_ = (queue, tables)
PLAN = Plan(questions=(SubQuestion(id="q1", question="How old is it?"),))


async def propose(one: Machine, call: str = "orchestrator.t1.1") -> None:
    """A plan that waits, on record, and in the queue."""
    await one.journal.append(started(one.taken.run_id))
    await one.journal.append(PlanProposed(agent=ORCHESTRATOR, call=call, plan=PLAN, spent_usd=0.0, waits=True))
    one.leases.settle(one.taken, Ending(QueueState.UNDECIDED, Status.WAITING, "its plan waits"))


def state_of(one: Machine) -> RunState:
    """The run as its journal has it."""
    return RunState.of_records(read_records(one.folder))


async def test_a_plan_is_decided_from_any_machine_and_once(queue: FleetQueue, tmp_path: Path) -> None:
    """The run waits for a worker again; a second decision comes too late, and one that is on record is not obeyed."""
    agree_on_store(queue.database, "database", KEY)
    run_id, _new = queue.submit(NewRun("What is new?", {"plan": "ask"}))
    settings = settings_of(queue, tmp_path / "third")
    assert not decide_in_fleet(settings, run_id, PlanDecision.approve()), "nothing waits yet"
    with machine(queue, tmp_path, "one", run_id) as one:
        await propose(one)
        assert queue.run(run_id).state is QueueState.UNDECIDED
        with pytest.raises(ConfigError, match="waits for a decision"):
            run_to_resume(settings, run_id)
        with pytest.raises(ConfigError, match="it is undecided"):
            queue.retry(run_id)
        assert decide_in_fleet(settings, run_id[:-2], PlanDecision.reject("only its age")) == run_id
        assert queue.run(run_id).state is QueueState.WAITING
        assert not decide_in_fleet(settings, run_id, PlanDecision.approve()), "the first one counts"
        assert worker(queue, "two").take(run_id) is not None
        decided = decision_for(queue.database, run_id, state_of(one))
        assert decided == PlanDecision.reject("only its age")
        other = RunState.of([started(run_id)])
        assert decision_for(queue.database, run_id, other) is None, "no plan waits in that state"


async def test_a_decision_is_of_one_plan(queue: FleetQueue, tmp_path: Path) -> None:
    """Once it is on record, a later plan of the run waits for its own; what is no decision is ignored."""
    agree_on_store(queue.database, "database", KEY)
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    with machine(queue, tmp_path, "one", run_id) as one:
        await propose(one)
        before = state_of(one)
        with queue.database.transaction() as connection:
            for number, text in enumerate(("{", '{"call": "orchestrator.t1.1", "decision": {"verdict": "x"}}')):
                row = {"order_id": f"{number}", "run_id": run_id, "kind": KIND, "text": text}
                connection.execute(sa.insert(ORDERS).values(**row))
        assert decision_for(queue.database, run_id, before) is None
        assert decide_in_fleet(settings_of(queue, tmp_path / "third"), run_id, PlanDecision.approve())
        assert decision_for(queue.database, run_id, before) == PlanDecision.approve()
        lines = [record.event for record in read_records(one.folder)]
        again = PlanProposed(agent=ORCHESTRATOR, call="orchestrator.t2.1", plan=PLAN, spent_usd=0.0, waits=True)
        after = RunState.of([*lines, PlanDecided(verdict=PlanVerdict.REJECTED, words="more"), again])
        assert waiting_call(after) == "orchestrator.t2.1"
        assert decision_for(queue.database, run_id, after) is None


@pytest.mark.slow
async def test_a_plan_that_cannot_be_used_waits_on(queue: FleetQueue, tmp_path: Path) -> None:
    """An edited plan names a helper that is not there: the run says so, and another decision takes it to its end."""
    settings = Settings(workspace=tmp_path / "workspace", model="offline", lean="off", is_sample=True, shell="off")
    sample = {"model": "offline", "is_sample": True, "lean": "off", "plan": "ask"}
    run_id, _new = queue.submit(NewRun("What do people say about Tern TLS?", sample))
    leases = worker(queue, "one")

    async def session() -> Ending:
        taken = leases.take(run_id)
        assert taken is not None
        plan = WorkerPlan(settings, RunHooks, lambda _folder: settings)
        work = Exploration(plan, queue.database, taken, settings.workspace / run_id)
        ending = await explore(work, RunHooks(run_id=run_id))
        leases.settle(taken, ending)
        return ending

    assert (await session()).state is QueueState.UNDECIDED
    here = settings_of(queue, tmp_path)
    wrong = Plan(questions=(SubQuestion(question="How old is it?", helper="nobody"),))
    assert decide_in_fleet(here, run_id, PlanDecision.edit(wrong))
    ending = await session()
    assert ending.state is QueueState.UNDECIDED
    assert "names the helper 'nobody'" in ending.reason
    assert decide_in_fleet(here, run_id, PlanDecision.approve())
    assert (await session()).status == "complete"


def test_a_plan_is_approved_on_the_command_line(queue: FleetQueue, tmp_path: Path) -> None:
    """Of a run that no plan waits in, `resume` says what else can be done."""
    run_id, _new = queue.submit(NewRun("What is new?", {}))
    known = {"EXPLORER_FLEET_DATABASE": queue.database.dsn}
    done = explorer_here("resume", run_id, "--plan", "approve", cwd=tmp_path, settings=known)
    assert done.returncode == 5, done.stderr
