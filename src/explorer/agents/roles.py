"""Roles are files: YAML frontmatter (name, description, tools, model, limits) and the prompt below it."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from explorer.schema.errors import ConfigError
from explorer.schema.events import ORCHESTRATOR
from explorer.schema.model_options import Effort, Tier
from explorer.text.frontmatter import fields_in, split_frontmatter
from explorer.text.sanitize import single_line

WRITER = "writer"
"""A role of this name writes the report, unless its file says otherwise."""
CALL_AGENT = "call_agent"
MAX_ROLE_FILE_BYTES = 256 * 1024


class RoleLimits(BaseModel):
    """What one agent of a role may use up."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_steps: int = Field(default=25, ge=1, le=1000)
    """Turns."""


class Role(BaseModel):
    """What an agent is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")
    description: str = Field(min_length=1, max_length=600)
    """One or two sentences; the orchestrator reads them to choose a helper."""
    tools: tuple[str, ...]
    model: str = Tier.BALANCED
    """A tier (`strong`, `balanced`, `fast`) or a model's name."""
    effort: Effort | Literal[""] = ""
    """How much its model is to reason; empty: as the vendor has it."""
    limits: RoleLimits = RoleLimits()
    writes_report: bool | None = None
    """Whether its agents write the report: what is held back of the limits is for them. None: by the role's name."""
    prompt: str
    path: Path

    @property
    def digest(self) -> str:
        """sha256 of the prompt."""
        return hashlib.sha256(self.prompt.encode()).hexdigest()


def built_in_roles() -> Path:
    """The folder of the roles that come with explorer: in the wheel, or in the checkout."""
    here = Path(__file__).resolve().parents[1]
    installed = here / "_prompts"
    return installed if installed.is_dir() else here.parents[1] / "prompts"


class PromptLoader:
    """Reads role files from folders; a later folder's file replaces an earlier one's role of the same name."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders

    def roles(self) -> dict[str, Role]:
        """All roles by name, the orchestrator first.

        Raises:
            ConfigError: A folder or a file is not usable; the message names the file and the field.
        """
        found: dict[str, Role] = {}
        for folder in self._folders:
            if not folder.is_dir():
                raise ConfigError(f"{folder} is not a folder of role files", hint="give a folder: --roles DIR")
            for path in sorted(folder.glob("*.md")):
                role = load_role(path)
                found[role.name] = role
        if ORCHESTRATOR not in found:
            raise ConfigError("no role file is named orchestrator", hint="add orchestrator.md to the roles folder")
        helpers = {name: role for name, role in found.items() if name != ORCHESTRATOR}
        return {ORCHESTRATOR: found[ORCHESTRATOR], **helpers}


def load_role(path: Path) -> Role:
    """Read one role file.

    Raises:
        ConfigError: It cannot be read, has no frontmatter, or a field is wrong.
    """
    head, prompt = _split(path)
    try:
        fields = fields_in(head)
    except ValueError as error:
        words = f"{path}: the frontmatter cannot be read: {single_line(str(error))}"
        raise ConfigError(words, hint=f"edit {path}") from error
    try:
        return Role.model_validate({**fields, "prompt": prompt.strip(), "path": path})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}: field `{field}`: {first['msg']}", hint=f"edit {path}") from error


def _split(path: Path) -> tuple[str, str]:
    try:
        if path.stat().st_size > MAX_ROLE_FILE_BYTES:
            raise ConfigError(
                f"{path} is over {MAX_ROLE_FILE_BYTES} bytes; a role file is a prompt", hint=f"edit {path}"
            )
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", hint=f"mend or remove {path}") from error
    head, prompt = split_frontmatter(text)
    if head is None:
        raise ConfigError(
            f"{path} has no frontmatter",
            hint=f"start {path} with: ---, name: ..., description: ..., tools: [...], ---, then the prompt",
        )
    if not prompt.strip():
        raise ConfigError(f"{path} has no prompt below its frontmatter", hint=f"edit {path}")
    return head, prompt


def check_roles(roles: Mapping[str, Role], tools: Collection[str]) -> None:
    """Every tool a role names exists, and only the orchestrator calls helpers.

    Raises:
        ConfigError: Names the role's file and the tool.
    """
    for role in roles.values():
        for name in role.tools:
            if name not in tools:
                known = ", ".join(sorted(tools))
                raise ConfigError(f"{role.path}: there is no tool {name!r}", hint=f"edit its tools; known are: {known}")
        if CALL_AGENT in role.tools and role.name != ORCHESTRATOR:
            raise ConfigError(f"{role.path}: only the orchestrator may call helpers", hint="remove call_agent from it")


def report_writers(roles: Mapping[str, Role]) -> frozenset[str]:
    """The names of the helpers that write the report."""
    helpers = (role for role in roles.values() if role.name != ORCHESTRATOR)
    return frozenset(
        role.name for role in helpers if role.writes_report or (role.writes_report is None and role.name == WRITER)
    )


def helper_lines(roles: Mapping[str, Role]) -> str:
    """The helpers, as the orchestrator reads them in `call_agent`'s description."""
    return "\n".join(
        f"- {role.name}: {' '.join(role.description.split())}" for role in roles.values() if role.name != ORCHESTRATOR
    )
