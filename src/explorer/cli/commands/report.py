"""The command `report`: a run's report on the screen, or in a file."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from explorer.cli.report_files import check_target, write_report
from explorer.cli.runs_at_hand import RunName, run_at_hand
from explorer.cli.screens.output import emit, emit_json, emit_page, print_report, say
from explorer.cli.settings.configuration import configured, looks_at_runs
from explorer.cli.settings.options import COMMON, CommonOptions
from explorer.journal.listing import LATEST, read_records
from explorer.reports.formats.writers import format_of
from explorer.run.last_report import report_of_unfinished
from explorer.run.outcome import agent_answer
from explorer.run.report_document import document_of
from explorer.schema.errors import ConfigError, NotFoundError
from explorer.workspace.access import REPORT
from explorer.workspace.workspace import report_path, report_text


def report(
    run: RunName = LATEST,
    /,
    *,
    output: str | None = None,
    overwrite: bool = False,
    form: Literal["markdown", "html", "json"] | None = None,
    options: CommonOptions = COMMON,
) -> int:
    """Print a run's report, or the answer of a run of one agent; or write it to a file."""
    if output is not None and form is not None:
        raise ConfigError("-o writes a file in the format of its ending", hint="leave out --format, or -o")
    target = None if output is None else check_target(output, overwrite=overwrite)
    with run_at_hand(configured(options, looks_at_runs).settings, run) as folder:
        return _give_report(folder, ReportWish(target, overwrite, output, form), options)


@dataclass(frozen=True)
class ReportWish:
    """Where a report goes, and in what form."""

    target: Path | None
    overwrite: bool
    output: str | None
    form: Literal["markdown", "html", "json"] | None


def _give_report(folder: Path, wish: ReportWish, options: CommonOptions) -> int:
    report_of_unfinished(folder)
    markdown = report_text(folder)
    path = str(report_path(folder)) if markdown else None
    markdown = markdown or agent_answer(read_records(folder))
    if not markdown:
        why = f": {REPORT} is not a plain text file" if os.path.lexists(folder / REPORT) else ""
        raise NotFoundError(f"run {folder.name} has no report{why}", hint=f"finish it: explorer resume {folder.name}")
    if wish.target is not None:
        warning = write_report(document_of(markdown, folder), wish.target, overwrite=wish.overwrite)
        if warning:
            say(warning)
    if wish.form is not None:
        emit(format_of(f".{wish.form}").write(document_of(markdown, folder))[0].decode().rstrip("\n"))
    elif options.output_format != "text":
        emit_json({"run_id": folder.name, "report": path, "report_text": markdown, "written": wish.output})
    elif wish.target is not None:
        emit_page(str(wish.target))
    else:
        print_report(markdown)
    return 0
