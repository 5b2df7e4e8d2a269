"""One run driven from the terminal: its view, its signals, its end."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

from explorer.agents.user_stop import REPORT_S
from explorer.cli.screens.output import HUNG_UP, INTERRUPTED, TERMINATED
from explorer.cli.screens.screen import Screen
from explorer.journal.journal import Observe, OnCheckpoint
from explorer.observe.run_view import RunView
from explorer.run.hooks import RunHooks, StopSignal
from explorer.run.run import RunResult
from explorer.schema.approvals import Approve
from explorer.schema.errors import ExplorerError
from explorer.schema.events import JournalRecord

WIND_DOWN_REASON = "interrupted by the user"
STOP_REASONS = {
    INTERRUPTED: WIND_DOWN_REASON,
    TERMINATED: "ended by SIGTERM",
    HUNG_UP: "its terminal was closed (SIGHUP)",
}
"""Reasons by exit code."""
WIND_DOWN_WORDS = (
    f"stopping: helpers are cut off, the report comes within {REPORT_S:g} s; press Ctrl-C again to stop at once, "
    "with the engine's own report"
)
COUNTDOWN_S = (20, 10, 5)
"""How long before the report's latest time people are told of it again."""

PROGRESS_S = 2.0
"""Between two words about one preparation."""

Work = Callable[[RunHooks], Awaitable[RunResult]]


@dataclass(frozen=True)
class SessionEnd:
    """The end of a session: exactly one of `result`, `error` and `interrupted` is set."""

    view: RunView
    result: RunResult | None = None
    error: ExplorerError | None = None
    interrupted: int | None = None
    """The exit code, when a signal stopped the run at once."""


@dataclass
class Session:
    """One run and the screen it is shown on."""

    screen: Screen
    tap: Observe | None = None
    """Is given every record, e.g. to print it."""
    tap_past: Callable[[Sequence[JournalRecord]], None] = lambda _records: None
    """Is given the records of earlier sessions of a resumed run."""
    on_record: Callable[[], AbstractAsyncContextManager[object]] = nullcontext
    """What is open while the work is done, e.g. what sends spans of it."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where each setting was set, by its name."""
    view: RunView = field(default_factory=RunView)
    stop: StopSignal = field(default_factory=StopSignal)
    approve: Approve | None = None
    """Asks the user about calls; None: nobody is at a terminal."""
    last_resort: Callable[[int], None] = lambda _code: None
    """Called when the run is stopped at once, to see that the process ends though something in it hangs."""
    interrupts: int = 0
    code: int | None = None
    countdown: list[asyncio.TimerHandle] = field(default_factory=list[asyncio.TimerHandle])
    shown_at: float = 0.0
    """When progress was last told."""

    def catch_up(self, records: Sequence[JournalRecord]) -> None:
        """Take in what happened in earlier sessions of the run."""
        for record in records:
            self.view.apply(record)
        self.tap_past(records)

    async def drive(self, work: Work) -> SessionEnd:
        """Do the work while showing it; one signal asks for the report, a second one stops the work."""
        try:
            with self._signals(), self.screen.shown(self.view):
                async with self.on_record():
                    return await self._work_with_screen(work)
        except asyncio.CancelledError:
            if self.code is None:
                raise
            return SessionEnd(self.view, interrupted=self.code)

    async def _work_with_screen(self, work: Work) -> SessionEnd:
        async with asyncio.TaskGroup() as group:
            ticker = group.create_task(self.screen.keep_fresh())
            try:
                hooks = RunHooks(
                    catch_up=self.catch_up,
                    observe=self._observe,
                    stop=self.stop,
                    on_checkpoint=crash_point(),
                    progress=self._print_progress,
                    origins=self.origins,
                    approve=self.approve,
                )
                return SessionEnd(self.view, result=await work(hooks))
            except ExplorerError as error:
                # Inside the group: leaving it, the error would come out wrapped.
                return SessionEnd(self.view, error=error)
            finally:
                ticker.cancel()

    def _print_progress(self, words: str) -> None:
        """Print how far a long preparation is, at most every `PROGRESS_S`."""
        now = time.monotonic()
        if now - self.shown_at >= PROGRESS_S:
            self.shown_at = now
            self.screen.say(words)

    def _observe(self, record: JournalRecord) -> None:
        if record.seq > self.view.seq:
            self.screen.observe(record, self.view)
            self.view.apply(record)
        if self.tap is not None:
            self.tap(record)

    def _count_down(self, loop: asyncio.AbstractEventLoop, left_s: int) -> asyncio.TimerHandle:
        words = f"stopping: the report comes within {left_s} s"
        return loop.call_later(REPORT_S - left_s, self.screen.say, words)

    def _stop_counting(self) -> None:
        for handle in self.countdown:
            handle.cancel()

    @contextmanager
    def _signals(self) -> Generator[None]:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()

        def stop_at_once(code: int) -> None:
            if self.code is not None:
                return
            self.code = code
            self.last_resort(code)
            # Agents take a moment to hear of the end; they must not take it for a winding down.
            self.stop.stop_at_once(STOP_REASONS[code])
            task.cancel()

        def interrupt() -> None:
            self.interrupts += 1
            if self.interrupts > 1:
                stop_at_once(INTERRUPTED)
            else:
                self.stop.wind_down(WIND_DOWN_REASON)
                self.screen.say(WIND_DOWN_WORDS)
                self.countdown += [self._count_down(loop, left_s) for left_s in COUNTDOWN_S]

        at_once = {signal.SIGTERM: TERMINATED}
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup: it is to outlive its terminal
            at_once[signal.SIGHUP] = HUNG_UP
        # Where the loop takes no signals, Ctrl-C stays the interpreter's KeyboardInterrupt.
        with suppress(NotImplementedError):
            loop.add_signal_handler(signal.SIGINT, interrupt)
            for number, code in at_once.items():
                loop.add_signal_handler(number, stop_at_once, code)
        try:
            yield
        finally:
            self._stop_counting()
            with suppress(NotImplementedError):
                for number in (signal.SIGINT, *at_once):
                    loop.remove_signal_handler(number)


def crash_point() -> OnCheckpoint | None:
    """Return where a test wants the process to end; users' builds lack the module, and the variable means nothing."""
    wanted = os.environ.get("EXPLORER_CRASH", "")
    if not wanted:
        return None
    try:
        from explorer.journal.crash_points import crash_at  # noqa: PLC0415 - only there in test builds
    except ImportError:
        return None
    return crash_at(wanted)
