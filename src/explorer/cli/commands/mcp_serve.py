"""The commands `mcp serve` and `mcp token`: explorer as a server of the Model Context Protocol."""

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, cast

from pydantic import SecretStr

from explorer.cli.commands.catalog import check_team, named_tools
from explorer.cli.commands.trust import settings_to_run
from explorer.cli.launch import LastResort, settings_to_continue
from explorer.cli.screens.output import HUNG_UP, INTERRUPTED, TERMINATED, emit, say
from explorer.cli.secrecy import keep_secret
from explorer.cli.session import crash_point
from explorer.cli.settings.configuration import Configuration, configured, looks_at_runs
from explorer.cli.settings.options import COMMON, MCP_SERVE, CommonOptions, McpServeOptions
from explorer.cli.telemetry import show_logs, tracing_to
from explorer.run.hooks import RunHooks
from explorer.run.served import ServedRuns, ServerPlan
from explorer.schema.errors import ConfigError
from explorer.schema.setting import MONEY_OR_NONE, ValueFormat, seconds
from explorer.schema.settings import Settings
from explorer.schema.tool import Tool
from explorer.workspace.user_key import open_key

PURPOSE = "mcp token"
MIN_TOKEN_CHARS = 16
MAX_RUNS = 32
WAIT = ValueFormat(seconds, "a time: 90s, 10m, 2h; 0: calls that a rule asks about are refused")
PACKAGE = "mcp"
MCP_ENDED = "the MCP server ended"


def serve(*, options: McpServeOptions = MCP_SERVE) -> int:
    """Serve explorations to other agents, until the client closes stdin or a signal ends the server."""
    if find_spec(PACKAGE) is None:
        raise ConfigError("the package mcp is not installed", hint="pip install 'explorer[mcp]'")
    if not 1 <= options.max_runs <= MAX_RUNS:
        raise ConfigError(f"--max-runs {options.max_runs} is not allowed", hint=f"give a number from 1 to {MAX_RUNS}")
    if options.output is not None:
        raise ConfigError("--output is for one run", hint="clients read reports with wait_for_report")
    wait_s = read_flag("--approval-wait", options.approval_wait, WAIT)
    total_usd = read_flag("--max-total-cost", options.max_total_cost, MONEY_OR_NONE)
    configuration = settings_to_run(options)
    tools = named_tools(options, configuration.settings)
    check_team(configuration.settings, tools)
    show_logs(options.verbose)
    if options.http:
        configuration = _with_token(configuration)
    plan = ServerPlan(
        configuration.settings,
        lambda: _hooks(configuration, tools),
        lambda folder: settings_to_continue(folder, configuration),
        options.max_runs,
        MCP_ENDED,
        wait_s or 0.0,
        lambda: tracing_to(configuration.settings, say),
        total_usd,
    )
    return asyncio.run(_serve(plan, options))


def read_flag(flag: str, raw: str, form: ValueFormat) -> float | None:
    """Return the value of a flag.

    Raises:
        ConfigError: Its text is not allowed.
    """
    try:
        return cast("float | None", form.parse(raw))
    except ValueError as error:
        raise ConfigError(f"{flag} {raw!r} is not allowed", hint=f"give {form.allowed}") from error


def token(*, options: CommonOptions = COMMON) -> int:
    """Print the token that clients of the server over HTTP send."""
    settings = configured(options, looks_at_runs).settings
    if settings.secrets.mcp_token.get_secret_value():
        say("EXPLORER_MCP_TOKEN is set, and its value is the token")
        return 0
    emit(token_of(settings))
    return 0


def token_of(settings: Settings) -> str:
    """Return the token of the server: as it is set, or made with the user's key.

    Raises:
        ConfigError: It is too short, or there is no key.
    """
    given = settings.secrets.mcp_token.get_secret_value()
    if given:
        if len(given) < MIN_TOKEN_CHARS:
            raise ConfigError(
                f"EXPLORER_MCP_TOKEN has fewer than {MIN_TOKEN_CHARS} characters", hint="set a longer one"
            )
        return given
    key = open_key(settings.state_dir)
    if not key.is_there:
        raise ConfigError(f"there is no token: {key.problem}", hint="set EXPLORER_MCP_TOKEN")
    return key.mark(PURPOSE, b"")


def _hooks(configuration: Configuration, tools: list[Tool[Any]]) -> RunHooks:
    return RunHooks(tools=tools, origins=configuration.origins, on_checkpoint=crash_point())


def _with_token(configuration: Configuration) -> Configuration:
    """Return the configuration of a server over HTTP, with its token, which no log shows."""
    settings = configuration.settings
    secrets = settings.secrets.model_copy(update={"mcp_token": SecretStr(token_of(settings))})
    settings = settings.model_copy(update={"secrets": secrets})
    keep_secret(settings, {})
    return replace(configuration, settings=settings)


async def _serve(plan: ServerPlan, options: McpServeOptions) -> int:
    from explorer.mcp_server.server import ExplorationServer  # noqa: PLC0415 - the package is an extra
    from explorer.mcp_server.transports import HttpTransport, StdioTransport  # noqa: PLC0415 - the same

    if options.http:
        transport = HttpTransport(options.port, plan.settings.secrets.mcp_token.get_secret_value())
        place = f"{transport.url}, with the token of: explorer mcp token"
    else:
        transport, place = StdioTransport(), "stdin and stdout"
    runs = ServedRuns(plan)
    if not options.quiet:
        say(f"MCP server on {place}\n  runs in {plan.settings.workspace}, at most {options.max_runs} at a time")
        if plan.max_total_usd is not None:
            say(f"  at most ${plan.max_total_usd:.2f} a day for all of them, ${runs.total.spent_usd:.2f} spent today")
    ended = ServerEnding(transport.end)
    with ended.by_signals():
        try:
            await transport.serve(ExplorationServer(runs).protocol())
        finally:
            await runs.close()
    # All is on disk; a thread that hangs must not keep the process.
    LastResort().begin(ended.code)
    return ended.code


@dataclass
class ServerEnding:
    """How the server was ended: by the client, or by a signal."""

    end: Callable[[], None]
    """Ends the transport."""
    code: int = 0
    """The exit code."""

    @contextmanager
    def by_signals(self) -> Generator[None]:
        """End the transport at SIGINT, SIGTERM and SIGHUP."""
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
