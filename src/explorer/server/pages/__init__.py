"""The pages, each a file of routes."""

from explorer.server.pages import (
    actions,
    api,
    api_events,
    api_evidence,
    api_orders,
    compare,
    evidence,
    files,
    run,
    runs,
    timeline,
)

HTML_PAGES = tuple(one.router for one in (runs, run, timeline, evidence, files, compare, actions))
JSON_PAGES = tuple(one.router for one in (api, api_events, api_evidence, api_orders))
PAGES = (*HTML_PAGES, *JSON_PAGES)
"""All of them, in the order in which they are asked."""
