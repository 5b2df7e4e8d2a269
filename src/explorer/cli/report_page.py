"""A report on stdout."""

import sys

from explorer.cli.output import emit
from explorer.cli.plain import plain

REPORT = "report.md"


def print_report(markdown: str) -> None:
    """Write a report to stdout: rendered for a terminal, as it is for everything else."""
    if not markdown:
        return
    if not sys.stdout.isatty():
        emit(markdown.rstrip("\n"))
        return
    from rich.console import Console  # noqa: PLC0415 - slow to import, and only terminals need it
    from rich.markdown import Markdown  # noqa: PLC0415 - the same

    Console(highlight=False, emoji=False).print(Markdown(plain(_body(markdown)), hyperlinks=False))


def _body(markdown: str) -> str:
    """The report without its frontmatter, which is for programs."""
    if not markdown.startswith("---\n"):
        return markdown
    _, mark, body = markdown[4:].partition("\n---\n")
    return body if mark else markdown
