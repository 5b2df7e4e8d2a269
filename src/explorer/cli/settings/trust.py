"""Which folders the user trusts: their files by content, remembered in the user's configuration folder.

A folder is trusted for what its files say at that moment: when one of them changes, it has to be trusted again.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from explorer.cli.settings.layers import Layer, overlay, parsed, toml_layer, unreadable, variable_layer, variables_in
from explorer.cli.settings.presets import files_of, project_presets
from explorer.cli.settings.user_folders import config_folder
from explorer.cli.settings.values import Origin, Raw, setting_named
from explorer.schema.errors import ConfigError, StorageError
from explorer.skills.tree import SKILLS, folder_digest, project_places, skill_names
from explorer.workspace.safe_open import replace_private

DOTENV, TOML, MCP_JSON = ".env", "explorer.toml", ".mcp.json"
PLACES = ("workspace", "reports_dir")
"""Settings whose default is a folder in the current one, which may be a link."""
MAX_FILE_BYTES = 1024**2
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True)
class SettingsFile:
    """A file of settings in the current folder."""

    path: Path
    content: bytes
    problem: str = ""
    """Why nothing in it takes effect without trust, not even what is harmless; empty: it is the folder's own."""


@dataclass(frozen=True)
class SettingsFolder:
    """The current folder, with what its files set."""

    path: Path
    dotenv: SettingsFile | None
    toml: SettingsFile | None
    mcp_json: SettingsFile | None = None
    """The file of MCP servers that other programs share."""
    links: Mapping[str, Path] = field(default_factory=dict[str, Path])
    """Default folders of runs and reports that are links out of the folder, by the setting's name."""

    @cached_property
    def variables(self) -> Mapping[str, str]:
        """The variables of `.env`, ours and those of other programs."""
        return variables_in(self.dotenv.path, self.dotenv.content) if self.dotenv else {}

    @cached_property
    def layers(self) -> Sequence[tuple[SettingsFile, Layer]]:
        """What the files say, the one that counts first, but for what leads out of the folder."""
        return [(file, self._inside(layer)) for file, layer in self._all_layers]

    @property
    def outside(self) -> list[Raw]:
        """The folders to search that are outside, which only the user can name, with a flag or in the environment."""
        named = [layer.values["corpus"] for _, layer in self._all_layers if "corpus" in layer.values]
        return [raw for raw in named if raw.text and self._leads_out(raw)]

    def _inside(self, layer: Layer) -> Layer:
        values = {name: raw for name, raw in layer.values.items() if raw not in self.outside}
        return Layer(values, layer.models)

    def _leads_out(self, raw: Raw) -> bool:
        place = self.path / Path(raw.text).expanduser()
        return not place.resolve().is_relative_to(self.path.resolve())

    @cached_property
    def _all_layers(self) -> Sequence[tuple[SettingsFile, Layer]]:
        found: list[tuple[SettingsFile, Layer]] = []
        if self.dotenv:
            found.append((self.dotenv, variable_layer(self.variables, DOTENV, Origin.FOLDER)))
        if self.toml:
            found.append((self.toml, toml_layer(self.toml.path, self.toml.content, TOML, Origin.FOLDER)))
        return [(file, self._from_here(layer)) for file, layer in found]

    @cached_property
    def role_files(self) -> Mapping[str, bytes]:
        """The role files that its settings lead to, by path."""
        raw = overlay(layer.values for _, layer in self.layers).get("roles_dir")
        place = parsed(setting_named("roles_dir"), raw) if raw else None
        if not isinstance(place, Path):
            return {}
        # Their own place, or the one in the folder: a role file that is exchanged is another one.
        paths = sorted((self.path / place).glob("*.md"))
        return {str(path): _bounded(path) for path in paths if path.is_file()}

    @property
    def files(self) -> list[SettingsFile]:
        """Its files of settings."""
        return [file for file in (self.dotenv, self.toml, self.mcp_json) if file]

    @cached_property
    def preset_files(self) -> Mapping[str, bytes]:
        """The files of its presets, by path."""
        paths = [path for preset in project_presets(self.path) for path in files_of(preset.path)]
        return {str(path): _bounded(path) for path in paths}

    @cached_property
    def skill_places(self) -> Sequence[Path]:
        """The folders of skills that are in it, or that its settings lead to."""
        raw = overlay(layer.values for _, layer in self.layers).get("skills_dir")
        named = parsed(setting_named("skills_dir"), raw) if raw else None
        return [*project_places(self.path), *([self.path / named] if isinstance(named, Path) else [])]

    @cached_property
    def skill_digests(self) -> Mapping[Path, str]:
        """The SHA-256 of all skills in each of these folders, and in those of its presets."""
        places = [*self.skill_places, *(preset.path / SKILLS for preset in project_presets(self.path))]
        return {place: folder_digest(place) for place in places if skill_names(place)}

    @property
    def skills(self) -> list[Path]:
        """The folders of its skills, whatever is in them."""
        return [place / name for place in self.skill_places for name in skill_names(place)]

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of its files of settings, of the role files that these lead to, of its presets and its skills."""
        files = {str(file.path): file.content for file in self.files} | dict(self.role_files)
        files |= self.preset_files
        files |= {name: os.fsencode(target) for name, target in self.links.items()}
        files |= {str(place): digest.encode() for place, digest in self.skill_digests.items()}
        total = hashlib.sha256()
        for name, content in sorted(files.items()):
            for part in (os.fsencode(name), content):
                total.update(f"{len(part)}:".encode() + part)
        return total.hexdigest()

    def _from_here(self, layer: Layer) -> Layer:
        """Return a layer whose paths start at the folder, where a command is given further inside, such as in a run."""
        here = Path.cwd()
        if here == self.path or not here.is_relative_to(self.path):
            return layer
        return Layer({name: self._path_from_here(name, raw) for name, raw in layer.values.items()}, layer.models)

    def _path_from_here(self, name: str, raw: Raw) -> Raw:
        value = parsed(setting_named(name), raw)
        is_relative = isinstance(value, Path) and not Path(raw.text).expanduser().is_absolute()
        return Raw(str(self.path / raw.text), raw.origin, raw.level) if is_relative and raw.text else raw


def read_folder(path: Path) -> SettingsFolder:
    """Read the files of settings in a folder, once: what is trusted is what takes effect.

    Raises:
        ConfigError: One of them cannot be read.
    """
    links = {name: place.resolve() for name in PLACES for place in [path / str(setting_named(name).initial)]}
    out = {name: target for name, target in links.items() if not target.is_relative_to(path.resolve())}
    return SettingsFolder(path, _read(path / DOTENV), _read(path / TOML), _read(path / MCP_JSON), out)


def _read(path: Path) -> SettingsFile | None:
    if not path.is_file():
        return None
    try:
        return SettingsFile(path, _bounded(path), problem_of(path, os.geteuid()))
    except OSError as error:
        raise unreadable(path, error) from error


def _bounded(path: Path) -> bytes:
    """Return the content of a file.

    Raises:
        ConfigError: It cannot be read, or is larger than any file of settings.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError(
            f"{path} has more than {MAX_FILE_BYTES:,} bytes", hint="move it: a file of settings is shorter"
        )
    return content


def problem_of(path: Path, user: int) -> str:
    """Return why a file is not taken for the folder's own by a user; empty where it is."""
    if not path.resolve().is_relative_to(path.parent.resolve()):
        return "the file is a link that leads out of the folder"
    # Root works on files of others: in a container, of the user who started it.
    is_own = user == 0 or path.stat().st_uid in {user, 0}
    return "" if is_own else "the file belongs to another user"


@dataclass(frozen=True)
class TrustRecord:
    """A folder that the user trusts."""

    folder: str
    sha256: str
    at: str
    """When, as ISO 8601."""
    files: tuple[str, ...]
    """The files whose content is trusted."""


class TrustedFolders:
    """The user's record of trusted folders: a file for each, which nobody else may write."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._place = config_folder(environment) / "trusted"

    def trusts(self, folder: SettingsFolder) -> bool:
        """Return whether a folder is trusted as its files are now."""
        record = self.record_of(folder.path)
        return record is not None and record.sha256 == folder.digest

    def record_of(self, path: Path) -> TrustRecord | None:
        """Return what is recorded of a folder; None: it was never trusted, or the record may be another's."""
        record = _read_record(self._file(path))
        return record if record and record.folder == str(path.resolve()) else None

    def all(self) -> list[TrustRecord]:
        """Return all records, by folder."""
        found = [_read_record(path) for path in self._place.glob("*.json")] if self._place.is_dir() else []
        return sorted((record for record in found if record), key=lambda record: record.folder)

    def add(self, folder: SettingsFolder) -> None:
        """Trust a folder as its files are now.

        Raises:
            StorageError: The disk refused.
        """
        files = [file.path for file in folder.files]
        record = {
            "folder": str(folder.path.resolve()),
            "sha256": folder.digest,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "files": [*map(str, files), *folder.role_files, *folder.preset_files, *map(str, folder.skills)],
        }
        try:
            replace_private(self._file(folder.path), json.dumps(record, indent=1, ensure_ascii=True).encode())
        except OSError as error:
            raise StorageError(f"cannot remember the folder in {self._place}: {error.strerror}") from error

    def remove(self, path: Path) -> bool:
        """Trust a folder no longer; return whether it was trusted.

        Raises:
            StorageError: The disk refused.
        """
        try:
            self._file(path).unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StorageError(f"cannot forget the folder in {self._place}: {error.strerror}") from error
        return True

    def _file(self, path: Path) -> Path:
        name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()
        return self._place / f"{name[:40]}.json"


def _read_record(path: Path) -> TrustRecord | None:
    """Return a record; None for one that is not there, is damaged, or could be written by others."""
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            if state.st_uid not in {os.geteuid(), 0} or state.st_mode & OTHERS_MAY_WRITE:
                return None
            fields = json.loads(file.read(MAX_FILE_BYTES))
        return TrustRecord(str(fields["folder"]), str(fields["sha256"]), str(fields["at"]), tuple(fields["files"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
