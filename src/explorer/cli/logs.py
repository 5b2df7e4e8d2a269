"""The log, for `-v`: the library is silent until the command line turns it on."""

import sys

from loguru import logger

LEVELS = {1: "INFO"}
"""By the number of `-v`; more of them show everything."""


def show_logs(verbose: int) -> None:
    """Send the log to stderr when asked."""
    if not verbose:
        return
    logger.remove()
    # Without `diagnose`: it prints the values of variables, and keys are among them.
    logger.add(
        sys.stderr,
        level=LEVELS.get(verbose, "DEBUG"),
        format="{time:HH:mm:ss} {level} {name}: {message}",
        diagnose=False,
        backtrace=False,
    )
    logger.enable("explorer")
