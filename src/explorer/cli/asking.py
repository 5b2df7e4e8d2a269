"""The commands that run something: a question, `resume`, `demo`."""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.closing import Closing
from explorer.cli.configuration import Configuration
from explorer.cli.logs import show_logs
from explorer.cli.options import RUN, AskOptions, RunOptions
from explorer.cli.output import emit_json
from explorer.cli.question import as_asked
from explorer.cli.reading import configured
from explorer.cli.screen import Lines, Quiet, Screen
from explorer.cli.session import Session, Work
from explorer.errors import ConfigError, NotFoundError
from explorer.events import Record
from explorer.run import Extras, RunResult, start
from explorer.run import resume as resume_run
from explorer.runs import LATEST, find_run, read_records
from explorer.settings import Settings

SAMPLE_QUESTION = "What was notable on Hacker News on the sample day, and what did people argue about?"


def ask_question(question: str, options: AskOptions) -> int:
    """Explore a question, or go on with the latest run."""
    if not options.go_on:
        return _start(question, configured(options), options)
    if options.files:
        raise ConfigError("files are given when a run starts, not when it goes on", hint="leave out --file, or -c")
    return _resume(LATEST, question, options)


def resume(
    run: Annotated[str, Parameter(help="A run's id, the beginning of one, or `latest`.")] = LATEST,
    /,
    *message: Annotated[str, Parameter(help="A follow-up question, or words for an unfinished run.")],
    options: RunOptions = RUN,
) -> int:
    """Go on with a run: an unfinished one where it stopped, a finished one with a follow-up.

    Everything the run found before is kept; nothing that is done is paid for again.
    """
    if len(run.split()) > 1:
        raise ConfigError("a run's name stands first, and has no spaces", hint='write: explorer resume latest "..."')
    return _resume(run, as_asked(" ".join(message)), options)


def demo(
    *question: Annotated[str, Parameter(help="Another question than the sample one.")],
    options: RunOptions = RUN,
) -> int:
    """Explore the bundled, invented sample day: no key, no network, no cost.

    The very same engine as always: an orchestrator, helpers, files, a cited report. Only the pages are invented
    and the model is a rule-based stand-in.
    """
    configuration = configured(options if options.model else replace(options, model=("offline",)))
    settings = configuration.settings.model_copy(update={"is_sample": True})
    words = as_asked(" ".join(question)) or SAMPLE_QUESTION
    return _start(words, replace(configuration, settings=settings), options)


def _start(question: str, configuration: Configuration, options: RunOptions) -> int:
    files = _files(options.files) if isinstance(options, AskOptions) else ()
    settings = configuration.settings.model_copy(update={"files": files})
    _check_before_paying(options)

    async def work(extras: Extras) -> RunResult:
        return await start(question, settings, extras)

    return _drive(work, _session(options), settings, options)


def _resume(name: str, message: str, options: RunOptions) -> int:
    settings = configured(options).settings
    _check_before_paying(options)
    folder = find_run(settings.workspace, name)
    session = _session(options)
    session.catch_up(read_records(folder))

    async def work(extras: Extras) -> RunResult:
        return await resume_run(folder, settings, message, extras)

    return _drive(work, session, settings, options)


def _drive(work: Work, session: Session, settings: Settings, options: RunOptions) -> int:
    show_logs(options.verbose)
    ending = asyncio.run(session.drive(work))
    return Closing(options, settings.workspace).tell(ending)


def _session(options: RunOptions) -> Session:
    tap = _print_record if options.output_format == "stream-json" else None
    return Session(_screen(options), tap)


def _screen(options: RunOptions) -> Screen:
    if options.quiet:
        return Quiet()
    is_terminal = sys.stderr.isatty() and os.environ.get("TERM", "") not in {"", "dumb"}
    # Log lines and a view that redraws itself would tear each other apart.
    if not is_terminal or options.verbose or options.output_format == "stream-json":
        return Lines()
    from rich.console import Console  # noqa: PLC0415 - the view's stack is slow to import, and often not needed

    from explorer.cli.live import LiveView  # noqa: PLC0415 - the same

    return LiveView(Console(stderr=True, highlight=False, markup=False, emoji=False))


def _print_record(record: Record) -> None:
    head = {"v": record.v, "seq": record.seq, "at": record.at.isoformat()}
    emit_json(head | record.event.model_dump(mode="json"))


def _files(names: Sequence[str]) -> tuple[Path, ...]:
    paths = tuple(Path(name).expanduser() for name in names)
    for path in paths:
        if not path.exists():
            raise NotFoundError(f"there is no file {path}", hint="check the path given to --file")
        if not path.is_file() or not os.access(path, os.R_OK):
            raise ConfigError(f"{path} is not a readable file", hint="give a text file to --file")
    return paths


def _check_before_paying(options: RunOptions) -> None:
    """Find now what would otherwise fail after the money is spent."""
    if options.output is not None:
        target = Path(options.output).expanduser()
        if target.is_dir() or not os.access(target.parent, os.W_OK):
            raise ConfigError(f"cannot write the report to {target}", hint="give a file in a folder that exists")
