"""What the JSON side answers about a report and what it rests on: claims, sources, files, timeline, comparison."""

from typing import Any, Literal

from explorer.observe.provenance import FileOrigin
from explorer.observe.timeline import Interval, PathSegment, SessionInterval, Task
from explorer.reports.compare import Comparison
from explorer.reports.evidence import Card
from explorer.reports.verify.claims import Claim
from explorer.schema.events import Source
from explorer.server.json_models import JsonAnswer

ClaimFilter = Literal[
    "", "supported", "not_found", "elsewhere", "source_missing", "unchecked", "not_supported", "uncited"
]
"""Which sentences are wanted: those with a verdict, `not_supported` for all faults, or those without a citation."""


class ReportAnswer(JsonAnswer):
    """A run's report, and what each of its citations rests on."""

    run_id: str
    """The run."""
    status: str
    """The status of the run: while it is `running`, the report is a draft."""
    markdown: str
    """The whole text of report.md, with its frontmatter."""
    fields: dict[str, Any]
    """The fields of the frontmatter; dates as texts. A draft has none."""
    counts: dict[str, int]
    """Sentences by verdict, with `not_supported` for all faults and an empty name for all; kinds without one are
    left out."""
    cards: tuple[Card, ...]
    """A card for each citation: its source, each sentence that cites it with its verdict, and the passages."""


class ClaimsAnswer(JsonAnswer):
    """The checked sentences of a report, in its order."""

    run_id: str
    """The run."""
    verdict: ClaimFilter
    """Which ones these are; empty: all."""
    counts: dict[str, int]
    """How many sentences each filter has; filters that have none are left out."""
    claims: tuple[Claim, ...]
    """The sentences, with what was looked up of each."""


class SourceEntry(JsonAnswer):
    """A source in the list of a run's sources."""

    source: Source
    """What is known of it."""
    sentences: int
    """Sentences of the report that cite it."""


class SourcesAnswer(JsonAnswer):
    """The sources that a run stored, in the order of storing."""

    run_id: str
    """The run."""
    sources: tuple[SourceEntry, ...]
    """The sources."""


class SourceAnswer(JsonAnswer):
    """A source with its stored text."""

    run_id: str
    """The run."""
    source: Source
    """What is known of it."""
    text: str
    """The text as it was stored; empty when it is missing."""
    problem: str
    """Why the text is missing, or not the one that was stored; empty when nothing is wrong."""
    claims: tuple[Claim, ...]
    """The sentences of the report that cite it."""


class FileEntry(JsonAnswer):
    """A file of a run's folder."""

    path: str
    """Its path in the folder."""
    bytes: int
    """Its size."""
    origin: FileOrigin | None
    """Who wrote it in which calls, and what it cites; null when no agent did."""


class FilesAnswer(JsonAnswer):
    """The files of a run, by path; the engine's own are left out."""

    run_id: str
    """The run."""
    files: tuple[FileEntry, ...]
    """The files."""


class FileAnswer(JsonAnswer):
    """A file with its text."""

    run_id: str
    """The run."""
    path: str
    """Its path in the folder."""
    bytes: int
    """Its size."""
    kind: str
    """What it is when it is not a text: `a PNG image of 30 x 20 pixels`; empty for a text."""
    text: str | None
    """Its text; null when it is not one."""
    origin: FileOrigin | None
    """Who wrote it in which calls, and what it cites; null when no agent did."""


class AgentTimeline(JsonAnswer):
    """When an agent worked, in seconds on the run's clock, which stops between processes."""

    id: str
    """The agent."""
    role: str
    """Its role."""
    tasks: tuple[Task, ...]
    """Its tasks, in order."""
    intervals: tuple[Interval, ...]
    """What it waited for, in the order of the ends: a model, a tool, a helper."""


class TimelineAnswer(JsonAnswer):
    """When the agents of a run worked, and the chain of waiting that made it last as long as it did."""

    run_id: str
    """The run."""
    at: int
    """The record up to which it is shown."""
    last: int
    """The number of the latest record."""
    seconds: float
    """The seconds of work up to that record."""
    sessions: tuple[SessionInterval, ...]
    """The times in which a process worked on the run."""
    agents: tuple[AgentTimeline, ...]
    """The agents, in the order of their starts."""
    critical_path: tuple[PathSegment, ...]
    """The parts of the critical path from start to end; their seconds add up to those of the run."""


class ComparisonAnswer(JsonAnswer):
    """What differs between two runs."""

    differs: bool
    """Whether any story, claim or source is new, gone or changed."""
    comparison: Comparison
    """The differences of the second run from the first."""
