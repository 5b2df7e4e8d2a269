"""Words to a run that another process works on: `steer` and `stop`."""

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.question import as_asked
from explorer.cli.runs_at_hand import run_at_hand
from explorer.cli.screens.output import emit_json, emit_page, say
from explorer.cli.settings.configuration import changes_runs, configured
from explorer.cli.settings.options import CommonOptions
from explorer.journal.control import APPLIED, ENDED, LOOK_EVERY_S, QUEUED, ControlKind, Delivery, deliver
from explorer.journal.listing import holder, is_running
from explorer.schema.errors import ConfigError, ExplorerError
from explorer.schema.setting import or_none, seconds

STOP_REASON = "stopped by the user"
RunName = Annotated[str, Parameter(help="A run's id, the beginning of one, or `latest`.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OrderOptions(CommonOptions):
    """Flags of the commands that speak to a running run."""

    wait: Annotated[
        str, Parameter(name="--wait", help="How long to wait until the run has heard it: 0, 10, 10s, 2m.")
    ] = "10"


ORDER = OrderOptions()


def steer(run: RunName, /, *words: str, options: OrderOptions = ORDER) -> int:
    """Say something to a running run; its orchestrator hears it at its next turn.

    Example: `explorer steer latest "Leave out anything before 2025"`
    """
    text = as_asked(" ".join(words))
    if not text:
        raise ConfigError("there is no message to send", hint='write: explorer steer latest "your message"')
    wait_s = _seconds(options.wait)
    with run_at_hand(configured(options, changes_runs).settings, run) as folder:
        return _steer(folder, text, wait_s, options)


def _steer(folder: Path, text: str, wait_s: float | None, options: OrderOptions) -> int:
    resume = f'explorer resume {folder.name} "your message"'
    if not is_running(folder):
        raise ConfigError(f"run {folder.name} is not running", hint=f"resume it with your message: {resume}")
    delivery = _give(folder, ControlKind.STEER, text, wait_s, options)
    if delivery.state == ENDED:
        raise ExplorerError(
            f"run {folder.name} ended before it read the message", hint=f"resume it with your message: {resume}"
        )
    return 0


def stop(
    run: RunName,
    /,
    *,
    now: Annotated[
        bool, Parameter(name="--now", help="End its process at once, with the engine's own report.")
    ] = False,
    options: OrderOptions = ORDER,
) -> int:
    """Ask a running run to write up what there is, and stop.

    The report is there within half a minute; with `--now` at once, as the engine writes it. Either way
    `explorer resume` continues later.

    Example: `explorer stop latest`
    """
    wait_s = _seconds(options.wait)
    with run_at_hand(configured(options, changes_runs).settings, run) as folder:
        if not is_running(folder):
            raise ConfigError(f"run {folder.name} is not running", hint=f"its state: explorer show {folder.name}")
        if now:
            return _end_process(folder, wait_s, options)
        _give(folder, ControlKind.STOP, STOP_REASON, wait_s, options)
    return 0


def _seconds(raw: str) -> float | None:
    try:
        return or_none(seconds)(raw)
    except ValueError as error:
        message = f"flag --wait: {raw[:80]!r} is not allowed"
        raise ConfigError(message, hint="allowed is a time like 0, 10, 10s or 2m") from error


def _give(folder: Path, kind: ControlKind, text: str, wait_s: float | None, options: OrderOptions) -> Delivery:
    """Leave an order and tell what becomes of it."""
    is_text = options.output_format == "text"
    delivery = asyncio.run(deliver(folder, kind, text, wait_s, lambda: emit_page(QUEUED) if is_text else None))
    if not is_text and not (delivery.state == ENDED and kind is ControlKind.STEER):
        emit_json(
            {"run_id": folder.name, "order": delivery.order, "kind": kind}
            | {"state": delivery.state, "record": delivery.record}
        )
    elif is_text:
        _print_delivery(delivery, kind, wait_s, options)
    return delivery


def _print_delivery(delivery: Delivery, kind: ControlKind, wait_s: float | None, options: OrderOptions) -> None:
    if delivery.state == APPLIED:
        emit_page(f"applied at record {delivery.record}")
    elif delivery.state == ENDED and kind is ControlKind.STOP:
        emit_page("the run ended by itself meanwhile")
    elif delivery.state == QUEUED and wait_s and not options.quiet:
        say(f"not applied within {wait_s:g} s; the run takes it at the next turn of any agent")


def _end_process(folder: Path, wait_s: float | None, options: OrderOptions) -> int:
    process = holder(folder)
    way = f"ask it to stop: explorer stop {folder.name}"
    if process is None:
        raise ConfigError(f"the process that works on {folder.name} cannot be found from here", hint=way)
    try:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    except PermissionError as error:
        raise ConfigError(f"process {process} is another user's", hint=way) from error
    return _tell_end(folder, process, wait_s, options)


def _tell_end(folder: Path, process: int, wait_s: float | None, options: OrderOptions) -> int:
    if options.output_format == "text":
        emit_page(f"asked process {process} to end")
    if wait_s != 0 and not asyncio.run(_has_ended(folder, wait_s)):
        message = f"process {process} is still at work"
        raise ExplorerError(message, hint=f"wait, or end it the hard way: kill -KILL {process}")
    state = QUEUED if wait_s == 0 else ENDED
    if options.output_format != "text":
        emit_json({"run_id": folder.name, "process": process, "state": state})
    elif state == ENDED:
        emit_page(ENDED)
    if not options.quiet:
        say(f"  → continue: explorer resume {folder.name}")
    return 0


async def _has_ended(folder: Path, wait_s: float | None) -> bool:
    try:
        async with asyncio.timeout(wait_s):
            while is_running(folder):  # noqa: ASYNC110 - another process ends, which no event of ours tells
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        return False
    return True
