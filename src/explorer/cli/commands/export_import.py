"""The commands `runs export` and `runs import`: a run as one file, to keep it or to give it away."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.screens.number_format import counted, size
from explorer.cli.screens.output import emit_json, emit_page, say
from explorer.cli.settings.load import configured
from explorer.cli.settings.options import COMMON, CommonOptions
from explorer.journal.listing import find_run
from explorer.run.archive import MAX_PATH_CHARS, move_in, pack, unpacked
from explorer.run.fork import fork
from explorer.schema.errors import ConfigError


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
    folder = find_run(configured(options).settings.workspace, run)
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
    as_new: Annotated[bool, Parameter(name="--as-new", negative="", help="Give the run a new id.")] = False,
    options: CommonOptions = COMMON,
) -> int:
    """Take in a run that was exported, under its own id or a new one."""
    workspace = configured(options).settings.workspace
    lost: tuple[str, ...] = ()
    with unpacked(Path(file).expanduser(), workspace) as folder:
        run = folder
        if as_new:
            forked = asyncio.run(fork(folder, None, datetime.now(UTC)))
            run, lost = forked.folder, forked.lost
        placed = move_in(run, workspace)
    if options.output_format != "text":
        emit_json({"run_id": placed.name, "folder": str(placed.resolve()), "lost": list(lost)})
        return 0
    emit_page(placed.name)
    if lost:
        say(f"{counted(len(lost), 'file')} could not be brought along: {', '.join(lost)}")
    if not options.quiet:
        say(f"  → look at it: explorer show {placed.name}")
    return 0
