"""What a fleet cannot use is refused in one line with its exit code, on SQLite and on Postgres; nothing is lost."""

import json
import re
import secrets
import subprocess
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

import sqlalchemy as sa

from cli.stage import SCRIPT, clean_environment
from command import done_by, forked_for_fleet
from explorer.fleet.database import META, WORKERS, FleetDatabase
from explorer.fleet.runs import FleetQueue, NewRun, QueueState
from explorer.fleet.store_choice import agree_on_workspace
from explorer.schema.errors import ConfigError, StorageError
from fleet.postgres import server

NOTHING: Mapping[str, str] = {}
NOBODY = "http://127.0.0.1:9/v1"


@pytest.fixture
def database(tmp_path: Path) -> Generator[FleetDatabase]:
    """A database with the tables and nothing in them."""
    with closing(FleetDatabase(f"sqlite:///{tmp_path / 'queue.sqlite'}")) as opened:
        yield opened


def test_a_second_workspace_is_refused_while_the_first_is_in_use(tmp_path: Path, database: FleetDatabase) -> None:
    """Its workers would begin runs again that have begun elsewhere; a workspace that nothing used can be replaced."""
    one, two = tmp_path / "one", tmp_path / "two"
    agree_on_workspace(database, one)
    agree_on_workspace(database, one)
    with pytest.raises(ConfigError, match="in another workspace"):
        agree_on_workspace(database, two)
    with database.transaction() as connection:
        old = sa.func.replace(META.c.value, META.c.value, sa.literal("another-id 1.0"))
        connection.execute(sa.update(META).where(META.c.name == "workspace").values(value=old))
    agree_on_workspace(database, two)
    row = {"worker": "w", "host": "h", "process": 1, "concurrency": 1, "lease_s": 1.0, "started_at": 0, "seen_at": 0}
    with database.transaction() as connection:
        connection.execute(sa.update(META).where(META.c.name == "workspace").values(value=old))
        connection.execute(sa.insert(WORKERS).values(**row))
    with pytest.raises(ConfigError, match="in another workspace"):
        agree_on_workspace(database, two)
    (tmp_path / "text").write_text("no folder")
    with pytest.raises(StorageError, match="cannot be used"):
        agree_on_workspace(database, tmp_path / "text")


@dataclass(frozen=True)
class Stage:
    """A fleet's database, and a folder to work in."""

    folder: Path
    url: str

    def run(
        self, *words: str, cwd: Path | None = None, url: str = "", variables: Mapping[str, str] = NOTHING
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of the fleet."""
        variables = clean_environment(self.folder) | {"EXPLORER_FLEET_DATABASE": url or self.url, **variables}
        process = forked_for_fleet(str(SCRIPT), *words, cwd=cwd or self.folder, variables=variables)
        return done_by(process, None, 120)

    def refused(self, code: int, line: str, *words: str, cwd: Path | None = None, url: str = "") -> str:
        """See that a command is refused with this exit code and one line; return what it printed."""
        done = self.run(*words, cwd=cwd, url=url)
        shown = done.stdout + done.stderr
        assert done.returncode == code, shown
        (said,) = (one for one in done.stderr.splitlines() if one.startswith("explorer: "))
        assert line in said
        assert "Traceback" not in shown
        assert "a-password" not in shown
        return shown

    @contextmanager
    def queue(self) -> Generator[FleetQueue]:
        """The queue."""
        one = FleetQueue(FleetDatabase(self.url))
        try:
            yield one
        finally:
            one.close()


@pytest.fixture(scope="module")
def postgres() -> Generator[str]:
    """The address of a server's database."""
    with server() as one:
        yield one.url


@pytest.fixture(params=["sqlite", "postgres"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    """A fleet on each database."""
    if request.param == "sqlite":
        return Stage(tmp_path, f"sqlite:///{tmp_path / 'queue.sqlite'}")
    url: str = request.getfixturevalue("postgres")
    name = f"fleet_{secrets.token_hex(4)}"
    maker = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with maker.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    maker.dispose()
    return Stage(tmp_path, url.replace("/postgres", f"/{name}"))


def states(queue: FleetQueue, tenant: str) -> list[QueueState]:
    """The states of a tenant's runs."""
    return [one.state for one in queue.runs(tenant=tenant)]


@pytest.mark.slow
def test_a_run_of_another_tenant_is_not_found(stage: Stage) -> None:
    """Neither to cancel nor to retry; it stays as it was."""
    with stage.queue() as queue:
        run_id, _ = queue.submit(NewRun("What is new?", {}, tenant="a"))
        stage.refused(5, "the queue has no run", "queue", "cancel", run_id, "--tenant", "b")
        stage.refused(5, "the queue has no run", "queue", "retry", run_id, "--tenant", "b")
        assert run_id not in stage.run("queue", "--tenant", "b").stdout
        assert states(queue, "a") == [QueueState.WAITING]
        assert stage.run("queue", "cancel", run_id, "--tenant", "a").returncode == 0


@pytest.mark.slow
def test_a_line_that_cannot_be_used_is_named_and_the_others_are_submitted(stage: Stage) -> None:
    """With its number, whatever is wrong with it; the exit code says that something was refused."""
    lines = [
        '{"question": "one?"}', '{"question": ', "", '"two?"', '{"question": ""}', "[1]", '{"query": "x"}',
        '{"question": "x", "priority": 0}', '{"question": 5}', '{"question": "three?", "key": "k", "priority": 5}',
    ]  # fmt: skip
    (stage.folder / "questions.jsonl").write_text("\n".join(lines))
    done = stage.run("submit", "--many", "questions.jsonl")
    assert done.returncode == 2
    assert len(done.stdout.split()) == 3
    told = [line for line in done.stderr.splitlines() if line.startswith("questions.jsonl, line ")]
    assert [line.split(": ")[0] for line in told] == [
        f"questions.jsonl, line {number}" for number in (2, 5, 6, 7, 8, 9)
    ]
    assert "3 runs submitted, 6 lines refused" in done.stderr
    with stage.queue() as queue:
        assert sorted(one.question for one in queue.runs(tenant="")) == ["one?", "three?", "two?"]


@pytest.mark.slow
def test_a_second_fleet_on_the_database_is_refused(stage: Stage) -> None:
    """A worker with another workspace takes nothing; with the fleet's own it works."""
    with stage.queue() as queue:
        submitted = stage.run("submit", "--sample", "What do people say about Tern TLS?")
        assert submitted.returncode == 0
        worker = ("worker", "--no-shell", "--until-empty")
        assert stage.run(*worker).returncode == 0
        assert states(queue, "") == [QueueState.DONE]
        stage.run("submit", "--sample", "What do people say about Tern TLS?")
        other = stage.folder / "other"
        other.mkdir()
        stage.refused(2, "the runs of this fleet are in another workspace", *worker, cwd=other)
        assert states(queue, "") == [QueueState.DONE, QueueState.WAITING]
        assert stage.run(*worker).returncode == 0
        assert states(queue, "") == [QueueState.DONE, QueueState.DONE]


@pytest.mark.slow
def test_clocks_that_differ_do_no_harm(stage: Stage) -> None:
    """A worker whose machine is a day ahead, or behind, neither loses its runs nor takes those of others."""
    skewed = stage.folder / "skewed.py"
    with stage.queue() as queue:
        for days in (-1, 1):
            skewed.write_text(
                "import sys, time\n"
                f"real = time.time\ntime.time = lambda: real() + {days * 86400}\n"
                "from explorer.__main__ import main\n"
                "sys.argv[0] = 'explorer'\n"
                "sys.exit(main())\n"
            )
            stage.run("submit", "--sample", "What do people say about Tern TLS?")
            # A fresh one: modules that took the clock's name at their import must have taken this one.
            done = subprocess.run(
                [
                    str(SCRIPT.with_name("python")),
                    str(skewed),
                    "worker",
                    "--no-shell",
                    "--until-empty",
                    "--lease",
                    "5s",
                ],
                cwd=stage.folder,
                env=clean_environment(stage.folder) | {"EXPLORER_FLEET_DATABASE": stage.url},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
            assert done.returncode == 0, done.stderr
        runs = queue.runs(tenant="")
        assert [(one.state, one.deaths, one.epoch) for one in runs] == [(QueueState.DONE, 0, 1)] * 2
        assert all(abs(queue.now() - one.submitted_at) < 3600 for one in runs)
        facts = json.loads(stage.run("fleet", "status", "--output-format", "json").stdout)
        assert facts["ended_last_hour"] >= 2


@pytest.mark.slow
def test_a_database_that_cannot_be_used_is_named_without_its_password(stage: Stage, postgres: str) -> None:
    """None there, a wrong password, none of that name, tables of a newer version."""
    commands = (("submit", "What is new?"), ("queue",), ("worker",), ("fleet", "limit"), ("fleet", "status"))
    (stage.folder / "text").write_text("no folder")
    for words in commands:
        stage.refused(1, "cannot be used", *words, url=f"sqlite:///{stage.folder}/text/queue.sqlite")
    stage.refused(1, "password", "queue", url=postgres.replace("a-password", "another-password"))
    stage.refused(1, "does not exist", "queue", url=postgres.replace("/postgres", "/nowhere"))
    stage.refused(1, "cannot be used", "queue", url="postgresql://u:a-password@127.0.0.1:1/x")
    with stage.queue() as queue:
        known = sa.update(META).where(META.c.name == "version")
        with queue.database.transaction() as connection:
            connection.execute(known.values(value="9"))
        try:
            for words in commands:
                stage.refused(2, "tables of version 9", *words)
        finally:
            with queue.database.transaction() as connection:
                connection.execute(known.values(value="1"))


@pytest.mark.slow
def test_what_a_run_waits_for_and_what_to_do_with_one_that_failed_is_said(stage: Stage) -> None:
    """Nobody takes what is submitted where no worker is at work; a run that failed is tried again by the queue."""
    done = stage.run("submit", "What is new?")
    assert "no worker is running\n  → start one: explorer worker" in done.stderr
    run_id = done.stdout.strip()
    stage.run("queue", "stop", "--all")
    again = stage.run("submit", "--sample", "What do people say about Tern TLS?")
    assert "the queue is paused\n  → let workers take runs: explorer queue start" in again.stderr
    with stage.queue() as queue:
        queue.cancel(again.stdout.strip())
    stage.run("queue", "start")
    worked = stage.run(
        "worker", "--until-empty", "--no-shell", "--model", "openai:a-1", variables={"OPENAI_BASE_URL": NOBODY}
    )
    lines = [line for line in worked.stderr.splitlines() if f"{run_id}: " in line]
    assert len(lines) == 2, worked.stderr
    assert all(re.match(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d ", line) for line in lines)
    listed = stage.run("queue")
    assert "→ put what failed or is parked into the queue again: explorer queue retry [RUN]" in listed.stderr
    assert f"To continue:\n\n    explorer queue retry {run_id}\n" in stage.run("report", run_id).stdout


def only_reading(url: str) -> str:
    """The address of the same database for somebody who may change nothing."""
    if url.startswith("sqlite"):
        return f"{url.replace('///', '///file:')}?mode=ro&uri=true"
    maker = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"))
    with maker.begin() as connection:
        connection.execute(sa.text("CREATE ROLE reader LOGIN PASSWORD 'a-password-to-read' IN ROLE pg_read_all_data"))
    maker.dispose()
    return sa.make_url(url).set(username="reader", password="a-password-to-read").render_as_string(hide_password=False)


@pytest.mark.slow
def test_who_may_only_read_sees_the_fleet(stage: Stage) -> None:
    """Nothing is written by what only shows; what changes something says what it needs."""
    with stage.queue() as queue:
        run_id, _ = queue.submit(NewRun("What is new?", {}))
    url = only_reading(stage.url)
    for words in (("queue",), ("queue", "--all", "--output-format", "json"), ("fleet", "status"), ("fleet", "limit")):
        done = stage.run(*words, url=url)
        assert (done.returncode, "cannot be used" in done.stderr) == (0, False), done.stderr
        assert words[0] != "queue" or run_id in done.stdout
    for words in (
        ("submit", "What else?"),
        ("queue", "cancel", run_id),
        ("queue", "start"),
        ("worker", "--until-empty"),
    ):
        shown = stage.refused(1, "cannot be used", *words, url=url)
        assert "let your user write to the file" in shown or "name a user that may: EXPLORER_FLEET_DATABASE" in shown
    with stage.queue() as queue:
        assert states(queue, "") == [QueueState.WAITING]
