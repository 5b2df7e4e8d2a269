"""The part of `doctor` on one run: whether its journal is whole, what it names is there, and who works on it."""

from collections.abc import Iterator
from pathlib import Path

from explorer.cli.commands.probes import CheckResult
from explorer.journal.codec import Scan, examine
from explorer.journal.control import Inbox
from explorer.journal.listing import holder, is_running
from explorer.journal.run_state import RunState
from explorer.observe.formatting import counted, size
from explorer.run.outcome import resume_command
from explorer.sandbox.jobs import noted_jobs
from explorer.schema.errors import JournalVersionError, StorageError, ToolError
from explorer.schema.events import JOURNAL_VERSION, Source, Status
from explorer.schema.tool import Effect
from explorer.text.frontmatter import without_frontmatter
from explorer.workspace.access import DRAFT, REPORT, journal_path
from explorer.workspace.source_store import is_intact, stored_text
from explorer.workspace.workspace import Workspace

SHOWN = 5
"""Names in one line; the rest is counted."""


def check_run(folder: Path) -> list[CheckResult]:
    """Run all checks of a run."""
    try:
        found = examine(journal_path(folder).read_bytes())
    except OSError as error:
        raise StorageError(f"cannot read the journal of {folder.name}: {error.strerror}") from error
    run_state = RunState.of_records(found.records)
    workspace = Workspace(folder)
    is_busy = is_running(folder)
    return [
        _journal(found, folder.name, is_busy=is_busy),
        _version(found),
        _state(run_state, folder.name, is_busy=is_busy),
        *_holder(folder, is_busy=is_busy),
        _sources(run_state, workspace),
        _files(run_state, workspace, is_busy=is_busy),
        _report(run_state, workspace, is_busy=is_busy),
        *_orders(folder, is_busy=is_busy),
    ]


def _journal(found: Scan, run_id: str, *, is_busy: bool) -> CheckResult:
    last = len(found.records)
    words = f"{counted(last, 'record')}, {size(found.good_bytes + len(found.torn))}"
    if found.damage is not None:
        good = f"records 1 to {last} are good" if last else "no record before it is good"
        ways = [f"keep a copy: explorer runs export {run_id}"]
        ways += [f"continue from before the damage: explorer fork {run_id} --at {last}"] if last else []
        return CheckResult("journal", "fail", f"{found.damage.message}; {good}", "; ".join(ways))
    if found.torn and not is_busy:
        tail = f"a torn tail of {counted(len(found.torn), 'byte')} (a process was stopped while writing)"
        fix = f"nothing acknowledged is lost; cut off and kept in journal.torn by: explorer resume {run_id}"
        return CheckResult("journal", "warn", f"{words}, and {tail}", fix)
    return CheckResult("journal", "ok", words)


def _version(found: Scan) -> CheckResult:
    if isinstance(found.damage, JournalVersionError):
        return CheckResult("version", "fail", found.damage.message, found.damage.hint)
    versions = sorted({record.v for record in found.records})
    return CheckResult("version", "ok", f"{', '.join(map(str, versions)) or '-'}; read up to {JOURNAL_VERSION}")


def _state(run_state: RunState, run_id: str, *, is_busy: bool) -> CheckResult:
    if is_busy:
        return CheckResult("state", "ok", "running")
    if run_state.started is None:
        return CheckResult("state", "fail", "it was never started", f"nothing is lost by: explorer runs rm {run_id}")
    if run_state.finished is None:
        return CheckResult("state", "ok", f"unfinished; continues with: explorer resume {run_id}")
    if run_state.finished.status is Status.COMPLETE:
        return CheckResult("state", "ok", str(run_state.finished.status))
    ended = f"{run_state.finished.status} ({run_state.finished.reason})"
    return CheckResult(
        "state", "ok", f"{ended}; continues with: {resume_command(run_state, run_id, run_state.finished.cause)}"
    )


def _holder(folder: Path, *, is_busy: bool) -> Iterator[CheckResult]:
    process = holder(folder)
    if process is not None:
        yield CheckResult("lock", "ok", f"locked by process {process}")
    elif is_busy:
        yield CheckResult("lock", "ok", "locked by a process that cannot be seen from here")
    elif (folder / ".explorer" / "holder").exists():
        yield CheckResult("lock", "ok", "free; the last process was stopped without time to tidy up")
    else:
        yield CheckResult("lock", "ok", "free")


def _sources(run_state: RunState, workspace: Workspace) -> CheckResult:
    states = {source.id: _source_state(source, workspace) for source in run_state.sources.values()}
    missing = [name for name, state in states.items() if state == "missing"]
    changed = [name for name, state in states.items() if state == "changed"]
    if not missing and not changed:
        return CheckResult("sources", "ok", f"{counted(len(states), 'source')}, each as it was stored")
    fix = "what they said cannot be looked up any more; take them from a copy of the run, or read them again"
    return CheckResult("sources", "fail", _named(missing, changed), fix)


def _source_state(source: Source, workspace: Workspace) -> str:
    try:
        stored = workspace.read_text(f".explorer/sources/{source.id}.md")
    except ToolError:
        return "missing"
    return "" if stored != (text := stored_text(stored)) and is_intact(source, text) else "changed"


def _files(run_state: RunState, workspace: Workspace, *, is_busy: bool) -> CheckResult:
    """Compare files with the journal; report.md is rendered again at the end, so there its draft is what counts."""
    written = run_state.files.values()
    missing = [one.path for one in written if not workspace.exists(one.path)]
    differ = [one.path for one in written if one.path not in missing and workspace.digest(one.path) != one.sha256]
    report = run_state.files.get(REPORT)
    if REPORT in differ and report is not None and workspace.digest(DRAFT) == report.sha256:
        differ.remove(REPORT)
    if is_busy or (not missing and not differ):
        return CheckResult("files", "ok", f"{counted(len(run_state.files), 'file')}, as the journal has them")
    cut_off = _cut_off(run_state, workspace, [*missing, *differ])
    if cut_off:
        words = f"{_named(missing, differ)}; cut off in the middle: {', '.join(cut_off)}"
        return CheckResult(
            "files", "warn", words, f"the journal takes them in by: explorer resume {workspace.folder.name}"
        )
    fix = f"restore them from the journal in a new run: explorer fork {workspace.folder.name} --no-run"
    return CheckResult("files", "fail", _named(missing, differ), fix)


def _cut_off(run_state: RunState, workspace: Workspace, paths: list[str]) -> list[str]:
    """Return what explains that all of some files are not as the journal has them; empty where something does not.

    A call that a crash cut off may have changed its file, and a command or a background job any file: the journal
    learns of that when the run is resumed.
    """
    started = [call.started for state in run_state.agents.values() for call in state.calls() if not call.finished]
    calls = [call for call in started if call is not None]
    after = {call.change.path: call.change.after for call in calls if call.change is not None}
    commands = [call.name for call in calls if call.effect == Effect.JOB]
    commands += [f"background job {job.id}" for job in noted_jobs(workspace.folder) if job.reason or not job.is_over]
    if commands:
        return commands
    is_known = all(after.get(path) == workspace.digest(path) for path in paths)
    return [f"{call.name} {call.change.path}" for call in calls if call.change is not None] if is_known else []


def _named(missing: list[str], changed: list[str]) -> str:
    parts = [(missing, "missing"), (changed, "not as the journal has them")]
    return "; ".join(
        f"{len(names)} {word}: {', '.join(names[:SHOWN])}{', ...' if len(names) > SHOWN else ''}"
        for names, word in parts
        if names
    )


def _report(run_state: RunState, workspace: Workspace, *, is_busy: bool) -> CheckResult:
    if workspace.exists(REPORT):
        words = counted(len(without_frontmatter(workspace.read_text(REPORT)).split()), "word")
        return CheckResult("report", "ok", f"report.md, {words}")
    if is_busy or run_state.finished is None:
        return CheckResult("report", "ok", "none yet")
    fix = f'explorer resume {workspace.folder.name} "write the report again"'
    return CheckResult("report", "fail", "the run has ended, and report.md is not there", fix)


def _orders(folder: Path, *, is_busy: bool) -> Iterator[CheckResult]:
    waiting = Inbox(folder / ".explorer").waiting()
    if waiting:
        when = "taken at the next turn" if is_busy else "taken when the run is resumed, but for a stop"
        yield CheckResult("orders", "ok", f"{counted(len(waiting), 'order')} waiting; {when}")
