"""The command `grep`: find lines in what runs found."""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import regex
from cyclopts import Parameter

from explorer.cli.runs_at_hand import run_at_hand
from explorer.cli.screens.output import emit_json, emit_page
from explorer.cli.settings.configuration import configured, looks_at_runs
from explorer.cli.settings.options import COMMON, CommonOptions
from explorer.journal.listing import is_run
from explorer.observe.formatting import one_line
from explorer.reports.earlier import PastRun
from explorer.schema.errors import ConfigError, NotFoundError, ToolError
from explorer.schema.settings import Settings

SECONDS_A_FILE = 5.0
"""A pattern may backtrack without end; `re` could not be stopped, `regex` can."""
MAX_REPEATS = 5_000
"""Limit for the product of a pattern's `{n}`: `regex` unrolls them, and `a{1000000000}` would take all memory."""
MAX_LINE_CHARS = 20_000
SHOWN_CHARS = 400
NOT_FOUND = 1


@dataclass(frozen=True)
class Match:
    """A line that fits."""

    run_id: str
    path: str
    line: int
    text: str


def grep(  # noqa: PLR0913 - flags
    pattern: Annotated[str, Parameter(help="A regular expression, or plain text with --fixed.")],
    /,
    *run: Annotated[str, Parameter(help="Only in these runs: ids, beginnings of ids, or `latest`.")],
    sources: Annotated[
        bool, Parameter(name="--sources", help="Also in the stored sources: pages, threads, search hits.")
    ] = False,
    ignore_case: Annotated[bool, Parameter(name=["-i", "--ignore-case"], help="Upper and lower case alike.")] = False,
    names_only: Annotated[
        bool, Parameter(name=["-l", "--files-with-matches"], help="Only the files, each once.")
    ] = False,
    fixed: Annotated[bool, Parameter(name=["-F", "--fixed"], help="The pattern is plain text.")] = False,
    options: CommonOptions = COMMON,
) -> int:
    """Find lines in the reports and findings of runs, the newest run last.

    Ends with 0 when something is found, and with 1 when nothing is.

    Example: `explorer grep -i "power cut" latest --sources`
    """
    wanted = _compiled(pattern, is_fixed=fixed, ignores_case=ignore_case)
    settings = configured(options, looks_at_runs).settings
    with ExitStack() as copies:
        matches = (
            match for past in _runs(settings, run, copies) for match in _matches(past, wanted, with_sources=sources)
        )
        return _show(_once_a_file(matches) if names_only else matches, wanted, options, names_only=names_only)


def _show(shown: Iterator[Match], wanted: "regex.Pattern[str]", options: CommonOptions, *, names_only: bool) -> int:
    if options.output_format == "json":
        facts = [_facts(match, names_only=names_only) for match in shown]
        emit_json(facts)
        return 0 if facts else NOT_FOUND
    found = NOT_FOUND
    for match in shown:
        found = 0
        if options.output_format == "stream-json":
            emit_json(_facts(match, names_only=names_only))
        else:
            _print(match, wanted, names_only=names_only)
    return found


def _compiled(pattern: str, *, is_fixed: bool, ignores_case: bool) -> "regex.Pattern[str]":
    counts = [] if is_fixed else regex.findall(r"\{(\d+)", pattern)
    if math.prod(max(1, int(count[:9])) for count in counts) > MAX_REPEATS:
        raise ConfigError("that pattern repeats too often", hint="use smaller counts in {}")
    try:
        return regex.compile(regex.escape(pattern) if is_fixed else pattern, regex.IGNORECASE if ignores_case else 0)
    except regex.error as error:
        raise ConfigError(
            f"{one_line(pattern, 200)!r} is not a regular expression: {error}", hint="for plain text, add --fixed"
        ) from error


def _runs(settings: Settings, names: Sequence[str], copies: ExitStack) -> Iterator[PastRun]:
    """Return the runs named, also those of the fleet, or all of the workspace, oldest first.

    One whose journal is damaged can still be read.
    """
    workspace = settings.workspace
    if names:
        folders = [copies.enter_context(run_at_hand(settings, name)) for name in dict.fromkeys(names)]
    else:
        entries: list[Path] = sorted(workspace.iterdir()) if workspace.is_dir() else []
        folders = [folder for folder in entries if is_run(folder)]
    if not folders:
        raise NotFoundError(f"there are no runs in {workspace}", hint='start one: explorer "your question"')
    return (PastRun.of(folder) or PastRun(folder.name, "", "", is_sample=False, folder=folder) for folder in folders)


def _matches(run: PastRun, wanted: "regex.Pattern[str]", *, with_sources: bool) -> Iterator[Match]:
    for path in (*run.findings(), *(run.sources() if with_sources else [])):
        try:
            lines = run.read(path).splitlines()
        except (ToolError, OSError):
            continue  # no text, or just removed
        deadline = time.monotonic() + SECONDS_A_FILE
        for number, line in enumerate(lines, 1):
            if _search(wanted, line[:MAX_LINE_CHARS], deadline) is not None:
                yield Match(run.run_id, path, number, line)


def _search(wanted: "regex.Pattern[str]", line: str, deadline: float) -> "regex.Match[str] | None":
    try:
        return wanted.search(line, timeout=max(0.001, deadline - time.monotonic()))
    except TimeoutError as error:
        raise ConfigError(
            "that pattern takes too long", hint="use a plainer one, or plain text with --fixed"
        ) from error


def _once_a_file(matches: Iterator[Match]) -> Iterator[Match]:
    last: tuple[str, str] | None = None
    for match in matches:
        if last != (match.run_id, match.path):
            last = (match.run_id, match.path)
            yield match


def _facts(match: Match, *, names_only: bool) -> dict[str, object]:
    file: dict[str, object] = {"run_id": match.run_id, "path": match.path}
    return file if names_only else file | {"line": match.line, "text": match.text}


def _print(match: Match, wanted: "regex.Pattern[str]", *, names_only: bool) -> None:
    place = one_line(f"{match.run_id}/{match.path}")
    text = one_line(match.text)
    found = None if names_only else _search(wanted, text[:MAX_LINE_CHARS], time.monotonic() + SECONDS_A_FILE)
    start, end = found.span() if found is not None else (0, 0)
    cut = max(0, min(start - SHOWN_CHARS // 4, len(text) - SHOWN_CHARS))
    shown = f"{'…' if cut else ''}{text[cut : cut + SHOWN_CHARS]}{'…' if cut + SHOWN_CHARS < len(text) else ''}"
    if not sys.stdout.isatty():
        emit_page(place if names_only else f"{place}:{match.line}: {shown}")
        return
    from rich.console import Console  # noqa: PLC0415 - slow to import, and only terminals need it
    from rich.text import Text  # noqa: PLC0415 - the same

    line = Text(place, style="magenta")
    if not names_only:
        marked = Text(shown)
        marked.stylize("bold red", start - cut + bool(cut), end - cut + bool(cut))
        line = Text.assemble(line, ":", (str(match.line), "green"), ": ", marked)
    Console(highlight=False, emoji=False).print(line, soft_wrap=True)
