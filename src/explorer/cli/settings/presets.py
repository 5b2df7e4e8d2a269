"""Presets: folders with a `preset.toml`, role files and settings; where they are, and what one says."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from explorer.cli.settings.layers import Layer, table_layer, unreadable
from explorer.cli.settings.user_folders import config_folder
from explorer.cli.settings.values import Origin, Raw
from explorer.cli.typo import closest
from explorer.schema.errors import ConfigError, NotFoundError
from explorer.schema.mcp import TOOL_PREFIX, McpServer
from explorer.schema.preset import PRESET_NAME, Preset
from explorer.skills.tree import SKILLS, folder_digest

PRESET_FILE = "preset.toml"
OF_PROJECT = Path(".explorer", "presets")
"""Where a project has its presets; they are the project's until the user trusts its folder."""
MAX_FILE_BYTES = 256 * 1024
MAX_ROLES = 32
BUILT_IN, YOURS, PROJECT, GIVEN = "explorer", "yours", "this folder's", "the folder you name"
LIST = "explorer presets list"


@dataclass(frozen=True)
class PresetFolder:
    """A folder with a preset, and whose it is."""

    name: str
    path: Path
    owner: str
    """`explorer`, `yours`, `this folder's` or `the folder you name`."""


@dataclass(frozen=True)
class LoadedPreset:
    """A preset as its files say it."""

    preset: Preset
    layer: Layer
    """Its settings."""
    is_of_stranger: bool = False
    """Whether its settings do only what those of an untrusted folder do."""


def built_in_presets() -> Path:
    """Return the folder of the built-in presets, in the wheel or in the checkout."""
    here = Path(__file__).resolve().parents[2]
    installed = here / "_presets"
    return installed if installed.is_dir() else here.parents[1] / "presets"


def preset_folders(environment: Mapping[str, str], folder: Path) -> list[PresetFolder]:
    """Return all presets by name. Of several with one name the user's counts, else the built-in one, not the project's.

    Args:
        environment: Says where the user's configuration is.
        folder: The current folder, the project's.
    """
    places = (
        (YOURS, config_folder(environment) / "presets"),
        (BUILT_IN, built_in_presets()),
        (PROJECT, folder / OF_PROJECT),
    )
    found: dict[str, PresetFolder] = {}
    for owner, place in places:
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            if (path / PRESET_FILE).is_file():
                found.setdefault(path.name, PresetFolder(path.name, path, owner))
    return [found[name] for name in sorted(found)]


def find_preset(name: str, environment: Mapping[str, str], folder: Path) -> PresetFolder:
    """Return the folder of a preset by its name, or by its path if there is a slash in it.

    Raises:
        NotFoundError: There is none.
    """
    if "/" in name:
        path = Path(name).expanduser().absolute()
        if not (path / PRESET_FILE).is_file():
            raise NotFoundError(f"{name} is not a preset: it has no file {PRESET_FILE}", hint=LIST)
        return PresetFolder(path.name, path, GIVEN)
    folders = {one.name: one for one in preset_folders(environment, folder)}
    if name not in folders:
        near = closest(name, folders, 3)
        hint = f"did you mean {near}? All presets: {LIST}" if near else LIST
        raise NotFoundError(f"there is no preset {name[:80]!r}", hint=hint)
    return folders[name]


class _PresetFile(BaseModel):
    """The content of `preset.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str = Field(min_length=1, max_length=600)
    question: str = Field(default="", max_length=4_000)
    roles: tuple[str, ...] = ()
    needs: dict[str, str] = {}
    skills: tuple[str, ...] = ()
    settings: dict[str, Any] = {}


def load_preset(folder: PresetFolder) -> LoadedPreset:
    """Read a preset.

    Raises:
        ConfigError: One of its files cannot be used; the message names the file and the field.
    """
    from explorer.agents.roles import role_text  # noqa: PLC0415 - few runs have a preset

    path = folder.path / PRESET_FILE
    said = _read(path)
    roles = {file.name: role_text(file) for file in role_paths(folder.path)}
    try:
        preset = Preset(
            name=folder.name,
            description=said.description,
            place=str(folder.path),
            question=said.question,
            team=said.roles,
            needs=said.needs,
            needed_skills=said.skills,
            roles=roles,
            skills=folder_digest(skills) if (skills := folder.path / SKILLS).is_dir() else "",
        )
    except ValidationError as error:
        hint = f"rename the folder: lower-case letters, digits, _ and - ({PRESET_NAME})"
        raise ConfigError(f"{folder.name[:80]!r} cannot be the name of a preset", hint=hint) from error
    return LoadedPreset(preset, table_layer(path, said.settings, f"preset {folder.name}", Origin.PRESET))


def without_roles_of_files(loaded: LoadedPreset) -> Layer:
    """Return the settings of a preset: files' roles give way to its own, and only a flag or a variable adds some."""
    if not loaded.preset.has_team:
        return loaded.layer
    nowhere = Raw("", f"preset {loaded.preset.name} roles_dir", Origin.PRESET)
    return Layer({"roles_dir": nowhere, **loaded.layer.values}, loaded.layer.models)


def server_tools(preset: Preset, servers: Mapping[str, McpServer]) -> Iterator[tuple[str, str]]:
    """Yield the role files of a preset that would get tools of the user's MCP servers, each with what it would get.

    Raises:
        ConfigError: A role file cannot be read.
    """
    from explorer.agents.roles import RoleFile  # noqa: PLC0415 - few runs have a preset

    for file, text in preset.roles.items() if servers else ():
        fields = RoleFile.parse(Path(preset.place) / file, text).fields
        named = fields.get("tools")
        tools = [str(one) for one in cast("list[object]", named)] if isinstance(named, list) else []
        yield from ((file, tool) for tool in tools if tool.startswith(TOOL_PREFIX))
        name = str(fields.get("name", ""))
        yield from ((file, f"{TOOL_PREFIX}{one.name}__*") for one in servers.values() if name in one.roles)


def _read(path: Path) -> _PresetFile:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise ConfigError(f"{path} has more than {MAX_FILE_BYTES:,} bytes", hint="put prompts into role files")
        return _PresetFile.model_validate(tomllib.loads(content.decode()))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise unreadable(path, error) from error
    except ValidationError as error:
        # A key that is not there explains the one that is missing.
        problem = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        key = str(problem["loc"][0])
        if problem["type"] == "extra_forbidden":
            known = list(_PresetFile.model_fields)
            near = closest(key, known, 3)
            hint = f"did you mean `{near}`?" if near else f"known are: {', '.join(known)}; settings are in [settings]"
            raise ConfigError(f"{path}: there is no key `{key[:80]}`", hint=hint) from error
        raise ConfigError(f"{path}: `{key[:80]}`: {problem['msg']}", hint=f"edit {path}") from error


def role_paths(folder: Path) -> list[Path]:
    """Return the role files of a preset.

    Raises:
        ConfigError: They are too many for one.
    """
    found = sorted((folder / "roles").glob("*.md"))
    if len(found) > MAX_ROLES:
        raise ConfigError(f"{folder / 'roles'} has {len(found)} role files; a preset has at most {MAX_ROLES}")
    return found


def files_of(folder: Path) -> Iterator[Path]:
    """Yield the files that a preset consists of: whoever trusts it trusts these."""
    yield folder / PRESET_FILE
    yield from role_paths(folder)


def project_presets(folder: Path) -> list[PresetFolder]:
    """Return the presets of a project, also those whose names are taken."""
    place = folder / OF_PROJECT
    found = sorted(place.iterdir()) if place.is_dir() else []
    return [PresetFolder(path.name, path, PROJECT) for path in found if (path / PRESET_FILE).is_file()]


def described(folder: PresetFolder) -> str:
    """Return what a preset is for, or why it cannot be used."""
    try:
        return load_preset(folder).preset.description
    except ConfigError as error:
        return f"cannot be used: {error.message}"


def settings_shown(loaded: LoadedPreset) -> dict[str, str]:
    """Return the settings of a preset as texts, by their keys in a file."""
    values = {raw.origin.rpartition(" ")[2]: raw.text for raw in loaded.layer.values.values() if raw.text}
    return values | {raw.origin.rpartition(" ")[2]: raw.text for raw in loaded.layer.models.values()}
