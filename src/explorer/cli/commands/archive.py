"""The commands `runs rm`, `runs gc`, `runs export` and `runs import`."""

import asyncio
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.runs_at_hand import run_at_hand
from explorer.cli.screens.output import aligned, emit_json, emit_page, say
from explorer.cli.settings.configuration import changes_runs, configured, looks_at_runs
from explorer.cli.settings.options import COMMON, CommonOptions
from explorer.journal.listing import (
    DAMAGED,
    RUNNING,
    UNFINISHED,
    WAITING,
    RunOverview,
    find_run,
    is_running,
    list_runs,
    overview,
)
from explorer.observe.formatting import counted, size
from explorer.run.archive import (
    MAX_PATH_CHARS,
    abandoned,
    move_in,
    pack,
    remove,
    remove_abandoned,
    size_of,
    unpacked,
)
from explorer.run.fork import fork
from explorer.schema.errors import ConfigError
from explorer.sources.http.cache import clear
from explorer.workspace.user_key import open_key

AGE = re.compile(r"(\d+)([hdw])")
HOURS = {"h": 1, "d": 24, "w": 7 * 24}
DEFAULT_AGE = "30d"
Yes = Annotated[bool, Parameter(name=["--yes", "-y"], help="Do not ask.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OldOptions(CommonOptions):
    """Flags that tell which runs are old."""

    older_than: Annotated[
        str | None, Parameter(name="--older-than", help="Age of a run's last record: 12h, 30d, 8w; 30d if not given.")
    ] = None
    keep: Annotated[int | None, Parameter(name="--keep", help="Keep the newest N, whatever their age.")] = None
    unfinished: Annotated[bool, Parameter(name="--unfinished", help="Also runs that could be resumed.")] = False
    cache: Annotated[
        bool, Parameter(name="--cache", help="Also drop the cache of fetched pages, whatever its age.")
    ] = False


OLD = OldOptions()


@dataclass(frozen=True)
class Doomed:
    """A run that is to go."""

    run: RunOverview
    bytes: int


def rm(*runs: Annotated[str, Parameter(name="RUN")], yes: Yes = False, options: CommonOptions = COMMON) -> int:
    """Remove runs, with all their files; a running run is refused."""
    workspace = configured(options, changes_runs).settings.workspace
    if not runs:
        raise ConfigError("which run?", hint="write: explorer runs rm RUN, and see: explorer runs")
    folders = dict.fromkeys(find_run(workspace, name) for name in runs)
    doomed = [_doomed(overview(folder)) for folder in folders]
    for one in doomed:
        if is_running(one.run.folder):
            name = one.run.run_id
            raise ConfigError(f"run {name} is running and cannot be removed", hint=f"stop it: explorer stop {name}")
    return _remove(doomed, options, is_sure=yes)


def gc(
    *,
    dry_run: Annotated[bool, Parameter(name="--dry-run", help="Only list what would be removed.")] = False,
    yes: Yes = False,
    options: OldOptions = OLD,
) -> int:
    """Remove old runs; never one that is running or damaged, nor an unfinished one unless asked for.

    Also what an import or a removal left in the workspace when it was killed.
    """
    doomed = _old_runs(options)
    workspace = configured(options, changes_runs).settings.workspace
    if options.cache and not dry_run:
        say(f"dropped {size(clear(workspace))} of fetched pages")
    if not dry_run and (left := abandoned(workspace, datetime.now(UTC))):
        say(f"removed {size(remove_abandoned(left))} that an import or a removal left when it was killed")
    if dry_run or not doomed:
        return _print_result(doomed, options, removed=False)
    return _remove(doomed, options, is_sure=yes)


def _old_runs(options: OldOptions) -> list[Doomed]:
    keep = options.keep
    if keep is not None and keep < 0:
        raise ConfigError(f"flag --keep: {keep} is not allowed", hint="allowed is a whole number, 0 or more")
    age = age_of(options.older_than or DEFAULT_AGE) if options.older_than or keep is None else timedelta()
    found = list_runs(configured(options, changes_runs).settings.workspace)
    candidates = found[: max(0, len(found) - (keep or 0))]
    spared = {RUNNING, DAMAGED} if options.unfinished else {RUNNING, DAMAGED, UNFINISHED, WAITING}
    before = datetime.now(UTC) - age
    return [
        _doomed(run)
        for run in candidates
        if run.status not in spared and run.last is not None and run.last <= before and not is_running(run.folder)
    ]


def age_of(raw: str) -> timedelta:
    """Return the age that a flag `--older-than` gives.

    Raises:
        ConfigError: It is none.
    """
    found = AGE.fullmatch(raw.lower())
    if found is None or len(found[1]) > 5:  # noqa: PLR2004 - digits; more weeks than a date can go back
        raise ConfigError(f"flag --older-than: {raw[:80]!r} is not allowed", hint="allowed is an age like 12h, 30d, 8w")
    return timedelta(hours=int(found[1]) * HOURS[found[2]])


def _doomed(run: RunOverview) -> Doomed:
    return Doomed(run, size_of(run.folder))


def _remove(doomed: Sequence[Doomed], options: CommonOptions, *, is_sure: bool) -> int:
    if not is_sure and not _agreed(doomed):
        return _print_result([], options, removed=False)
    for one in doomed:
        remove(one.run.folder)
    return _print_result(doomed, options, removed=True)


def _agreed(doomed: Sequence[Doomed]) -> bool:
    """Return whether the person at the terminal says yes.

    Raises:
        ConfigError: There is nobody to ask.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(
            f"{counted(len(doomed), 'run')} would be removed, and there is no terminal to ask", hint="add --yes"
        )
    say(_listing(doomed))
    say(f"remove {counted(len(doomed), 'run')}? [y/N]")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _print_result(doomed: Sequence[Doomed], options: CommonOptions, *, removed: bool) -> int:
    total = sum(one.bytes for one in doomed)
    if options.output_format != "text":
        runs = [{"run_id": one.run.run_id, "status": one.run.status, "bytes": one.bytes} for one in doomed]
        emit_json({"removed": removed, "runs": runs, "bytes": total})
    elif removed:
        emit_page(f"removed {counted(len(doomed), 'run')}, {size(total)}")
    elif doomed:
        emit_page(f"{_listing(doomed)}\n{counted(len(doomed), 'run')}, {size(total)}; nothing was removed")
    else:
        emit_page("nothing to remove")
    return 0


def _listing(doomed: Sequence[Doomed]) -> str:
    header = ("RUN", "STATUS", "LAST", "SIZE", "QUESTION")
    rows = [
        (
            one.run.run_id,
            one.run.status,
            f"{one.run.last:%Y-%m-%d}" if one.run.last else "?",
            size(one.bytes),
            one.run.question,
        )
        for one in doomed
    ]
    return aligned(header, rows, last_width=60)


def export_run(
    run: Annotated[str, Parameter(help="A run's id, the beginning of one, or `latest`.")],
    /,
    *,
    output: Annotated[
        str | None, Parameter(name=["--output", "-o"], help="The file to write; RUN.tar.gz here if not given.")
    ] = None,
    options: CommonOptions = COMMON,
) -> int:
    """Write a run into one file, a damaged one too."""
    with run_at_hand(configured(options, looks_at_runs).settings, run) as folder:
        return _export(folder, output, options)


def _export(folder: Path, output: str | None, options: CommonOptions) -> int:
    target = Path(output).expanduser() if output else Path(f"{folder.name}.tar.gz")
    if target.exists() or not target.absolute().parent.is_dir():
        problem = "is there already" if target.exists() else "would be in a folder that does not exist"
        raise ConfigError(f"{target} {problem}", hint="give another file: -o FILE.tar.gz")
    packed = pack(folder, target)
    count = target.stat().st_size
    if options.output_format != "text":
        emit_json(
            {
                "run_id": folder.name,
                "file": str(target),
                "files": packed.files,
                "left_out": packed.left_out,
                "bytes": count,
            }
        )
        return 0
    emit_page(str(target))
    if packed.left_out:
        say(f"{counted(packed.left_out, 'file')} left out: a path is longer than {MAX_PATH_CHARS} characters or odd")
    if not options.quiet:
        say(f"{counted(packed.files, 'file')}, {size(count)}")
        say(f"  → take it in elsewhere: explorer runs import {target.name}")
    return 0


def import_run(
    file: Annotated[str, Parameter(help="What `runs export` wrote.")],
    /,
    *,
    as_new: Annotated[bool, Parameter(name="--as-new", help="Give the run a new id.")] = False,
    options: CommonOptions = COMMON,
) -> int:
    """Take in a run that was exported, under its own id or a new one."""
    settings = configured(options, changes_runs).settings
    workspace = settings.workspace
    lost: tuple[str, ...] = ()
    with unpacked(Path(file).expanduser(), workspace) as folder:
        run = folder
        if as_new:
            forked = asyncio.run(fork(folder, None, datetime.now(UTC), open_key(settings.state_dir)))
            run, lost = forked.folder, forked.lost
        placed = move_in(run, workspace)
    if options.output_format != "text":
        emit_json({"run_id": placed.name, "folder": str(placed.resolve()), "lost": list(lost)})
        return 0
    emit_page(placed.name)
    if lost:
        say(f"{counted(len(lost), 'file')} could not be copied: {', '.join(lost)}")
    if not options.quiet:
        say(f"  → look at it: explorer show {placed.name}")
    return 0
