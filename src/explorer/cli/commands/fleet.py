"""Commands of a fleet that work on no run themselves: `submit`, `queue`, `fleet status`, decisions about plans."""

import json
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Parameter

from explorer.cli.commands.trust import settings_to_run
from explorer.cli.question import as_asked, no_question
from explorer.cli.runs_at_hand import DATABASE_FILE, PACKAGE
from explorer.cli.screens.output import aligned, emit_json, emit_page, say
from explorer.cli.settings.configuration import changes_runs, configured, looks_at_runs
from explorer.cli.settings.fleet_options import QUEUE, SUBMIT, QueueOptions, SubmitOptions
from explorer.cli.settings.options import CommonOptions
from explorer.fleet.own_queue import own_queue
from explorer.observe.formatting import cost, counted, duration
from explorer.schema.errors import ConfigError, NotFoundError
from explorer.schema.settings import Settings
from explorer.text.sanitize import single_line, visible
from explorer.workspace.user_key import open_key

if TYPE_CHECKING:
    from explorer.fleet.runs import FleetQueue, NewRun
from explorer.cli.commands.archive import DEFAULT_AGE, age_of
from explorer.cli.runs_at_hand import run_at_hand, waits_in_fleet
from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.observe.formatting import size
from explorer.schema.plan import PlanDecision

MAX_TOLD = 20
"""Lines of a file of questions that are refused by name; of more only their number is told."""
RunName = Annotated[str, Parameter(help="A run's id, or the beginning of one.")]


def submit(*question: str, options: SubmitOptions = SUBMIT) -> int:
    """Put a question into the fleet's queue, and print the id of its run.

    A worker explores it: `explorer worker`. The limits and models given here are the run's, within those of its
    worker; all other settings are the worker's.

    Example: `explorer submit --max-cost 0.50 "What changed in SQLite 3.51?"`

    Example: `explorer submit --file report.pdf "What does it say about the harbour?"`

    Example: `explorer submit --many questions.jsonl`
    """
    from explorer.cli.launch import input_files
    from explorer.documents.corpus.reading import read_inputs
    from explorer.fleet.runs import NewRun
    from explorer.fleet.submission import submitted

    if options.corpus is not None:
        hint = "let the workers have it: explorer worker --corpus DIR; or submit files: --file PATH"
        raise ConfigError("a corpus is a folder of one machine, and is not submitted", hint=hint)
    words = as_asked(" ".join(question))
    if bool(words) == bool(options.many):
        raise no_question('give one: explorer submit "your question"; or a file of them: --many FILE')
    sample = {"model": "offline", "is_sample": True, "lean": "off"} if options.sample else {}
    settings = settings_to_run(options).settings.model_copy(update=sample)
    files = {one.name: one.body for one in read_inputs(input_files(options.files))}
    given = NewRun(words, submitted(settings), options.priority, options.tenant, options.key, files)
    with open_queue(settings) as queue:
        if options.many is None:
            run_id, is_new = queue.submit(given)
            if options.output_format != "text":
                emit_json({"run_id": run_id, "is_new": is_new})
            else:
                emit_page(run_id)
                say_unless_quiet(
                    options, "" if is_new else "this key was used before: the run is the one that it was used for"
                )
                say_unless_quiet(options, _what_it_waits_for(queue))
            return 0
        return _submit_many(queue, Path(options.many), given, options)


def _what_it_waits_for(queue: "FleetQueue") -> str:
    """Return what has to be done before a run that waits is taken; empty where a worker takes it."""
    if queue.is_paused:
        return "the queue is paused\n  → let workers take runs: explorer queue start"
    if not any(one.is_alive for one in queue.workers()):
        return "no worker is running\n  → start one: explorer worker"
    return ""


def _submit_many(queue: "FleetQueue", path: Path, given: "NewRun", options: SubmitOptions) -> int:
    """Submit each line of a file that can be used; say of the others why not, and exit with 2."""
    if options.key:
        raise ConfigError(
            "one key is for one question", hint='give each line its own: {"question": "...", "key": "..."}'
        )
    refused: list[str] = []
    count = 0
    for number, line in _lines(path):
        try:
            run_id, is_new = queue.submit(_of_line(line, given))
        except ConfigError as error:
            refused.append(f"{path}, line {number}: {error.message}")
            continue
        count += 1
        if options.output_format != "text":
            emit_json({"line": number, "run_id": run_id, "is_new": is_new})
        else:
            emit_page(run_id)
    for words in refused[:MAX_TOLD]:
        say(words)
    if len(refused) > MAX_TOLD:
        say(f"and {len(refused) - MAX_TOLD} more lines")
    say_unless_quiet(options, f"{counted(count, 'run')} submitted, {counted(len(refused), 'line')} refused")
    say_unless_quiet(options, _what_it_waits_for(queue) if count else "")
    return ConfigError.exit_code if refused else 0


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not empty, with their numbers."""
    try:
        with path.open(encoding="utf-8-sig") as lines:
            yield from ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise NotFoundError(f"{path} cannot be read: {reason}", hint="give a file: --many questions.jsonl") from error


def _of_line(line: str, given: "NewRun") -> "NewRun":
    try:
        fields: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"not JSON: {error}") from error
    if isinstance(fields, str):
        fields = {"question": fields}
    if not isinstance(fields, dict):
        raise ConfigError("neither an object nor a text")
    values = cast("dict[str, Any]", fields)
    unknown = sorted(values.keys() - {"question", "priority", "key", "tenant"})
    if unknown:
        raise ConfigError(f"unknown field {unknown[0]!r}; known are question, priority, key and tenant")
    texts = {name: values.get(name, "") for name in ("question", "key", "tenant")}
    priority = values.get("priority", given.priority)
    if not all(isinstance(text, str) for text in texts.values()) or type(priority) is not int:
        raise ConfigError("question, key and tenant are texts, and priority is a whole number")
    return replace(
        given,
        question=texts["question"],
        idempotency_key=texts["key"],
        tenant=texts["tenant"] or given.tenant,
        priority=priority,
    )


def show_queue(*, is_all: bool = False, options: QueueOptions = QUEUE) -> int:
    """List the runs of the queue: those that wait, are at work, failed or are parked; with `--all` the others, too."""
    from explorer.fleet.runs import QueueState

    ended, unfinished = {QueueState.DONE, QueueState.CANCELLED}, {QueueState.WAITING, QueueState.RUNNING}
    with open_queue(configured(options, looks_at_runs).settings) as queue:
        found = queue.runs(tuple(QueueState), options.tenant)
        is_paused = queue.is_paused
        now = queue.now()
    shown = [one for one in found if is_all or one.state not in ended]
    counts = Counter(one.state for one in found)
    if options.output_format != "text":
        emit_json({"paused": is_paused, "counts": counts, "runs": [asdict(one) for one in shown]})
        return 0
    rows = [
        (
            one.run_id,
            one.state,
            duration(now - one.submitted_at),
            # It is on record when the work ends: until then it is not unknown for want of a price.
            "-" if one.cost_usd is None and one.state in unfinished else cost(one.cost_usd),
            one.worker or one.reason or one.question,
        )
        for one in shown
    ]
    if rows:
        emit_page(aligned(("RUN", "STATE", "AGE", "COST", "WORKER, REASON OR QUESTION"), rows))
    states = ", ".join(f"{counts[state]} {state}" for state in QueueState if counts[state]) or "empty"
    say_unless_quiet(
        options, f"queue: {states}{'; paused: workers take no further run (explorer queue start)' if is_paused else ''}"
    )
    if counts[QueueState.FAILED] or counts[QueueState.PARKED]:
        say_unless_quiet(options, "  → put what failed or is parked into the queue again: explorer queue retry [RUN]")
    return 0


def cancel(run: RunName, /, *, options: QueueOptions = QUEUE) -> int:
    """Cancel a run of the queue: one that waits at once, one at work within seconds."""
    from explorer.fleet.runs import QueueState

    with open_queue(configured(options, changes_runs).settings) as queue:
        found = queue.run(run, options.tenant)
        state = queue.cancel(found.run_id)
    what = "its worker stops it" if state is QueueState.RUNNING else "cancelled"
    say_unless_quiet(options, f"{single_line(found.run_id)}: {what}")
    return 0


def retry(*runs: RunName, options: QueueOptions = QUEUE) -> int:
    """Put runs that failed, were cancelled or are parked into the queue again; all such runs when none is named.

    Each continues where it stopped; nothing that is on record is done again.
    """
    from explorer.fleet.runs import QueueState

    with open_queue(configured(options, changes_runs).settings) as queue:
        if runs:
            chosen = [queue.run(run, options.tenant) for run in runs]
        else:
            chosen = queue.runs((QueueState.FAILED, QueueState.PARKED), options.tenant)
        for one in chosen:
            queue.retry(one.run_id)
            say_unless_quiet(options, f"{single_line(one.run_id)}: waits again")
    say_unless_quiet(options, "" if chosen else "no run failed, and none is parked")
    return 0


def pause(*, options: CommonOptions = QUEUE) -> int:
    """Let the runs at work end, and let no worker take another one, until `explorer queue start`."""
    with open_queue(configured(options, changes_runs).settings) as queue:
        queue.pause(is_paused=True)
        at_work = sum(one.runs for one in queue.workers())
    say_unless_quiet(options, f"paused; {counted(at_work, 'run')} still at work")
    return 0


def start(*, options: CommonOptions = QUEUE) -> int:
    """Let workers take runs again."""
    with open_queue(configured(options, changes_runs).settings) as queue:
        queue.pause(is_paused=False)
    say_unless_quiet(options, "workers take runs")
    return 0


def stop(
    *,
    is_all: Annotated[bool, Parameter(name="--all", help="Stop every run at work.")] = False,
    options: CommonOptions = QUEUE,
) -> int:
    """Stop every run at work within seconds, and let no worker take another one, until `explorer queue start`.

    What the runs found is kept, and they are back in the queue.
    """
    if not is_all:
        raise ConfigError("all runs of the fleet would be stopped", hint="say so: explorer queue stop --all")
    with open_queue(configured(options, changes_runs).settings) as queue:
        stopped = queue.stop_all()
    say_unless_quiet(options, f"{counted(stopped, 'run')} stopped; the queue is paused until: explorer queue start")
    return 0


def status(*, options: CommonOptions = QUEUE) -> int:
    """Show the fleet: its workers, their runs and leases, its limits, and how many runs ended in the last hour."""
    from explorer.cli.screens.shared_limits import limits_fields, limits_page
    from explorer.fleet.limits import SharedLimitBook

    with open_queue(configured(options, looks_at_runs).settings) as queue:
        workers, facts, place = queue.workers(), queue.throughput(), queue.database.place
        is_paused, book = queue.is_paused, SharedLimitBook(queue.database)
        uses, rates = book.uses(), book.rates()
    if options.output_format != "text":
        shown: dict[str, object] = {"database": place, "paused": is_paused, **limits_fields(uses, rates)}
        emit_json({**shown, "workers": [asdict(one) for one in workers], **facts})
        return 0
    rows = [
        (
            one.worker,
            f"{one.runs} of {one.concurrency}",
            duration(one.age_s),
            "alive" if one.is_alive else f"silent for {duration(one.silent_s)}",
        )
        for one in workers
    ]
    if rows:
        emit_page(aligned(("WORKER", "RUNS", "AGE", "LEASE"), rows))
    else:
        emit_page("no workers; start one: explorer worker")
    emit_page(
        f"waiting {facts['waiting']}, at work {facts['running']}; in the last hour {facts['ended_last_hour']} ended, "
        f"{cost(facts['cost_last_hour'])}"
    )
    if uses or rates:
        emit_page(f"\n{limits_page(uses, rates)}")
    return 0


@contextmanager
def open_queue(settings: Settings) -> Generator["FleetQueue"]:
    """Open the queue that the settings name.

    Raises:
        ConfigError: The package that it needs is missing, the address of the database cannot be used, or the file in
            the folder with the runs was made by somebody else.
        StorageError: The database does not answer.
    """
    if find_spec(PACKAGE) is None:
        raise ConfigError("the package dbos is not installed", hint="pip install 'explorer[fleet]'")
    from explorer.fleet.database import FleetDatabase
    from explorer.fleet.runs import FleetQueue

    url = settings.secrets.fleet_database.get_secret_value()
    if not url:
        url = f"sqlite:///{own_queue((settings.workspace / DATABASE_FILE).absolute(), open_key(settings.state_dir))}"
    queue = FleetQueue(FleetDatabase(url))
    try:
        yield queue
    finally:
        queue.close()


def say_unless_quiet(options: CommonOptions, words: str) -> None:
    """Print a line to stderr, unless it is empty or the user asked for quiet."""
    if words and not options.quiet:
        say(visible(words))


def prune(
    *,
    older_than: Annotated[
        str, Parameter(name="--older-than", metavar="AGE", help="Age of a run's end: 12h, 30d, 8w.")
    ] = DEFAULT_AGE,
    failed: Annotated[bool, Parameter(name="--failed", help="Also runs that failed, are parked or undecided.")] = False,
    dry_run: Annotated[bool, Parameter(name="--dry-run", help="Only say what would be removed.")] = False,
    options: QueueOptions = QUEUE,
) -> int:
    """Remove runs that ended long ago from the queue, with what the fleet's database has of them.

    Runs in a workspace stay: `explorer runs gc` removes those. A removed run's idempotency key is new again.

    Example: `explorer queue prune --older-than 90d --dry-run`
    """
    older_than_s = age_of(older_than).total_seconds()
    settings = configured(options, changes_runs).settings
    with open_queue(settings) as queue:
        from explorer.fleet.retention import ENDED, STUCK, Retention
        from explorer.fleet.run_contents import open_objects

        objects = open_objects(settings.fleet_objects)
        retention = Retention(queue, older_than_s, ENDED | STUCK if failed else ENDED, options.tenant, objects)
        found = retention.look() if dry_run else retention.prune()
    if options.output_format != "text":
        emit_json({"removed": not dry_run, **asdict(found)})
        return 0
    would = "would be removed" if dry_run else "removed"
    emit_page(
        f"{counted(found.runs, 'run')} {would}: journals {size(found.journal_bytes)}, files {size(found.file_bytes)}"
    )
    if found.kept_runs:
        words = "have files in an object store, which is not set up here (EXPLORER_FLEET_OBJECTS): they stay"
        say_unless_quiet(options, f"{counted(found.kept_runs, 'run')} {words}")
    return 0


def decide_in_fleet(settings: Settings, name: str, decision: PlanDecision) -> str:
    """Hand a decision to the fleet; return the run's id, which is empty where no plan of such a run waits.

    Raises:
        ConfigError: Another decision was first.
        StorageError: The fleet's database does not answer.
    """
    run_id = waits_in_fleet(settings, name)
    if not run_id:
        return ""
    from explorer.fleet.orders import leave_decision, waiting_call

    with run_at_hand(settings, run_id) as folder:
        run_state = RunState.of_records(read_records(folder))
    call = waiting_call(run_state)
    if not call:
        raise ConfigError("no plan of this run waits for a decision", hint=f"its state: explorer show {run_id}")
    with open_queue(settings) as queue:
        leave_decision(queue, run_id, call, decision)
    return run_id
