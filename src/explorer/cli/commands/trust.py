"""The command `trust`: what the files of a folder would change, and the folders that may.

A run asks the same question on a terminal, once, before it starts.
"""

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.commands.config import written
from explorer.cli.screens.output import aligned, emit_json, emit_page, fitted, say
from explorer.cli.settings.configuration import Configuration, configured, folder_configuration, refused
from explorer.cli.settings.options import COMMON, CommonOptions
from explorer.cli.settings.presets import PROJECT, PresetFolder, described
from explorer.cli.settings.trust import TrustedFolders, TrustRecord, read_folder
from explorer.cli.settings.untrusted import Withheld
from explorer.observe.formatting import counted, one_line
from explorer.schema.errors import ConfigError, NotFoundError
from explorer.schema.skill_folder import SkillOrigin
from explorer.skills.tree import UnusableSkillError, files_of

MCP_SERVER = "MCP server: its tools reach the roles that name them"
NOTHING = "nothing in it needs trust"


def trust(
    folder: Annotated[
        Path | None, Parameter(help="The folder of `.env` and `explorer.toml`; this one if none.")
    ] = None,
    /,
    *,
    dry_run: Annotated[bool, Parameter(name="--dry-run", help="Only show what it would change.")] = False,
    remove: Annotated[bool, Parameter(name="--remove", help="Trust the folder no longer.")] = False,
    is_list: Annotated[bool, Parameter(name="--list", help="List the trusted folders.")] = False,
    options: CommonOptions = COMMON,
) -> int:
    """Let the settings of a folder's files take effect, and show what they change.

    Without trust, the `.env` and `explorer.toml` of a folder set only what is harmless: lower limits, languages, names
    of models, keys for their own vendors. The folder is trusted as its files are now; if one changes, trust it again.

    Example: `explorer trust --dry-run`
    """
    trusted = TrustedFolders(os.environ)
    if is_list:
        return _list(trusted.all(), options)
    place = (folder or Path.cwd()).expanduser()
    if remove:
        return _remove(trusted, place, options)
    if not place.is_dir():
        raise NotFoundError(f"there is no folder {place}", hint="explorer trust FOLDER")
    configuration = folder_configuration(place if folder else None)
    if (_waiting(configuration) or configuration.waiting_skills) and not dry_run:
        trusted.add(configuration.folder)
    return _print_result(configuration, options, is_kept=not dry_run, was_trusted=trusted.trusts(configuration.folder))


def asked(configuration: Configuration, options: CommonOptions) -> bool:
    """Ask on a terminal whether the folder is trusted, and remember it; otherwise leave out its settings.

    Raises:
        ConfigError: There is no terminal to ask on, or trust would not be enough.
    """
    is_final = any(one.is_final for one in configuration.withheld)
    if is_final or options.quiet or options.output_format != "text" or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return refused(configuration)
    say(f"The files of {one_line(str(configuration.folder.path))} set what needs your trust:")
    say(fitted(_table(configuration)))
    say("Trust this folder, until these files change? [y/N] ")
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        TrustedFolders(os.environ).add(configuration.folder)
        return True
    say("Its settings that need trust are left out.")
    return False


def settings_to_run(options: CommonOptions) -> Configuration:
    """Return the settings of a command that runs something: the user is asked about the folder.

    Raises:
        ConfigError: As `configured`.
    """
    configuration = configured(options, asked)
    if configuration.unread and not options.quiet:
        say(f"not read from .env, but from the environment: {', '.join(configuration.unread)}")
    waiting = configuration.waiting_skills
    if waiting and not (options.quiet or options.ignore_folder):
        places = ", ".join(dict.fromkeys(one_line(os.path.relpath(one.parent)) for one in waiting))
        are = f"{counted(len(waiting), 'skill')} of this folder {'is' if len(waiting) == 1 else 'are'} not used"
        say(f"{are}, because it is not trusted ({places}); see and allow: explorer trust")
    return configuration


def _waiting(configuration: Configuration) -> list[Withheld]:
    """Return what takes effect with trust."""
    return [one for one in configuration.withheld if not one.is_final]


def _table(configuration: Configuration) -> str:
    """Return what would change: each value, and what holds without it."""
    now = {value.name: value for value in configuration.values}
    rows = [
        (one.origin, one.value, written(now[one.name].value), now[one.name].help or MCP_SERVER)
        for one in _waiting(configuration)
        if one.name != "preset"
    ]
    rows += [_preset_row(one) for one in _waiting(configuration) if one.name == "preset"]
    rows += [(f"role file {path}", "", "", "") for path in configuration.folder.role_files]
    rows += [(f"skill {one_line(os.path.relpath(one))}", *_skill_cells(one)) for one in configuration.waiting_skills]
    return aligned(("SETTING", "VALUE", "NOW", "WHAT IT IS"), rows)


def _preset_row(one: Withheld) -> tuple[str, ...]:
    folder = PresetFolder(one.origin.rpartition(" ")[2], Path(one.value), PROJECT)
    return (one.origin, one.value, "", described(folder))


def _skill_cells(folder: Path) -> tuple[str, str, str]:
    """Return what a skill is, or why it does not count in a trusted folder either."""
    from explorer.skills.skill import read_skill  # noqa: PLC0415 - few folders have skills

    try:
        skill = read_skill(folder, SkillOrigin.PROJECT, files_of(folder))
    except UnusableSkillError as error:
        return ("", "-", f"left out: {error}")
    return (counted(len(skill.files), "file"), "-", skill.fields.description)


def _print_result(configuration: Configuration, options: CommonOptions, *, is_kept: bool, was_trusted: bool) -> int:
    folder = str(configuration.folder.path)
    if options.output_format != "text":
        changes = [asdict(one) for one in _waiting(configuration)]
        skills = [str(one) for one in configuration.waiting_skills]
        emit_json({"folder": folder, "trusted": was_trusted, "changes": changes, "skills": skills})
        return 0
    settings, skills = _waiting(configuration), configuration.waiting_skills
    waiting = [
        words
        for count, words in (
            (len(settings), counted(len(settings), "setting")),
            (len(skills), counted(len(skills), "skill")),
        )
        if count
    ]
    words = "in force from now on, until its files change" if is_kept else "would be in force"
    head = f"{' and '.join(waiting)} {words}\n\n{_table(configuration)}" if waiting else NOTHING
    emit_page(f"{one_line(folder)}: {head}")
    for one in configuration.withheld:
        if one.is_final:
            say(f"{one_line(one.origin)} stays without effect: {one.why}")
    if waiting and not options.quiet:
        say("  → take it back: explorer trust --remove" if is_kept else "  → trust it: explorer trust")
    return 0


def _remove(trusted: TrustedFolders, folder: Path, options: CommonOptions) -> int:
    if not trusted.remove(folder):
        raise NotFoundError(f"{folder} is not among the trusted folders", hint="explorer trust --list")
    if options.output_format != "text":
        emit_json({"folder": str(folder), "trusted": False})
    else:
        emit_page(f"{one_line(str(folder))} is trusted no longer")
    return 0


def _list(records: list[TrustRecord], options: CommonOptions) -> int:
    states = {record.folder: _state(record) for record in records}
    if options.output_format != "text":
        emit_json([{**asdict(record), "state": states[record.folder]} for record in records])
    elif records:
        rows = [(record.folder, record.at[:10], states[record.folder]) for record in records]
        emit_page(aligned(("FOLDER", "SINCE", "NOW"), rows))
    elif not options.quiet:
        say("no folder is trusted")
    return 0


def _state(record: TrustRecord) -> str:
    """Return whether the folder is still as it was trusted."""
    try:
        digest = read_folder(Path(record.folder)).digest
    except (ConfigError, OSError):
        return "cannot be read"
    return "unchanged" if digest == record.sha256 else "changed: trust it again"
