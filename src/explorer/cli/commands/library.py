"""The commands `report list` and `report show`: the library of reports, as runs have left it."""

from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.screens.output import aligned, emit_json, emit_page, print_report, say
from explorer.cli.settings.configuration import configured, looks_at_runs
from explorer.cli.settings.options import COMMON, CommonOptions
from explorer.observe.formatting import one_line
from explorer.reports.library import DAYS, Library, StoredReport
from explorer.schema.errors import NotFoundError, ToolError
from explorer.schema.settings import Settings
from explorer.sources.date_ranges import zone_named


def list_reports(
    what: Annotated[str, Parameter(help="A day, a month (2026-08), `today`, `yesterday`, or words in a report.")] = "",
    /,
    *more: Annotated[str, Parameter(help="Further words.")],
    options: CommonOptions = COMMON,
) -> int:
    """List the reports of the library, newest day first."""
    settings = configured(options, looks_at_runs).settings
    is_date = bool(DAYS.fullmatch(what)) or what in {"today", "yesterday"}
    date, query = (what, more) if is_date else ("", (what, *more))
    found = library_of(settings).stored_reports(date, " ".join(query))
    if options.output_format != "text":
        emit_json([_facts(stored_report) for stored_report in found])
    elif found:
        emit_page(
            aligned(("REPORT", "UPDATED", "VERDICT", "RUNS", "TITLE"), [_row(stored_report) for stored_report in found])
        )
    elif not options.quiet:
        say(f"no {'such ' if what else ''}reports in {settings.reports_dir}")
    return 0


def show_report(
    name: Annotated[str, Parameter(help="As `report list` names it; the date may be left out where one has it.")],
    /,
    *,
    options: CommonOptions = COMMON,
) -> int:
    """Print a report of the library: rendered on a terminal, plain markdown in a pipe."""
    settings = configured(options, looks_at_runs).settings
    try:
        found = library_of(settings).find(name)
    except ToolError as error:
        raise NotFoundError(f"{error.message} ({settings.reports_dir})", hint="explorer report list") from error
    if found.fields is None and not found.text:
        raise NotFoundError(f"{found.name} cannot be read: {found.problem}", hint="explorer report list")
    if options.output_format == "text":
        print_report(found.text)
    else:
        emit_json(_facts(found) | {"report_text": found.text})
    return 0


def library_of(settings: Settings) -> Library:
    """Return the library as settings place it, with the asker's clock."""
    zone = zone_named(settings.timezone)
    return Library(settings.reports_dir, lambda: datetime.now(zone))


def _row(stored_report: StoredReport) -> tuple[str, ...]:
    fields = stored_report.fields
    if fields is None:
        return (stored_report.name, "?", "", "", f"unreadable: {stored_report.problem}")
    return (
        stored_report.name,
        fields.updated[:16].replace("T", " ") or "?",
        one_line(fields.verdict, 40),
        str(len(fields.run)),
        one_line(fields.title, 100),
    )


def _facts(stored_report: StoredReport) -> dict[str, object]:
    facts: dict[str, object] = {"report": stored_report.name, "problem": stored_report.problem}
    return facts | (stored_report.fields.model_dump(mode="json") if stored_report.fields is not None else {})
