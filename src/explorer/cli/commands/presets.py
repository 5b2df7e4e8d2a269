"""The commands `presets list` and `presets show`: whole explorers as configurations."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.agents.roles import PromptLoader, Role
from explorer.cli.screens.output import aligned, emit_json, emit_page
from explorer.cli.settings.configuration import settings_folder
from explorer.cli.settings.options import COMMON, CommonOptions
from explorer.cli.settings.presets import (
    PresetFolder,
    described,
    find_preset,
    load_preset,
    preset_folders,
    settings_shown,
)
from explorer.observe.formatting import one_line
from explorer.run.extensions import installed_extensions
from explorer.skills.tree import SKILLS, skill_names


def list_presets(*, options: CommonOptions = COMMON) -> int:
    """List the presets: built-in ones, the user's, and those of the current folder."""
    found = preset_folders(os.environ, settings_folder(Path.cwd()))
    if options.output_format != "text":
        emit_json([_facts(folder) for folder in found])
        return 0
    rows = [(folder.name, folder.owner, one_line(described(folder))) for folder in found]
    emit_page(aligned(("PRESET", "WHOSE", "WHAT IT DOES"), rows))
    return 0


def show_preset(
    name: Annotated[str, Parameter(help="As `presets list` names it, or a folder with a slash in its path.")],
    /,
    *,
    options: CommonOptions = COMMON,
) -> int:
    """Show a preset: its question, team, settings, and what it needs. Nothing of it takes effect."""
    folder = find_preset(name, os.environ, settings_folder(Path.cwd()))
    loaded = load_preset(folder)
    preset, roles = loaded.preset, _roles(folder)
    if options.output_format != "text":
        shown = {"roles": [role.model_dump(mode="json") for role in roles], "settings": settings_shown(loaded)}
        emit_json(_facts(folder) | {"question": preset.question, "needs": preset.needs} | shown)
        return 0
    rows = [
        ("whose", folder.owner),
        ("folder", str(folder.path)),
        ("asks", preset.question or "the question that you give"),
        *(("setting", f"{key} = {value}") for key, value in settings_shown(loaded).items()),
        *(("needs", f"{tool} (if it is missing: {command})") for tool, command in preset.needs.items()),
        *(("role", _role_line(role, folder)) for role in roles),
        *(("skill", name) for name in skill_names(folder.path / SKILLS)),
    ]
    lines = [f"  {title:<8}{one_line(words)}" for title, words in rows]
    emit_page("\n".join([preset.name, f"  {one_line(preset.description)}", *lines]))
    return 0


def _roles(folder: PresetFolder) -> list[Role]:
    origins = [*installed_extensions().role_folders, load_preset(folder).preset]
    return list(PromptLoader(origins).roles().values())


def _role_line(role: Role, folder: PresetFolder) -> str:
    origin = "of the preset" if role.path.is_relative_to(folder.path) else "built in"
    parts = [words for is_so, words in ((role.leads, "leads"), (role.writes_report, "writes the report")) if is_so]
    return f"{role.name} ({', '.join([origin, *parts])}): {', '.join(role.tools)}"


def _facts(folder: PresetFolder) -> dict[str, object]:
    facts: dict[str, object] = {"preset": folder.name, "owner": folder.owner, "folder": str(folder.path)}
    return facts | {"description": described(folder)}
