"""The command `doctor`: what is wrong with this machine or with one run (`run_check.py`), and what fixes it."""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from cyclopts import Parameter

from explorer.agents.roles import PromptLoader
from explorer.cli.commands.fleet_check import check_fleet
from explorer.cli.commands.mcp_look import check_servers
from explorer.cli.commands.probes import CheckResult, probe_services
from explorer.cli.commands.run_check import check_run
from explorer.cli.commands.window_check import check_windows
from explorer.cli.runs_at_hand import COPIES, in_queue, run_at_hand
from explorer.cli.screens.output import emit_json, emit_page
from explorer.cli.settings.configuration import Configuration, Unknown, inspected
from explorer.cli.settings.options import MODEL, CommonOptions, ModelOptions
from explorer.documents.parsing.document import ConfinementReport
from explorer.documents.parsing.parser import Parser
from explorer.llm.clients import Clients
from explorer.llm.models import AUTO, OFFLINE, ModelRef, parse_model
from explorer.llm.profiles import ModelProbe, ModelProfile, forget_profiles, store_profile, stored_profiles
from explorer.llm.vendors import ConfiguredVendor
from explorer.network.client import GuardedClient, HttpRequest
from explorer.network.exchange import ExchangeError
from explorer.network.guard import Guard
from explorer.observe.formatting import counted, one_line
from explorer.run.extensions import Extensions, Point, installed_extensions
from explorer.run.resources import choose_shell, shell_set_by
from explorer.run.settings_parts import model_setup, search_setup, vendor_of
from explorer.run.team import choose_models, load_roles, role_origins, with_servers
from explorer.sandbox.confinement import SandboxTier
from explorer.sandbox.control_group import is_available
from explorer.sandbox.selection import Sandbox
from explorer.schema.errors import ConfigError, ExplorerError, StorageError, ToolError
from explorer.schema.settings import Settings
from explorer.schema.version import __version__
from explorer.sources.http.caller import Caller
from explorer.sources.search.selection import plan_search

OLDEST_PYTHON = (3, 11)
LEAST_FREE_BYTES = 100 * 1024**2
ENOUGH_FREE_BYTES = 1024**3
NAME_CHARS = 16
UNSET = "unset it, or take it out of .env; all names: explorer config show"


def doctor(
    run: Annotated[str | None, Parameter(help="Look at this run instead of at the machine.")] = None,
    /,
    *,
    probe: Annotated[bool, Parameter(help="Measure what the models can do, by a few requests.")] = False,
    forget: Annotated[bool, Parameter(help="Remove what was measured of models.")] = False,
    options: ModelOptions = MODEL,
) -> int:
    """Check this machine, the keys and the services, or one run; each problem comes with its fix.

    Ends with 0 unless something fails. Keys are never shown. Without `--probe` nothing is sent to a model, and nothing
    takes longer than a few seconds; MCP servers, which are started or asked, and a fleet's database have ten. A run is
    only looked at: journal, sources, files, report, and who works on it.

    Example: `explorer doctor latest`
    """
    configuration = inspected(options)
    settings = configuration.settings
    if run is not None:
        with run_at_hand(settings, run) as folder:
            return _print_result(
                [*check_run(folder), *_store_of(folder, settings), *_queue_of(folder, settings)], options
            )
    if probe or forget:
        removed = [forget_all(settings)] if forget else []
        return _print_result([*removed, *(probe_models(settings) if probe else [])], options)
    sandbox = shell_set_by(asyncio.run(choose_shell(settings)), settings, configuration.origins)
    findings = [
        check_python(sys.version_info[:3]),
        check_workspace(configuration.settings.workspace),
        check_disk(configuration.settings.workspace),
        check_roles(configuration.settings),
        *check_keys(configuration),
        *check_windows(configuration.settings),
        check_search(configuration.settings),
        check_contact(configuration.settings),
        *check_shell(sandbox),
        check_parser(),
        *check_variables(configuration.unknown),
        *check_folder(configuration),
        *check_extensions(installed_extensions()),
        *check_servers(configuration.settings),
        *check_fleet(configuration.settings),
        *probe_services(configuration),
        *check_profiles(configuration.settings),
    ]
    return _print_result(findings, options)


def _store_of(folder: Path, settings: Settings) -> list[CheckResult]:
    """Return, for a copy, where the run is and what continues it there."""
    if folder.parent != (settings.workspace / COPIES).absolute():
        return []
    words = f"in the fleet's database, where a worker continues it; if it failed: explorer queue retry {folder.name}"
    return [CheckResult("store", "ok", words)]


def _queue_of(folder: Path, settings: Settings) -> list[CheckResult]:
    """Return what the fleet's queue says of a run that no worker is to have."""
    found = in_queue(settings, folder)
    return [] if found is None or not found.next_step else [CheckResult("queue", "warn", found.words, found.next_step)]


def _print_result(findings: Sequence[CheckResult], options: CommonOptions) -> int:
    if options.output_format == "text":
        emit_page("\n".join(_line(finding) for finding in findings))
    else:
        emit_json([asdict(finding) for finding in findings])
    return 1 if any(finding.level == "fail" for finding in findings) else 0


def _line(finding: CheckResult) -> str:
    line = f"{finding.level:<5}{finding.name:<{NAME_CHARS}}{one_line(finding.words)}"
    return line + (f"\n     → {one_line(finding.fix)}" if finding.fix else "")


def check_python(version: tuple[int, ...]) -> CheckResult:
    """Check that explorer supports this version of Python."""
    words = ".".join(str(part) for part in version)
    if version < OLDEST_PYTHON:
        return CheckResult("python", "fail", f"{words} is too old", "install Python 3.11 or newer")
    return CheckResult("python", "ok", words)


def existing(path: Path) -> Path:
    """Return the folder itself, or the nearest one above it that exists."""
    path = path.absolute()
    return next(folder for folder in (path, *path.parents) if folder.exists())


def check_workspace(workspace: Path) -> CheckResult:
    """Check that runs can be written, by trying it and not by permission bits."""
    place = existing(workspace)
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"explorer")
    except OSError as error:
        words = f"cannot write to {place}: {error.strerror}"
        return CheckResult("workspace", "fail", words, "give another folder: --workspace DIR, or EXPLORER_WORKSPACE")
    words = f"{workspace} is writable" if workspace.exists() else f"{workspace} will be made by the first run"
    return CheckResult("workspace", "ok", words)


def check_disk(workspace: Path) -> CheckResult:
    """Check that the disk has space for runs."""
    free = shutil.disk_usage(existing(workspace)).free
    words = f"{free / 1024**3:.1f} GiB free"
    if free < LEAST_FREE_BYTES:
        return CheckResult("disk", "fail", words, "free space, or give another folder: --workspace DIR")
    if free < ENOUGH_FREE_BYTES:
        return CheckResult("disk", "warn", words, "free space soon: a run stores every page it reads")
    return CheckResult("disk", "ok", words)


def check_roles(settings: Settings) -> CheckResult:
    """Check that all role files can be used."""
    try:
        roles = PromptLoader(role_origins(settings)).roles()
    except ConfigError as error:
        return CheckResult("roles", "fail", error.message, error.hint)
    return CheckResult("roles", "ok", ", ".join(roles))


def check_keys(configuration: Configuration) -> list[CheckResult]:
    """Report which keys are set; that one is missing is a problem only for the model that needs it."""
    settings = configuration.settings
    vendors = [one for one in model_setup(settings).vendors.values() if one.vendor.needs]
    wanted = _wanted_vendors(settings)
    findings = [_key_of(one, is_wanted=one.vendor.name in wanted) for one in vendors]
    is_set = any(one.engine.name == "tavily" and one.is_ready for one in search_setup(settings).engines)
    findings.append(CheckResult("tavily key", "ok", "set" if is_set else "not set"))
    if settings.model == AUTO and not any(one.is_ready and one.is_automatic for one in vendors):
        words = "no key: a local server is used, or offline mode, which is not a language model"
        findings.append(CheckResult("model", "warn", words, _ways_to_a_model(vendors)))
    return findings


def _wanted_vendors(settings: Settings) -> set[str]:
    """Return the vendors of the models that the settings name."""
    setup = model_setup(settings)
    texts = {settings.model, *settings.role_models.values()} - {"", AUTO}
    return {setup.contact_of(parse_model(text, setup.known).provider) for text in texts}


def _key_of(one: ConfiguredVendor, *, is_wanted: bool) -> CheckResult:
    name, needed = f"{one.vendor.name} key", one.vendor.variable(one.vendor.needs)
    if one.has_needed:
        return CheckResult(name, "ok", "set")
    # A server on this machine may have the model, and wants no key.
    if is_wanted and not one.is_ready and not one.vendor.local_servers:
        return CheckResult(name, "fail", "not set, but a model needs it", f"set {needed}")
    return CheckResult(name, "ok", "not set")


def _ways_to_a_model(vendors: Sequence[ConfiguredVendor]) -> str:
    """Return what can be set so that there is a language model."""
    automatic = [one.vendor for one in vendors if one.is_automatic]
    keys = [vendor.variable(vendor.needs) for vendor in automatic]
    urls = [f"{vendor.variable(vendor.url)} of a local server" for vendor in automatic if vendor.local_servers]
    return f"set {', or '.join([*keys, *urls])}"


def check_search(settings: Settings) -> CheckResult:
    """Report which web search engine would be asked, and why."""
    try:
        plan = plan_search(search_setup(settings))
    except ConfigError as error:
        return CheckResult("search engine", "fail", error.message, error.hint)
    return CheckResult("search engine", "ok", f"{', '.join(plan.engines[:1]) or 'none'}: {plan.why}")


def check_contact(settings: Settings) -> CheckResult:
    """Check whether the operators of sites can reach the user: Wikimedia and Reddit ask for that of every program."""
    caller = Caller(contact=settings.contact)
    for site in installed_extensions().sites:
        if problem := site.problem(settings.extension(site.name, site.settings), caller):
            return CheckResult("contact", "warn", problem.words, problem.fix)
    if settings.contact:
        return CheckResult("contact", "ok", caller.user_agent)
    words = "not set: Wikimedia may slow down or refuse programs whose user cannot be reached"
    return CheckResult("contact", "warn", words, "set EXPLORER_CONTACT to an e-mail address or a web address")


def check_extensions(extensions: Extensions) -> list[CheckResult]:
    """Report what installed packages add, and those that could not be loaded; none where nothing is installed."""
    added: dict[str, list[str]] = {}
    for part in extensions.outside:
        named = [tool.name for tool in part.value] if part.point is Point.TOOLS else [part.name]
        added.setdefault(part.origin, []).append(f"{part.point.removeprefix('explorer.')} {', '.join(named)}")
    found = [CheckResult("package", "ok", f"{origin} adds {'; '.join(parts)}") for origin, parts in added.items()]
    fix = "update or uninstall it: explorer works without it"
    return [*found, *(CheckResult("package", "warn", f"{one.origin}: {one.why}", fix) for one in extensions.failures)]


def check_folder(configuration: Configuration) -> list[CheckResult]:
    """Report what the folder's files say and is not in force."""
    found: list[CheckResult] = []
    if configuration.withheld:
        words = f"not trusted, so not in force: {', '.join(one.origin for one in configuration.withheld)}"
        found.append(CheckResult("folder", "warn", words, "see what they change, and allow it: explorer trust"))
    if configuration.unread:
        words = f"not read from .env: {', '.join(configuration.unread)}"
        found.append(CheckResult("folder", "warn", words, "set them in the environment: export NAME=VALUE"))
    return found


def check_variables(unknown: Sequence[Unknown]) -> list[CheckResult]:
    """Report variables that look like ours and are not: most are mistyped, and other commands refuse them."""
    return [
        CheckResult(
            "variable", "fail", f"{one.place} is not a setting", f"did you mean {one.near}?" if one.near else UNSET
        )
        for one in unknown
    ]


GET_SECCOMP = "use a kernel with seccomp filters; in a container, allow the call seccomp in its security profile"
GET_LINUX = "on this system, read pages and PDF of strangers in the container image (docs/docker.md)"


def check_parser() -> CheckResult:
    """Check what confines the processes that parse HTML, PDF, office files, feeds and archives."""
    try:
        return parser_result(asyncio.run(_confinement()))
    except ToolError as error:
        return CheckResult("parser", "fail", error.message, "install explorer again: its packages are not complete")


async def _confinement() -> ConfinementReport:
    async with Parser() as parser:
        return await parser.confinement()


def parser_result(found: ConfinementReport) -> CheckResult:
    """Return what a confinement means for the user."""
    landlock = f"Landlock ABI {found.landlock}" if found.landlock else "no Landlock in this kernel"
    if found.holds:
        return CheckResult("parser", "ok", f"no network, no files, seccomp ({landlock})")
    if not found.has_seccomp:
        walls = f"{landlock} and rlimits only" if found.landlock else "rlimits only"
        return CheckResult(
            "parser", "warn", f"{walls}: {found.why}", GET_SECCOMP if sys.platform == "linux" else GET_LINUX
        )
    words = f"it is confined, and could still: {', '.join(found.open)}"
    return CheckResult("parser", "fail", words, "report it as SECURITY.md says, with the version of your kernel")


EXACT = "memory and processes of a command: by a control group, exactly"
AT_INTERVALS = (
    "memory of a command: of each process exactly, of all together every 0.1 s; "
    "for an exact bound: systemd-run --user --scope -p Delegate=yes explorer ..."
)
FOLDER = "bytes added to the run's folder: every 0.5 s"


def check_shell(sandbox: Sandbox) -> list[CheckResult]:
    """Check what confines the commands of agents, by a test of it, and what limits them."""
    if sandbox.confinement is None:
        level = "warn" if sandbox.fix else "ok"
        return [CheckResult("shell", level, f"agents have no shell: {sandbox.because}", sandbox.fix)]
    limits = CheckResult("shell limits", "ok", f"{EXACT if is_available() else AT_INTERVALS}; {FOLDER}")
    if sandbox.confinement.tier is SandboxTier.UNCONFINED:
        fix = "leave it out, or set EXPLORER_SHELL=auto"
        return [CheckResult("shell", "warn", sandbox.why, fix), limits]
    return [CheckResult("shell", "ok", f"{sandbox.why} ({sandbox.confinement.walls})"), limits]


PROBE_S = 5.0
"""Seconds for a server to say how long its window is."""
MODEL_CHECK = "model"
NOT_MEASURED = "measure what it can do: explorer doctor --probe"


def check_profiles(settings: Settings) -> list[CheckResult]:
    """Show what was measured of models."""
    profiles = stored_profiles(settings.state_dir)
    return [_finding(one) for one in profiles] or [CheckResult(MODEL_CHECK, "ok", f"no profile; {NOT_MEASURED}")]


def forget_all(settings: Settings) -> CheckResult:
    """Remove all profiles.

    Raises:
        StorageError: The disk refused.
    """
    try:
        count = forget_profiles(settings.state_dir)
    except OSError as error:
        raise StorageError(f"the profiles in {settings.state_dir} cannot be removed: {error.strerror}") from error
    return CheckResult(MODEL_CHECK, "ok", f"{counted(count, 'profile')} removed")


def probe_models(settings: Settings) -> list[CheckResult]:
    """Measure each model that roles would use now, and store its profile.

    Raises:
        ConfigError: A model or an address cannot be used.
        ModelError: The server that the user named does not list its models.
        StorageError: The disk refused.
    """
    return asyncio.run(_probe_all(settings))


async def _probe_all(settings: Settings) -> list[CheckResult]:
    choice = await choose_models(settings, load_roles(settings))
    settings = with_servers(settings, choice.found)
    refs = _distinct(choice.models.values())
    async with Clients(model_setup(settings)) as clients:
        await clients.open(refs)
        found = [await _probe(ref, settings, clients) for ref in refs]
    return found or [CheckResult(MODEL_CHECK, "ok", f"nothing to measure: {choice.why}")]


async def _probe(ref: ModelRef, settings: Settings, clients: Clients) -> CheckResult:
    vendor = vendor_of(ref, settings)
    url = vendor.server.url if vendor else ""
    client = GuardedClient(
        Guard([urlsplit(url).hostname or ""]), f"explorer/{__version__}", settings.network, seconds=PROBE_S
    )

    async def fetch(address: str) -> str:
        try:
            answer = await client.send(HttpRequest("GET", address))
        except (ExchangeError, ExplorerError, ValueError):
            return ""
        return answer.body.decode("utf-8", "replace")

    try:
        profile = await ModelProbe(clients.client_for(ref), url, ref.name).profile(fetch, datetime.now(UTC))
    except ExplorerError as error:
        return CheckResult(MODEL_CHECK, "fail", f"{ref}: {error.message}", error.hint)
    finally:
        await client.aclose()
    if settings.state_dir is None:
        return CheckResult(MODEL_CHECK, "warn", f"{ref}: {profile.words}", "not kept: set HOME to a folder of yours")
    try:
        store_profile(settings.state_dir, profile)
    except OSError as error:
        raise StorageError(f"the profile cannot be stored in {settings.state_dir}: {error.strerror}") from error
    return _finding(profile)


def _distinct(refs: Iterable[ModelRef]) -> list[ModelRef]:
    return [ref for ref in dict.fromkeys(refs) if ref.provider != OFFLINE]


def _finding(profile: ModelProfile) -> CheckResult:
    mode = f"; lean mode, because of {profile.why_lean}" if profile.why_lean else "; the whole team"
    return CheckResult(MODEL_CHECK, "ok", f"{profile.model} at {profile.url}: {profile.words}{mode}")
