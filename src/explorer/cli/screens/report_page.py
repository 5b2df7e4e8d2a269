"""A report on stdout."""

import sys
from urllib.parse import unquote

from explorer.cli.screens.output import emit
from explorer.cli.screens.sanitize import plain
from explorer.text.frontmatter import split_frontmatter

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

    page = Markdown(plain(split_frontmatter(markdown).body), hyperlinks=False)
    images = [token for block in page.parsed for token in block.children or [] if token.type == "image"]
    for token in images:
        token.content = _image_words(token.content, str(token.attrs.get("src", "")))
        token.type, token.tag, token.children = "text", "", None
    Console(highlight=False, emoji=False).print(page)


def _image_words(shows: str, path: str) -> str:
    """What stands for an image, which a terminal cannot show: what it shows, and where it is."""
    return f"[image: {', '.join(part for part in (shows, unquote(path)) if part)}]"
