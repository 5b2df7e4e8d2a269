"""The library of reports, which outlives runs: one markdown file a report, by day."""
