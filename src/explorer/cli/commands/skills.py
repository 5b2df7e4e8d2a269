"""The commands below `skills`: which skills there are, one of them, whether they fit the format, and a new one."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.screens.output import aligned, emit_json, emit_page, say
from explorer.cli.settings.configuration import Configuration, configured, passed_over
from explorer.cli.settings.options import COMMON, CommonOptions
from explorer.cli.settings.user_folders import NO_FOLDER, config_folder
from explorer.observe.formatting import one_line
from explorer.run.settings_parts import skill_folders
from explorer.schema.errors import ConfigError, NotFoundError, StorageError
from explorer.schema.skill_folder import SkillOrigin
from explorer.skills.catalog import find_skills
from explorer.skills.skill import RULES, Skill, read_skill, wrong_fields
from explorer.skills.tree import SKILL_FILE, UnusableSkillError, files_of, skill_names
from explorer.text.frontmatter import with_frontmatter

IN_USE, WAITING, LEFT_OUT = "in use", "needs trust", "left out"
DESCRIPTION_CHARS = 100
TEMPLATE = """\
# When it fits

Say for which questions this method is right, and for which it is not.

# Steps

1. What has to be found first, and in which sources.
2. What is compared or calculated, and how.
3. What would prove the result wrong, and where to look for it.

# The report

Give its parts in their order, and what each has to contain.
"""


@dataclass(frozen=True)
class Listed:
    """A skill in a list."""

    name: str
    origin: str
    state: str
    folder: Path
    skill: Skill | None
    """None: it cannot be read."""
    why: str = ""
    """Why it does not count."""

    def facts(self) -> dict[str, object]:
        """Return everything for programs."""
        fields = self.skill.fields.model_dump(mode="json", by_alias=True, exclude={"name"}) if self.skill else {}
        files = sorted(self.skill.files) if self.skill else []
        known = {"name": self.name, "origin": self.origin, "state": self.state, "folder": str(self.folder)}
        return {**known, "why": self.why, **fields, "files": files}


def list_skills(*, options: CommonOptions = COMMON) -> int:
    """List the skills that agents may load, and those that do not count."""
    configuration = configured(options, passed_over)
    found = [*_listed(configuration)]
    if options.output_format != "text":
        emit_json([one.facts() for one in found])
        return 0
    emit_page(aligned(("SKILL", "FROM", "STATE", "WHAT IT IS FOR"), [_row(one) for one in found]))
    if any(one.state == WAITING for one in found) and not options.quiet:
        say("  → read one: explorer skills show NAME; use those that need trust: explorer trust")
    return 0


def show_skill(
    name: Annotated[str, Parameter(help="As `skills list` names it.")], /, *, options: CommonOptions = COMMON
) -> int:
    """Print a skill, with its files."""
    found = [*_listed(configured(options, passed_over))]
    one = next((one for one in found if one.name == name and one.skill), None)
    if one is None or one.skill is None:
        why = next((f": {each.why}" for each in found if each.name == name), "")
        raise NotFoundError(f"there is no usable skill {one_line(name)}{why}", hint="explorer skills list")
    if options.output_format != "text":
        emit_json(one.facts() | {"text": one.skill.body})
        return 0
    fields = one.skill.fields
    rows = [
        ("from", f"{one.origin}, {one.folder}"),
        ("state", f"{one.state}{f': {one.why}' * bool(one.why)}"),
        ("license", fields.license),
        ("needs", fields.compatibility or ""),
        ("files", ", ".join(one.skill.others)),
        ("asks for", " ".join(fields.allowed_tools)),
    ]
    head = [f"  {title:<9}{one_line(text)}" for title, text in rows if text]
    emit_page("\n".join([f"{one.name}: {one_line(fields.description)}", *head, "", one.skill.body]))
    return 0


def validate(
    path: Annotated[Path | None, Parameter(help="A skill's folder, or a folder of skills; all skills if none.")] = None,
    /,
    *,
    options: CommonOptions = COMMON,
) -> int:
    """Check skills against the Agent Skills format; the exit code is 2 if one does not fit it."""
    listed = [] if path else [one.folder for one in _listed(configured(options, passed_over))]
    folders = _to_validate(path) if path else [one for one in listed if os.path.lexists(one / SKILL_FILE)]
    results = {folder: _problems(folder) for folder in folders}
    if options.output_format != "text":
        emit_json([{"folder": str(at), "is_valid": not words, "problems": words} for at, words in results.items()])
    else:
        lines = [
            f"{one_line(str(at))}: {one_line(word)}" for at, words in results.items() for word in words or ["valid"]
        ]
        emit_page("\n".join(lines))
    return ConfigError.exit_code if any(results.values()) else 0


def new(
    name: Annotated[str, Parameter(help=f"{RULES['name']}.")],
    description: Annotated[str, Parameter(help=f"{RULES['description']}. Agents choose by it.")],
    /,
    *,
    folder: Annotated[
        Path | None, Parameter(name="--in", metavar="DIR", help="The folder of skills to make it in; your own if none.")
    ] = None,
    options: CommonOptions = COMMON,
) -> int:
    """Make a skill of your own, to be filled in."""
    place = folder.expanduser() if folder else _own_folder()
    target = place / name
    fields = {"name": name, "description": description.strip()}
    problems = wrong_fields(fields, name)
    if problems:
        raise ConfigError(problems[0], hint='explorer skills new NAME "DESCRIPTION"')
    try:
        place.mkdir(parents=True, exist_ok=True)
        target.mkdir()
        (target / SKILL_FILE).write_text(with_frontmatter(fields, TEMPLATE), encoding="utf-8")
    except FileExistsError as error:
        raise ConfigError(f"{target} is there already", hint=f"edit {target / SKILL_FILE}") from error
    except OSError as error:
        raise StorageError(f"cannot write {target}: {error.strerror}") from error
    if options.output_format != "text":
        emit_json({"name": name, "folder": str(target), "file": str(target / SKILL_FILE)})
        return 0
    emit_page(str(target / SKILL_FILE))
    if not options.quiet:
        say(f"  → fill it in, then check it: explorer skills validate {target}")
    return 0


def _own_folder() -> Path:
    place = config_folder(os.environ)
    if place == NO_FOLDER:
        raise ConfigError("there is no home folder to make a skill in", hint="name a folder: --in DIR")
    return place / "skills"


def _listed(configuration: Configuration) -> Iterator[Listed]:
    """Yield the skills in use, those that wait for trust, and those that are left out."""
    catalog = find_skills(skill_folders(configuration.settings))
    for one in catalog.skills.values():
        yield Listed(one.name, one.origin, IN_USE, one.folder, one)
    for folder in configuration.waiting_skills:
        try:
            skill = read_skill(folder, SkillOrigin.PROJECT, files_of(folder))
        except UnusableSkillError as error:
            yield Listed(folder.name, SkillOrigin.PROJECT, LEFT_OUT, folder, None, str(error))
            continue
        yield Listed(folder.name, SkillOrigin.PROJECT, WAITING, folder, skill)
    for left in catalog.left_out:
        place = Path(left.place)
        yield Listed(place.name, "", LEFT_OUT, place, None, left.why)


def _row(one: Listed) -> tuple[str, ...]:
    about = one.skill.fields.description if one.skill else one.why
    return (one.name, one.origin or str(one.folder.parent), one.state, one_line(about, DESCRIPTION_CHARS))


def _to_validate(path: Path) -> Sequence[Path]:
    """Return the folders of skills that a path stands for.

    Raises:
        NotFoundError: There is none.
    """
    folder = path.parent if path.name == SKILL_FILE else path
    if os.path.lexists(folder / SKILL_FILE):
        return [folder.absolute()]
    names = skill_names(folder)
    if not names:
        raise NotFoundError(f"there is no {SKILL_FILE} in {folder}", hint="explorer skills validate FOLDER")
    return [folder.absolute() / name for name in names]


def _problems(folder: Path) -> list[str]:
    """Return what is wrong with a skill; with keys of other programs, which are passed over in a run."""
    try:
        skill = read_skill(folder, SkillOrigin.USER, files_of(folder))
    except UnusableSkillError as error:
        return [*error.problems]
    keys = ", ".join(f"`{key}`" for key in skill.unknown_keys)
    return [f"the format has no key {keys}: put such values under `metadata`"] if keys else []
