"""The command `runs`: a line for each run."""

from explorer.cli.runs_at_hand import all_runs
from explorer.cli.screens.output import aligned, emit_json, emit_page, say
from explorer.cli.settings.configuration import configured, looks_at_runs
from explorer.cli.settings.options import COMMON, CommonOptions
from explorer.journal.listing import RunOverview
from explorer.observe.formatting import cost, tokens


def runs(*, options: CommonOptions = COMMON) -> int:
    """List runs, newest last."""
    settings = configured(options, looks_at_runs).settings
    found = all_runs(settings)
    if options.output_format != "text":
        emit_json([overview.model_dump(mode="json") for overview in found])
    elif found:
        emit_page(_listing(found))
    elif not options.quiet:
        say(f'no runs in {settings.workspace}\n  → start one: explorer "your question"')
    return 0


def _listing(found: list[RunOverview]) -> str:
    header = ("RUN", "STATUS", "COST", "TOKENS", "AGENTS", "SOURCES", "QUESTION")
    rows = [
        (
            overview.run_id,
            str(overview.status),
            cost(overview.cost_usd),
            tokens(overview.tokens),
            str(overview.agents),
            str(overview.sources),
            overview.question,
        )
        for overview in found
    ]
    return aligned(header, rows)
