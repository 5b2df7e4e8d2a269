"""The command `diff`: two runs beside each other."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.runs_at_hand import run_at_hand
from explorer.cli.screens.output import emit_json, emit_page, say
from explorer.cli.settings.configuration import configured, looks_at_runs
from explorer.cli.settings.options import COMMON, CommonOptions
from explorer.journal.listing import RUNNING, UNFINISHED, is_running
from explorer.observe.formatting import plain
from explorer.reports.compare import RunSnapshot, compare_runs, comparison_page, snapshot_on_disk
from explorer.schema.errors import ConfigError

DIFFERS = 1


def diff(
    run_a: Annotated[str, Parameter(help="The earlier run: its id, the beginning of one, or `latest`.")],
    run_b: Annotated[str, Parameter(help="The later run.")],
    /,
    *,
    options: CommonOptions = COMMON,
) -> int:
    """Compare two runs: what is new, gone and changed, by story, claim and source.

    Exit code 0: nothing differs; 1: something does.

    Example: `explorer diff 20261121 latest`
    """
    settings = configured(options, looks_at_runs).settings
    with run_at_hand(settings, run_a) as first, run_at_hand(settings, run_b) as second:
        if first == second:
            raise ConfigError(f"{run_a!r} and {run_b!r} are the same run", hint="list them: explorer runs")
        return _diff(first, second, options)


def _diff(first: Path, second: Path, options: CommonOptions) -> int:
    def side(folder: Path) -> RunSnapshot:
        return snapshot_on_disk(folder, RUNNING if is_running(folder) else UNFINISHED)

    found = compare_runs(side(first), side(second))
    for head, folder in ((found.first, first), (found.second, second)):
        if not (folder / "report.md").is_file() and not options.quiet:
            say(f"run {head.run_id} has no report: only sources are compared")
    if options.output_format == "text":
        emit_page(plain(comparison_page(found)).rstrip("\n"))
    else:
        emit_json({"differs": found.differs, **found.model_dump(mode="json")})
    return DIFFERS if found.differs else 0
