"""The command `doctor`: what is wrong with this machine or with one run, and what fixes it.

For a run: whether the journal is whole, whether everything that it names is there, and who works on the run.
"""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.agents.roles import PromptLoader
from explorer.cli.commands.model_probe import check_profiles, forget_all, probe_models
from explorer.cli.commands.parser_check import check_parser
from explorer.cli.commands.probes import CheckResult, probe_services
from explorer.cli.commands.shell_check import check_shell
from explorer.cli.commands.window_check import check_windows
from explorer.cli.screens.formatting import counted, one_line, size
from explorer.cli.screens.output import emit_json, emit_page
from explorer.cli.settings.configuration import Configuration, Unknown, inspected
from explorer.cli.settings.options import MODEL, CommonOptions, ModelOptions
from explorer.journal.codec import Scan, examine
from explorer.journal.control import Inbox
from explorer.journal.listing import find_run, holder, is_running
from explorer.journal.run_state import RunState
from explorer.llm.models import AUTO, parse_model
from explorer.llm.vendors import ConfiguredVendor
from explorer.run.extensions import Extensions, Point, installed_extensions
from explorer.run.outcome import resume_command
from explorer.run.resources import choose_shell, role_origins, shell_set_by
from explorer.run.settings_parts import model_setup, search_setup
from explorer.sandbox.jobs import noted_jobs
from explorer.schema.errors import ConfigError, JournalVersionError, StorageError, ToolError
from explorer.schema.events import JOURNAL_VERSION, Source, Status
from explorer.schema.settings import Settings
from explorer.schema.tool import Effect
from explorer.sources.http.caller import Caller
from explorer.sources.search.selection import plan_search
from explorer.text.frontmatter import without_frontmatter
from explorer.workspace.access import DRAFT, REPORT, journal_path
from explorer.workspace.source_store import is_intact, stored_text
from explorer.workspace.workspace import Workspace

SHOWN = 5
"""Names in one line; the rest is counted."""


def check_run(folder: Path) -> list[CheckResult]:
    """Run all checks of a run."""
    try:
        found = examine(journal_path(folder).read_bytes())
    except OSError as error:
        raise StorageError(f"cannot read the journal of {folder.name}: {error.strerror}") from error
    run_state = RunState.of(record.event for record in found.records)
    workspace = Workspace(folder)
    is_busy = is_running(folder)
    return [
        _journal(found, folder.name, is_busy=is_busy),
        _version(found),
        _state(run_state, folder.name, is_busy=is_busy),
        *_holder(folder, is_busy=is_busy),
        _sources(run_state, workspace),
        _files(run_state, workspace, is_busy=is_busy),
        _report(run_state, workspace, is_busy=is_busy),
        *_orders(folder, is_busy=is_busy),
    ]


def _journal(found: Scan, run_id: str, *, is_busy: bool) -> CheckResult:
    last = len(found.records)
    words = f"{counted(last, 'record')}, {size(found.good_bytes + len(found.torn))}"
    if found.damage is not None:
        good = f"records 1 to {last} are good" if last else "no record before it is good"
        ways = [f"keep a copy: explorer runs export {run_id}"]
        ways += [f"continue from before the damage: explorer fork {run_id} --at {last}"] if last else []
        return CheckResult("journal", "fail", f"{found.damage.message}; {good}", "; ".join(ways))
    if found.torn and not is_busy:
        tail = f"a torn tail of {counted(len(found.torn), 'byte')} (a process was stopped while writing)"
        fix = f"nothing acknowledged is lost; cut off and kept in journal.torn by: explorer resume {run_id}"
        return CheckResult("journal", "warn", f"{words}, and {tail}", fix)
    return CheckResult("journal", "ok", words)


def _version(found: Scan) -> CheckResult:
    if isinstance(found.damage, JournalVersionError):
        return CheckResult("version", "fail", found.damage.message, found.damage.hint)
    versions = sorted({record.v for record in found.records})
    return CheckResult("version", "ok", f"{', '.join(map(str, versions)) or '-'}; read up to {JOURNAL_VERSION}")


def _state(run_state: RunState, run_id: str, *, is_busy: bool) -> CheckResult:
    if is_busy:
        return CheckResult("state", "ok", "running")
    if run_state.started is None:
        return CheckResult("state", "fail", "it was never started", f"nothing is lost by: explorer runs rm {run_id}")
    if run_state.finished is None:
        return CheckResult("state", "ok", f"unfinished; continues with: explorer resume {run_id}")
    if run_state.finished.status is Status.COMPLETE:
        return CheckResult("state", "ok", str(run_state.finished.status))
    ended = f"{run_state.finished.status} ({run_state.finished.reason})"
    return CheckResult(
        "state", "ok", f"{ended}; continues with: {resume_command(run_state, run_id, run_state.finished.cause)}"
    )


def _holder(folder: Path, *, is_busy: bool) -> Iterator[CheckResult]:
    process = holder(folder)
    if process is not None:
        yield CheckResult("lock", "ok", f"locked by process {process}")
    elif is_busy:
        yield CheckResult("lock", "ok", "locked by a process that cannot be seen from here")
    elif (folder / ".explorer" / "holder").exists():
        yield CheckResult("lock", "ok", "free; the last process was stopped without time to tidy up")
    else:
        yield CheckResult("lock", "ok", "free")


def _sources(run_state: RunState, workspace: Workspace) -> CheckResult:
    states = {source.id: _source_state(source, workspace) for source in run_state.sources.values()}
    missing = [name for name, state in states.items() if state == "missing"]
    changed = [name for name, state in states.items() if state == "changed"]
    if not missing and not changed:
        return CheckResult("sources", "ok", f"{counted(len(states), 'source')}, each as it was stored")
    fix = "what they said cannot be looked up any more; take them from a copy of the run, or read them again"
    return CheckResult("sources", "fail", _named(missing, changed), fix)


def _source_state(source: Source, workspace: Workspace) -> str:
    try:
        stored = workspace.read_text(f".explorer/sources/{source.id}.md")
    except ToolError:
        return "missing"
    return "" if stored != (text := stored_text(stored)) and is_intact(source, text) else "changed"


def _files(run_state: RunState, workspace: Workspace, *, is_busy: bool) -> CheckResult:
    """Files against the journal; report.md is rendered anew at the end, so there its draft is what counts."""
    written = run_state.files.values()
    missing = [one.path for one in written if not workspace.exists(one.path)]
    differ = [one.path for one in written if one.path not in missing and workspace.digest(one.path) != one.sha256]
    report = run_state.files.get(REPORT)
    if REPORT in differ and report is not None and workspace.digest(DRAFT) == report.sha256:
        differ.remove(REPORT)
    if is_busy or (not missing and not differ):
        return CheckResult("files", "ok", f"{counted(len(run_state.files), 'file')}, as the journal has them")
    cut_off = _cut_off(run_state, workspace, [*missing, *differ])
    if cut_off:
        words = f"{_named(missing, differ)}; cut off in the middle: {', '.join(cut_off)}"
        return CheckResult(
            "files", "warn", words, f"the journal takes them in by: explorer resume {workspace.folder.name}"
        )
    fix = f"restore them from the journal in a new run: explorer fork {workspace.folder.name} --no-run"
    return CheckResult("files", "fail", _named(missing, differ), fix)


def _cut_off(run_state: RunState, workspace: Workspace, paths: list[str]) -> list[str]:
    """Return what explains that all of some files are not as the journal has them; empty where something does not.

    A call that a crash cut off may have changed its file, and a command or a background job any file: the journal
    learns of that when the run is resumed.
    """
    started = [call.started for state in run_state.agents.values() for call in state.calls() if not call.finished]
    calls = [call for call in started if call is not None]
    after = {call.change.path: call.change.after for call in calls if call.change is not None}
    commands = [call.name for call in calls if call.effect == Effect.JOB]
    commands += [f"background job {job.id}" for job in noted_jobs(workspace.folder) if job.reason or not job.is_over]
    if commands:
        return commands
    is_known = all(after.get(path) == workspace.digest(path) for path in paths)
    return [f"{call.name} {call.change.path}" for call in calls if call.change is not None] if is_known else []


def _named(missing: list[str], changed: list[str]) -> str:
    parts = [(missing, "missing"), (changed, "not as the journal has them")]
    return "; ".join(
        f"{len(names)} {word}: {', '.join(names[:SHOWN])}{', ...' if len(names) > SHOWN else ''}"
        for names, word in parts
        if names
    )


def _report(run_state: RunState, workspace: Workspace, *, is_busy: bool) -> CheckResult:
    if workspace.exists(REPORT):
        words = counted(len(without_frontmatter(workspace.read_text(REPORT)).split()), "word")
        return CheckResult("report", "ok", f"report.md, {words}")
    if is_busy or run_state.finished is None:
        return CheckResult("report", "ok", "none yet")
    fix = f'explorer resume {workspace.folder.name} "write the report again"'
    return CheckResult("report", "fail", "the run has ended, and report.md is not there", fix)


def _orders(folder: Path, *, is_busy: bool) -> Iterator[CheckResult]:
    waiting = Inbox(folder / ".explorer").waiting()
    if waiting:
        when = "taken at the next turn" if is_busy else "taken when the run is resumed, but for a stop"
        yield CheckResult("orders", "ok", f"{counted(len(waiting), 'order')} waiting; {when}")


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
    takes longer than a few seconds. A run is only looked at: journal, sources, files, report, and who works on it.

    Example: `explorer doctor latest`
    """
    configuration = inspected(options)
    settings = configuration.settings
    if run is not None:
        return _print_result(check_run(find_run(settings.workspace, run)), options)
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
        *probe_services(configuration),
        *check_profiles(configuration.settings),
    ]
    return _print_result(findings, options)


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
