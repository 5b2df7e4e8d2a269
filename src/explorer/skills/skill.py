"""One skill in the Agent Skills format (agentskills.io/specification): a folder with a `SKILL.md`.

The file has YAML frontmatter of six keys, and below it the method itself. Other files of the folder are read or run
when the method says so.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from explorer.schema.skill_folder import SkillOrigin
from explorer.skills.tree import SKILL_FILE, UnusableSkillError, read_file
from explorer.text.frontmatter import fields_in, split_frontmatter
from explorer.text.sanitize import single_line, visible

NAME = r"[a-z0-9]+(?:-[a-z0-9]+)*"
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1_024
MAX_COMPATIBILITY_CHARS = 500
MAX_BODY_CHARS = 36_000
"""Limit of the text below the frontmatter: a longer result would be cut. The format advises 500 lines."""
KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
RULES: Mapping[str, str] = {
    "name": f"1 to {MAX_NAME_CHARS} characters: lowercase letters a to z, digits, and single hyphens between them",
    "description": f"1 to {MAX_DESCRIPTION_CHARS:,} characters: what the skill does, and when to use it",
    "license": "a name of a license, or of a file with it",
    "compatibility": f"1 to {MAX_COMPATIBILITY_CHARS} characters: what the skill needs",
    "metadata": "texts by name",
    "allowed-tools": "names of tools, separated by spaces or as a list",
}
"""What each key takes, for error messages."""


class SkillFields(BaseModel):
    """The frontmatter of a `SKILL.md`; keys of other programs are left out."""

    model_config = ConfigDict(frozen=True, extra="ignore", str_strip_whitespace=True, populate_by_name=True)

    name: str = Field(pattern=rf"^{NAME}$", max_length=MAX_NAME_CHARS)
    description: str = Field(min_length=1, max_length=MAX_DESCRIPTION_CHARS)
    license: str = ""
    compatibility: str | None = Field(default=None, min_length=1, max_length=MAX_COMPATIBILITY_CHARS)
    metadata: Mapping[str, str] = {}
    allowed_tools: tuple[str, ...] = Field(default=(), alias="allowed-tools")
    """Shown to the user, and nothing else: only a role's file gives tools to its agents."""

    @field_validator("metadata", mode="before")
    @classmethod
    def _texts(cls, value: object) -> object:
        """Take `version: 1.0` as a text."""
        if not isinstance(value, dict):
            return value
        return {str(name): str(one) for name, one in cast("dict[object, object]", value).items()}

    @field_validator("allowed_tools", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        return tuple(value.split()) if isinstance(value, str) else value


@dataclass(frozen=True)
class Skill:
    """A skill, as it was when it was read."""

    fields: SkillFields
    body: str
    """The method: the text below the frontmatter."""
    folder: Path
    origin: SkillOrigin
    files: Mapping[str, str]
    """The SHA-256 of each file, by its path from the skill's folder."""
    unknown_keys: tuple[str, ...] = ()
    """Keys of the frontmatter that are none of the format's."""

    @property
    def name(self) -> str:
        """Its name, which is also the name of its folder."""
        return self.fields.name

    @property
    def others(self) -> list[str]:
        """The paths of its files besides `SKILL.md`."""
        return [path for path in self.files if path != SKILL_FILE]

    def read(self, path: str) -> bytes:
        """Return the content of a file, if it is still as it was when the skill was read.

        Raises:
            UnusableSkillError: It cannot be read, or was changed.
        """
        content = read_file(self.folder, path)
        if hashlib.sha256(content).hexdigest() != self.files.get(path):
            raise UnusableSkillError(f"{path} was changed since this session began")
        return content


def read_skill(folder: Path, origin: SkillOrigin, files: Mapping[str, str]) -> Skill:
    """Read a skill.

    Args:
        folder: Its folder.
        origin: Whose it is.
        files: What it consists of, as `files_of` returns it.

    Raises:
        UnusableSkillError: Its `SKILL.md` is not as the format wants it; all problems are listed.
    """
    try:
        text = read_file(folder, SKILL_FILE).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnusableSkillError(f"{SKILL_FILE} is not text in UTF-8") from error
    head, body = split_frontmatter(text)
    if head is None:
        raise UnusableSkillError(f"{SKILL_FILE} does not begin with frontmatter: ---, name: ..., description: ..., ---")
    fields = _fields(head)
    body = visible(body).strip()
    problems = wrong_fields(fields, folder.name)
    problems += [] if body else [f"there is no text below the frontmatter of {SKILL_FILE}"]
    if len(body) > MAX_BODY_CHARS:
        words = f"{SKILL_FILE} has {len(body):,} characters below its frontmatter; the limit is {MAX_BODY_CHARS:,}"
        problems.append(f"{words}: move parts of it into files of references/")
    if problems:
        raise UnusableSkillError(*problems)
    skill = Skill(
        SkillFields.model_validate(fields),
        body,
        folder,
        origin,
        files,
        tuple(str(key) for key in fields if key not in KEYS),
    )
    skill.read(SKILL_FILE)
    return skill


def _fields(head: str) -> dict[str, Any]:
    try:
        return fields_in(head)
    except ValueError as error:
        hint = "put a text that has a colon in it into quotation marks"
        raise UnusableSkillError(f"the frontmatter cannot be read: {single_line(str(error))} ({hint})") from error


def wrong_fields(fields: Mapping[str, Any], folder: str) -> list[str]:
    """Return what is wrong with the frontmatter of a skill in a folder of that name, each key once."""
    try:
        SkillFields.model_validate(fields)
    except ValidationError as error:
        wrong = dict.fromkeys(str(one["loc"][0]) for one in error.errors())
        return [f"`{key}` is missing" if key not in fields else f"`{key}` has to be {RULES[key]}" for key in wrong]
    name = str(fields["name"]).strip()
    same = re.fullmatch(NAME, folder) and name == folder
    return (
        []
        if same
        else [f"`name` is {name}, and its folder is called {single_line(folder, 80)}: both have to be the same"]
    )
