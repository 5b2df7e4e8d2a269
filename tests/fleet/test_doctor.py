"""What `doctor` says of a fleet: where it is, whether its database answers, and whether its runs get on."""

from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

from pydantic import SecretStr

from explorer.cli.commands.fleet_check import check_fleet
from explorer.fleet.database import FleetDatabase
from explorer.fleet.leases import Ending, Leases
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.schema.settings import Secrets, Settings


def settings_of(url: str) -> Settings:
    """Settings that name a fleet's database."""
    return Settings(secrets=Secrets(fleet_database=SecretStr(url)))


def test_nothing_is_said_of_a_fleet_that_is_not_there() -> None:
    """Without a database in the settings, there is no line and nothing is made."""
    assert check_fleet(settings_of("")) == []


def test_a_database_that_does_not_answer_fails_with_what_fixes_it() -> None:
    """The words are those of the other commands."""
    (found,) = check_fleet(settings_of("postgresql://explorer:secret-words@127.0.0.1:1/fleet"))
    assert (found.name, found.level) == ("fleet", "fail")
    assert found.fix.startswith("see whether it runs there: pg_isready -h 127.0.0.1 -p 1")
    assert "secret-words" not in found.words


def test_runs_that_do_not_get_on_are_warned_of(tmp_path: Path) -> None:
    """No worker for those that wait, a paused queue, and runs that failed; each with its command."""
    url = f"sqlite:///{tmp_path}/queue.sqlite"
    with closing(FleetQueue(FleetDatabase(url))) as queue:
        (empty,) = check_fleet(settings_of(url))
        assert (empty.level, empty.words) == ("ok", f"{tmp_path}/queue.sqlite: 0 workers, 0 runs waiting, store local")
        run_id, _new = queue.submit(NewRun("What is new?", {}))
        (lonely,) = check_fleet(settings_of(url))
        assert (lonely.level, lonely.fix) == ("warn", "start one: explorer worker")
        leases = Leases(queue, "one", 30.0)
        leases.enter("one", 1, 1)
        (served,) = check_fleet(settings_of(url))
        assert (served.level, served.fix) == ("ok", "")
        assert ": 1 worker, 1 run waiting" in served.words
        taken = leases.take(run_id)
        assert taken is not None
        leases.settle(taken, Ending(QueueState.FAILED, reason="a key was refused"))
        (failed,) = check_fleet(settings_of(url))
        assert (failed.level, failed.fix) == ("warn", "see why: explorer queue; try again: explorer queue retry")
        queue.pause(is_paused=True)
        (paused,) = check_fleet(settings_of(url))
        assert (paused.level, paused.fix) == ("warn", "explorer queue start")
