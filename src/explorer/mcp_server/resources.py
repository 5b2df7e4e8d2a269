"""The reports and the sources of runs as resources, which a client's user attaches to a conversation."""

import re
from dataclasses import dataclass
from itertools import islice

from explorer.mcp_server.facts import SCHEME, report_for_model, report_uri
from explorer.run.served import RUN_NAME, SHOWN_CHARS, ServedRuns
from explorer.schema.errors import ToolError
from explorer.text.rendering import block, inline, own
from explorer.workspace.source_store import stored_at
from explorer.workspace.workspace import Workspace, report_path

PAGE = 50
TITLE_CHARS = 120
MAX_CHARS = 1_000_000
RESOURCE = re.compile(rf"{re.escape(SCHEME)}([^/]+)/(?:report|sources/(S[1-9]\d{{0,8}}))")


@dataclass(frozen=True)
class ListedReport:
    """A report in a list."""

    uri: str
    run_id: str
    title: str
    """The run's question, in a fence."""
    day: str


@dataclass(frozen=True)
class ReportListing:
    """A part of the list of reports."""

    reports: tuple[ListedReport, ...]
    next_cursor: str
    """Where the next part begins; empty: there is none."""


def reports_after(runs: ServedRuns, cursor: str) -> ReportListing:
    """Return the reports of runs older than the one that a cursor names, newest first.

    Raises:
        ToolError: It is no cursor of this server.
    """
    if cursor and not (RUN_NAME.fullmatch(cursor) and (runs.workspace / cursor).is_dir()):
        raise ToolError(own("this server did not give the cursor {cursor}", cursor=inline(cursor, SHOWN_CHARS)))
    older = (run for run in runs.past() if not cursor or run.run_id < cursor)
    with_report = (run for run in older if report_path(run.folder) is not None)
    found = list(islice(with_report, PAGE + 1))
    shown = tuple(
        ListedReport(report_uri(run.run_id), run.run_id, inline(run.question, TITLE_CHARS), run.day)
        for run in found[:PAGE]
    )
    return ReportListing(shown, shown[-1].run_id if len(found) > PAGE else "")


def read_resource(runs: ServedRuns, uri: str) -> str:
    """Return the text of a report or a source, in a fence.

    Raises:
        ToolError: There is none at that address.
    """
    found = RESOURCE.fullmatch(uri)
    if found is None:
        raise ToolError(own("there is no resource {uri}", uri=inline(uri, SHOWN_CHARS)))
    folder = runs.folder_of(found[1])
    if found[2] is not None:
        return block(Workspace(folder).read_text(stored_at(found[2])))
    text = report_for_model(folder, MAX_CHARS)
    if not text:
        raise ToolError(own("run {id} has no report yet", id=folder.name))
    return text
