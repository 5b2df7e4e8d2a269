"""The flags of a fleet's commands."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.settings.options import INPUT_OUTPUT, CommonOptions, QuestionOptions, RunOptions, flag_of


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SubmitOptions(QuestionOptions):
    """Flags of a question for the queue."""

    max_outage: Annotated[str | None, Parameter(parse=False)] = None
    """No flag here: how long a model is waited for is the worker's setting."""
    files: Annotated[
        tuple[str, ...],
        Parameter(
            name="--file",
            metavar="PATH",
            group=INPUT_OUTPUT,
            help="A file the question is about; its content is submitted with it. Repeatable.",
        ),
    ] = ()
    corpus: Annotated[str | None, Parameter(name="--corpus", metavar="DIR", show=False)] = None
    many: Annotated[
        str | None,
        Parameter(
            name="--many",
            metavar="FILE",
            help='A file of questions: a JSON object a line with "question", and "priority" or "key" where you like.',
        ),
    ] = None
    priority: Annotated[int, Parameter(name="--priority", metavar="N", help="1 is first, 10000 last.")] = 100
    key: Annotated[
        str,
        Parameter(
            name="--idempotency-key", metavar="KEY", help="The same key gives the same run: submitted twice, run once."
        ),
    ] = ""
    tenant: Annotated[str, Parameter(name="--tenant", metavar="NAME", help="Whose run it is.")] = ""
    sample: Annotated[
        bool, Parameter(name="--sample", help="Explore the bundled sample day offline, as `demo` does.")
    ] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WorkerOptions(RunOptions):
    """Flags of a worker."""

    concurrency: Annotated[int, Parameter(name="--concurrency", metavar="N", help="Runs at the same time.")] = 2
    until_empty: Annotated[bool, Parameter(name="--until-empty", help="End when no run waits or is at work.")] = False
    lease: Annotated[
        str, Parameter(name="--lease", metavar="TIME", help="Others take its runs when it is silent for so long.")
    ] = "30s"
    store: Annotated[str | None, flag_of("--store")] = None
    corpus: Annotated[str | None, flag_of("--corpus")] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class QueueOptions(CommonOptions):
    """Flags of the commands that look at the queue."""

    tenant: Annotated[str | None, Parameter(name="--tenant", metavar="NAME", help="Only runs of this tenant.")] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LimitOptions(CommonOptions):
    """Flags of the limits that a fleet shares."""

    usd: Annotated[str | None, Parameter(name="--usd", metavar="USD", help="US dollars, or none.")] = None
    tokens: Annotated[str | None, Parameter(name="--tokens", metavar="N", help="Tokens, or none.")] = None
    requests: Annotated[str | None, Parameter(name="--requests", metavar="N", help="Requests to models, or none.")] = (
        None
    )
    per: Annotated[str, Parameter(name="--per", metavar="PERIOD", help="day or month (of UTC), or total.")] = "day"
    tenant: Annotated[str | None, Parameter(name="--tenant", metavar="NAME", help="Only the runs of this tenant.")] = (
        None
    )
    key: Annotated[
        str,
        Parameter(
            name="--key",
            metavar="VENDOR",
            help="Only requests with one key: that of this machine for a vendor, or by its id, as the list has it.",
        ),
    ] = ""
    rate: Annotated[
        str | None,
        Parameter(name="--rate", metavar="RATE", help="With --key, how fast requests are sent: 5/s, 300/min, or none."),
    ] = None
    share: Annotated[
        int | None,
        Parameter(
            name="--share",
            metavar="N",
            help="With --tenant, how many times as much of the workers it gets as others: 1 to 1000.",
        ),
    ] = None


LIMIT = LimitOptions()
SUBMIT = SubmitOptions()
WORKER = WorkerOptions()
QUEUE = QueueOptions()
