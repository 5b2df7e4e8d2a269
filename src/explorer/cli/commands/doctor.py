"""The command `doctor`: what is wrong with this machine or with one run (`run_check.py`), and what fixes it."""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.agents.roles import PromptLoader
from explorer.cli.commands.mcp_look import check_servers
from explorer.cli.commands.model_probe import check_profiles, forget_all, probe_models
from explorer.cli.commands.parser_check import check_parser
from explorer.cli.commands.probes import CheckResult, probe_services
from explorer.cli.commands.run_check import check_run
from explorer.cli.commands.shell_check import check_shell
from explorer.cli.commands.window_check import check_windows
from explorer.cli.runs_at_hand import COPIES, run_at_hand
from explorer.cli.screens.output import emit_json, emit_page
from explorer.cli.settings.configuration import Configuration, Unknown, inspected
from explorer.cli.settings.options import MODEL, CommonOptions, ModelOptions
from explorer.llm.models import AUTO, parse_model
from explorer.llm.vendors import ConfiguredVendor
from explorer.observe.formatting import one_line
from explorer.run.extensions import Extensions, Point, installed_extensions
from explorer.run.resources import choose_shell, role_origins, shell_set_by
from explorer.run.settings_parts import model_setup, search_setup
from explorer.schema.errors import ConfigError
from explorer.schema.settings import Settings
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
    probe: Annotated[
        bool, Parameter(negative="", show_default=False, help="Measure what the models can do, by a few requests.")
    ] = False,
    forget: Annotated[
        bool, Parameter(negative="", show_default=False, help="Remove what was measured of models.")
    ] = False,
    options: ModelOptions = MODEL,
) -> int:
    """Check this machine, the keys and the services, or one run; each problem comes with its fix.

    Ends with 0 unless something fails. Keys are never shown. Without `--probe` nothing is sent to a model, and nothing
    takes longer than a few seconds; MCP servers are started or asked, and have ten. A run is only looked at: journal,
    sources, files, report, and who works on it.

    Example: `explorer doctor latest`
    """
    configuration = inspected(options)
    settings = configuration.settings
    if run is not None:
        with run_at_hand(settings, run) as folder:
            return _print_result([*check_run(folder), *_store_of(folder, settings)], options)
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
        *probe_services(configuration),
        *check_profiles(configuration.settings),
    ]
    return _print_result(findings, options)


def _store_of(folder: Path, settings: Settings) -> list[CheckResult]:
    """Say of a copy where the run is, and what continues it there."""
    if folder.parent != (settings.workspace / COPIES).absolute():
        return []
    words = f"in the fleet's database, where a worker continues it; if it failed: explorer queue retry {folder.name}"
    return [CheckResult("store", "ok", words)]


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
    """Runs can be written: tried out, not guessed from permission bits."""
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
    """Variables that look like ours and are not: most are mistyped, and other commands refuse them."""
    return [
        CheckResult(
            "variable", "fail", f"{one.place} is not a setting", f"did you mean {one.near}?" if one.near else UNSET
        )
        for one in unknown
    ]
