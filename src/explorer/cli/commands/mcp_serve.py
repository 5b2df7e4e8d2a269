"""The commands `mcp serve` and `mcp token`: explorer as a server of the Model Context Protocol."""

import asyncio
from dataclasses import replace
from importlib.util import find_spec

from pydantic import SecretStr

from explorer.cli.screens.output import emit, say
from explorer.cli.secrecy import keep_secret
from explorer.cli.serving import MAX_RUNS, MIN_TOKEN_CHARS, WAIT, RunsToCome, ServerEnding, check_count, read_flag
from explorer.cli.settings.configuration import Configuration, configured, looks_at_runs
from explorer.cli.settings.options import COMMON, MCP_SERVE, CommonOptions, McpServeOptions
from explorer.run.served import ServedRuns, ServerPlan
from explorer.schema.errors import ConfigError
from explorer.schema.setting import MONEY_OR_NONE
from explorer.schema.settings import Settings
from explorer.workspace.user_key import open_key

PURPOSE = "mcp token"
PACKAGE = "mcp"
MCP_ENDED = "the MCP server ended"


def serve(*, options: McpServeOptions = MCP_SERVE) -> int:
    """Serve explorations to other agents, until the client closes stdin or a signal ends the server."""
    if find_spec(PACKAGE) is None:
        raise ConfigError("the package mcp is not installed", hint="pip install 'explorer[mcp]'")
    check_count("--max-runs", options.max_runs, MAX_RUNS)
    if options.output is not None:
        raise ConfigError("--output is for one run", hint="clients read reports with wait_for_report")
    read_flag("--approval-wait", options.approval_wait, WAIT)
    total_usd = read_flag("--max-total-cost", options.max_total_cost, MONEY_OR_NONE)
    to_come = RunsToCome.of(options)
    if options.http:
        to_come = replace(to_come, configuration=_with_token(to_come.configuration))
    return asyncio.run(_serve(to_come.plan(options.max_runs, MCP_ENDED, options.approval_wait, total_usd), options))


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
    return ended.last_resort()
