"""The flags of the web page."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.settings.options import RunOptions, flag_of

AUTO, NO_TOKEN = "auto", "none"
"""Values of `--token` that are no token."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServeOptions(RunOptions):
    """Flags of the server of the web page."""

    corpus: Annotated[str | None, flag_of("--corpus")] = None
    host: Annotated[
        str,
        Parameter(name="--host", metavar="ADDRESS", help="Address to listen on."),
    ] = "127.0.0.1"
    port: Annotated[int, Parameter(name="--port", metavar="N", help="Port; 0: a free one.")] = 8777
    open_browser: Annotated[bool, Parameter(name="--open", negative="", help="Open the page in your browser.")] = False
    token: Annotated[
        str,
        Parameter(
            name="--token",
            metavar="WORD",
            help="What browsers must show, at least 16 characters; `auto`: one of this machine's own; `none`: nothing, "
            "on this machine's own address alone.",
        ),
    ] = AUTO
    approval_wait: Annotated[
        str,
        Parameter(
            name="--approval-wait",
            metavar="TIME",
            help="How long a call that an approval rule asks about waits for you on its run's page; 0: it is refused.",
        ),
    ] = "10m"
    max_runs: Annotated[int, Parameter(name="--max-runs", metavar="N", help="Runs at work at the same time.")] = 2


SERVE = ServeOptions()
