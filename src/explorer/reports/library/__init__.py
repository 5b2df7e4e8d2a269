"""The library of reports, which outlives runs: one markdown file a report, by day."""

from explorer.reports.library.page import Contribution, ReportFields
from explorer.reports.library.report_library import Library, NewReport, StoredReport

__all__ = ["Contribution", "Library", "NewReport", "ReportFields", "StoredReport"]
