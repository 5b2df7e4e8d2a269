"""Server-sent events for pages: what changed, each part with the element that it replaces."""

LIVE = "text/event-stream"
KEEP_ALIVE_S = 15.0
"""Seconds after which an open stream is sent a comment."""


def event(number: object, html: str) -> str:
    """Return an event with its id."""
    lines = "".join(f"data: {line}\n" for line in html.splitlines())
    return f"id: {number}\n{lines}\n"


def replacing(element: str, html: str) -> str:
    """Return HTML that replaces an element of a page; folds, focus and what is typed stay."""
    return f'<hx-partial hx-target="#{element}" hx-swap="outerMorph">{html}</hx-partial>\n'
