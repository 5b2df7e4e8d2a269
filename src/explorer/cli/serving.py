"""What the commands share that start many runs until a signal ends them: `serve`, `mcp serve`, `worker`."""

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from explorer.cli.commands.catalog import check_team, named_tools
from explorer.cli.commands.trust import settings_to_run
from explorer.cli.launch import LastResort, settings_to_continue
from explorer.cli.screens.output import HUNG_UP, INTERRUPTED, TERMINATED, say
from explorer.cli.session import crash_point
from explorer.cli.settings.configuration import Configuration
from explorer.cli.settings.options import RunOptions
from explorer.cli.telemetry import show_logs, tracing_to
from explorer.run.hooks import RunHooks
from explorer.run.served import ServerPlan
from explorer.schema.errors import ConfigError
from explorer.schema.setting import ValueFormat, seconds
from explorer.schema.settings import Settings
from explorer.schema.tool import Tool

MAX_RUNS = 32
MIN_TOKEN_CHARS = 16
WAIT = ValueFormat(seconds, "a time: 90s, 10m, 2h; 0: calls that a rule asks about are refused")


def check_count(flag: str, count: int, most: int) -> None:
    """Check the number of runs at the same time.

    Raises:
        ConfigError: It is not allowed.
    """
    if not 1 <= count <= most:
        raise ConfigError(f"{flag} {count} is not allowed", hint=f"give a number from 1 to {most}")


def read_flag(flag: str, raw: str, form: ValueFormat) -> float | None:
    """Return the value of a flag.

    Raises:
        ConfigError: Its text is not allowed.
    """
    try:
        return cast("float | None", form.parse(raw))
    except ValueError as error:
        raise ConfigError(f"{flag} {raw!r} is not allowed", hint=f"give {form.allowed}") from error


@dataclass(frozen=True)
class RunsToCome:
    """The configuration of all runs that a command starts, and the user's tools for them."""

    configuration: Configuration
    tools: list[Tool[Any]]

    @classmethod
    def of(cls, options: RunOptions, configuration: Configuration | None = None) -> "RunsToCome":
        """Return what flags ask for, checked before anything starts; show the log from now on.

        Raises:
            ConfigError: A setting, a tool or a role cannot be used.
        """
        configuration = configuration or settings_to_run(options)
        tools = named_tools(options, configuration.settings)
        check_team(configuration.settings, tools)
        show_logs(options.verbose)
        return cls(configuration, tools)

    def hooks(self) -> RunHooks:
        """Return the hooks of one run."""
        return RunHooks(tools=self.tools, origins=self.configuration.origins, on_checkpoint=crash_point())

    def settings_to_resume(self, folder: Path) -> Settings:
        """Return the settings that a run is continued with."""
        return settings_to_continue(folder, self.configuration)

    def plan(self, max_runs: int, ended_because: str, approval_wait: str, total_usd: float | None = None) -> ServerPlan:
        """Return the plan of a server.

        Args:
            max_runs: Runs at work at the same time.
            ended_because: Why runs stop when the server ends.
            approval_wait: The value of `--approval-wait`.
            total_usd: What all runs together may cost in a day; None: there is no such limit.
        """
        return ServerPlan(
            self.configuration.settings,
            self.hooks,
            self.settings_to_resume,
            max_runs,
            ended_because,
            read_flag("--approval-wait", approval_wait, WAIT) or 0.0,
            lambda: tracing_to(self.configuration.settings, say),
            total_usd,
        )


@dataclass
class ServerEnding:
    """How a server was ended: by itself, such as by its client, or by a signal."""

    end: Callable[[], None]
    """Ends the server."""
    code: int = 0
    """The exit code."""

    @contextmanager
    def by_signals(self) -> Generator[None]:
        """End the server at SIGINT, SIGTERM and SIGHUP."""
        loop = asyncio.get_running_loop()
        codes = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup: it is to outlive its terminal
            codes[signal.SIGHUP] = HUNG_UP

        def note(code: int) -> None:
            self.code = self.code or code
            self.end()

        with suppress(NotImplementedError):
            for number, code in codes.items():
                loop.add_signal_handler(number, note, code)
        try:
            yield
        finally:
            with suppress(NotImplementedError):
                for number in codes:
                    loop.remove_signal_handler(number)

    def last_resort(self) -> int:
        """End the process soon, because all is on disk and a thread that hangs must not keep it; return the code."""
        LastResort().begin(self.code)
        return self.code
