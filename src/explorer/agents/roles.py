"""Roles are files: YAML frontmatter (name, description, tools, model, limits) and the prompt below it."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from explorer.agents.result_schema import NO_RESULT, ResultSchema
from explorer.schema.errors import ConfigError
from explorer.schema.model_options import Effort, Tier
from explorer.schema.preset import Preset
from explorer.schema.tool import Tool
from explorer.text.frontmatter import fields_in, split_frontmatter
from explorer.text.sanitize import single_line

CALL_AGENT = "call_agent"
MAX_ROLE_FILE_BYTES = 256 * 1024


class RoleLimits(BaseModel):
    """The limits of one agent of a role."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_steps: int = Field(default=25, ge=1, le=1000)
    """Turns."""


class Role(BaseModel):
    """An agent's prompt, tools, model and limits."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")
    description: str = Field(min_length=1, max_length=600)
    """One or two sentences; the orchestrator reads them to choose a helper."""
    tools: tuple[str, ...]
    model: str = Tier.BALANCED
    """A tier (`strong`, `balanced`, `fast`) or a model's name."""
    effort: Effort | Literal[""] = ""
    """How much its model is to reason; empty: the vendor's default."""
    limits: RoleLimits = RoleLimits()
    leads: bool = False
    """Whether it is the role of the orchestrator, the one agent that answers the question and calls the others."""
    writes_report: bool = False
    """Whether its agents write the report: what is held back of the limits is for them."""
    helpers: tuple[str, ...] = ()
    """The roles that its agents may call, if it has `call_agent`; empty: all that it could."""
    result: ResultSchema = NO_RESULT
    """The form of the result that its agents return besides their summary."""
    guidance: dict[str, str] = {}
    """Text added to the prompt for some models, by patterns of their names, such as `*qwen*, *llama*`."""
    extends: str = ""
    """The role that this file adds to: its fields hold where this file has none, its tools and prompt come first."""
    confined: bool = False
    """Whether its agents have a shell only where a sandbox holds, not where the user allows one without."""
    defaults: dict[str, dict[str, JsonValue]] = {}
    """Defaults of tools' arguments for its agents, by tool: `web_search: {max_results: 10}`."""
    prompt: str
    path: Path

    def prompt_for(self, model: str) -> str:
        """Return the prompt for a model such as `openai:gpt-5.5`, with the guidance of each pattern that it matches."""
        name = model.lower()
        added = [
            text.strip()
            for patterns, text in self.guidance.items()
            if any(fnmatchcase(name, pattern.strip().lower()) for pattern in patterns.split(","))
        ]
        return "\n\n".join([self.prompt, *added])

    @property
    def digest(self) -> str:
        """The SHA-256 of the prompt, in hexadecimal."""
        return hashlib.sha256(self.prompt.encode()).hexdigest()


def built_in_roles() -> Path:
    """Return the folder of the built-in roles, in the wheel or in the checkout."""
    here = Path(__file__).resolve().parents[1]
    installed = here / "_prompts"
    return installed if installed.is_dir() else here.parents[1] / "prompts"


TAKEN_OVER = ("leads", "writes_report")
"""Fields that a role inherits from the one of the same name that it replaces, where its file does not set them."""


@dataclass(frozen=True)
class RoleFile:
    """A role file as it was read."""

    path: Path
    fields: Mapping[str, Any]
    prompt: str

    @classmethod
    def parse(cls, path: Path, text: str) -> Self:
        """Read the text of a role file.

        Raises:
            ConfigError: It has no frontmatter that can be read, or no prompt.
        """
        head, prompt = split_frontmatter(text)
        if head is None:
            raise ConfigError(
                f"{path} has no frontmatter",
                hint=f"start {path} with: ---, name: ..., description: ..., tools: [...], ---, then the prompt",
            )
        if not prompt.strip():
            raise ConfigError(f"{path} has no prompt below its frontmatter", hint=f"edit {path}")
        try:
            return cls(path, fields_in(head), prompt.strip())
        except ValueError as error:
            words = f"{path}: the frontmatter cannot be read: {single_line(str(error))}"
            raise ConfigError(words, hint=f"edit {path}") from error

    def role(self, earlier: Mapping[str, Role]) -> Role:
        """Return the role, with what it takes from an earlier one.

        Raises:
            ConfigError: A field is wrong, or the role that it extends is not there.
        """
        extended = self.fields.get("extends")
        if not extended:
            made = self._validated(self.fields)
            return _taking_over(made, earlier.get(made.name))
        base = earlier.get(str(extended))
        if base is None:
            known = ", ".join(earlier) or "none"
            raise ConfigError(
                f"{self.path}: it extends the role {str(extended)[:40]!r}, which is not there",
                hint=f"edit its field `extends`; known are: {known}",
            )
        taken = {name: getattr(base, name) for name in Role.model_fields}
        own = self._validated({**taken, **self.fields})
        return own.model_copy(
            update={
                "tools": tuple(dict.fromkeys([*base.tools, *own.tools])),
                "guidance": base.guidance | own.guidance,
                "defaults": base.defaults | own.defaults,
                "prompt": f"{base.prompt}\n\n{own.prompt}",
            }
        )

    def _validated(self, fields: Mapping[str, Any]) -> Role:
        try:
            return Role.model_validate({**fields, "prompt": self.prompt, "path": self.path})
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise ConfigError(f"{self.path}: field `{field}`: {first['msg']}", hint=f"edit {self.path}") from error


class PromptLoader:
    """Reads role files; a later origin's file replaces an earlier one's role of the same name.

    A later origin's role that leads replaces the one that led before, whatever their names.

    Args:
        origins: Folders of role files, and presets, which say in addition what the team is.
    """

    def __init__(self, origins: Sequence[Path | Preset]) -> None:
        self._origins = origins

    def roles(self) -> dict[str, Role]:
        """Return all roles by name, the one that leads first.

        Raises:
            ConfigError: A folder or a file is not usable; the message names the file and the field.
        """
        found: dict[str, Role] = {}
        for origin in self._origins:
            files = role_files(origin) if isinstance(origin, Path) else _files_of(origin)
            found = _joined(found, [file.role(found) for file in files])
            if isinstance(origin, Preset):
                found = _team_of(origin, found)
        leads = [name for name, role in found.items() if role.leads]
        if not leads:
            raise ConfigError(
                "no role leads the run", hint="write `leads: true` into the role file of the orchestrator"
            )
        return {name: found[name] for name in dict.fromkeys([*leads, *found])}


def role_files(folder: Path) -> list[RoleFile]:
    """Read the role files of a folder.

    Raises:
        ConfigError: It is no folder, or a file cannot be read.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder of role files", hint="give a folder: --roles DIR")
    return [RoleFile.parse(path, role_text(path)) for path in sorted(folder.glob("*.md"))]


def _files_of(preset: Preset) -> list[RoleFile]:
    folder = Path(preset.place) / "roles"
    return [RoleFile.parse(folder / name, text) for name, text in sorted(preset.roles.items())]


def _team_of(preset: Preset, found: Mapping[str, Role]) -> dict[str, Role]:
    """Return the roles that a preset has.

    Raises:
        ConfigError: One of them is not there.
    """
    for name in preset.team:
        if name not in found:
            raise ConfigError(
                f"the preset {preset.name} has the role {name!r} in its team, which is not there",
                hint=f"add {Path(preset.place) / 'roles' / name}.md, or correct `roles` in {preset.place}/preset.toml",
            )
    return {name: role for name, role in found.items() if name in preset.team} if preset.team else dict(found)


def _joined(earlier: Mapping[str, Role], read: Sequence[Role]) -> dict[str, Role]:
    """Return the roles of earlier origins and of one more.

    Raises:
        ConfigError: Two of its roles lead.
    """
    own = {role.name: role for role in read}
    leads = [str(role.path) for role in own.values() if role.leads]
    if len(leads) > 1:
        raise ConfigError(f"two roles lead the run: {' and '.join(leads)}", hint="leave `leads: true` in one of them")
    kept = {name: role for name, role in earlier.items() if not (leads and role.leads)}
    return kept | own


def _taking_over(role: Role, replaced: Role | None) -> Role:
    missing = [field for field in TAKEN_OVER if field not in role.model_fields_set]
    return role if replaced is None else role.model_copy(update={field: getattr(replaced, field) for field in missing})


def load_role(path: Path) -> Role:
    """Read one role file that extends no other.

    Raises:
        ConfigError: It cannot be read, has no frontmatter, or a field is wrong.
    """
    return RoleFile.parse(path, role_text(path)).role({})


def role_text(path: Path) -> str:
    """Return the text of a role file.

    Raises:
        ConfigError: It cannot be read, or is too long.
    """
    try:
        if path.stat().st_size > MAX_ROLE_FILE_BYTES:
            raise ConfigError(
                f"{path} is over {MAX_ROLE_FILE_BYTES} bytes; a role file is a prompt", hint=f"edit {path}"
            )
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", hint=f"fix or remove {path}") from error


def check_roles(roles: Mapping[str, Role], tools: Collection[str], max_depth: int = 1) -> None:
    """Check that every tool and helper in a role file exists, and who may call helpers.

    Args:
        roles: All roles.
        tools: The names of all tools.
        max_depth: The depth of helpers; above 1, helpers may have `call_agent`, too.

    Raises:
        ConfigError: A role is wrong; the message gives its file and the tool.
    """
    for role in roles.values():
        for name in role.tools:
            if name not in tools:
                known = ", ".join(sorted(tools))
                raise ConfigError(
                    f"{role.path}: there is no tool {name!r}",
                    hint=f"edit its tools, or give the file that has it: --tools FILE.py; known are: {known}",
                )
        if CALL_AGENT in role.tools and not role.leads and max_depth == 1:
            hint = "allow helpers of helpers: EXPLORER_MAX_DEPTH=2; or remove call_agent from it"
            raise ConfigError(f"{role.path}: only the role that leads may call helpers", hint=hint)
        possible = [one.name for one in _possible_helpers(role, roles)]
        for name in role.helpers:
            if name not in possible:
                hint = f"it may call: {', '.join(possible) or 'none'}"
                raise ConfigError(f"{role.path}: it cannot call {name!r}", hint=hint)


def check_defaults(roles: Mapping[str, Role], tools: Iterable[Tool]) -> None:
    """Check that tools take the defaults of arguments that role files set; tools that are not there are passed over.

    Raises:
        ConfigError: A role sets one for a tool that it does not have, or that the tool does not take.
    """
    known = {tool.name: tool for tool in tools}
    for role in roles.values():
        for name, values in role.defaults.items():
            if name not in role.tools:
                words = f"{role.path}: `defaults` has the tool {name!r}, which its `tools` do not have"
                raise ConfigError(words, hint=f"edit {role.path}")
            try:
                _ = known[name].with_defaults(values) if name in known else None
            except ValueError as error:
                raise ConfigError(f"{role.path}: `defaults`: {error}", hint=f"edit {role.path}") from error


def tool_of(role: Role, tool: Tool) -> Tool:
    """Return a tool as a role has it: with the role's defaults of its arguments."""
    values = role.defaults.get(tool.name)
    return tool.with_defaults(values) if values else tool


def leading_role(roles: Mapping[str, Role]) -> Role:
    """Return the role of the orchestrator."""
    return next(role for role in roles.values() if role.leads)


def helpers_in(roles: Mapping[str, Role]) -> list[Role]:
    """Return the roles that the orchestrator may call."""
    return [role for role in roles.values() if not role.leads]


def _possible_helpers(role: Role, roles: Mapping[str, Role]) -> list[Role]:
    """Return the helpers that a role could call: a helper none that writes the report, and not its own role."""
    others = helpers_in(roles)
    return others if role.leads else [one for one in others if not one.writes_report and one.name != role.name]


def helpers_of(role: Role, roles: Mapping[str, Role]) -> list[Role]:
    """Return the helpers that agents of a role may call, as its file says."""
    return [one for one in _possible_helpers(role, roles) if not role.helpers or one.name in role.helpers]


def with_tools(role: Role, names: Iterable[str]) -> Role:
    """Return a role that may call these tools, too."""
    return role.model_copy(update={"tools": tuple(dict.fromkeys([*role.tools, *names]))})


def without_tools(role: Role, names: Collection[str]) -> Role:
    """Return a role that may not call these tools."""
    kept = {name: values for name, values in role.defaults.items() if name not in names}
    tools = tuple(name for name in role.tools if name not in names)
    return role.model_copy(update={"tools": tools, "defaults": kept})


def with_offered(roles: Mapping[str, Role], tools: Collection[str]) -> dict[str, Role]:
    """Return the roles with further tools: those that no role file names are for all helpers that write no report."""
    named = {name for role in roles.values() for name in role.tools}
    offered = [name for name in tools if name not in named]
    others = {leading_role(roles).name, *report_writers(roles)}
    return {name: role if name in others else with_tools(role, offered) for name, role in roles.items()}


def report_writers(roles: Mapping[str, Role]) -> frozenset[str]:
    """Return the names of the roles that write the report."""
    return frozenset(role.name for role in helpers_in(roles) if role.writes_report)


def helper_lines(helpers: Iterable[Role]) -> str:
    """Return the list of helpers in the description of `call_agent`."""
    return "\n".join(f"- {role.name}: {' '.join(role.description.split())}" for role in helpers)
