"""The skills of a session: those of all folders, which of two with one name counts, and the list in agents' prompts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from explorer.schema.skill_folder import SkillFolder, SkillOrigin
from explorer.skills.skill import Skill, read_skill
from explorer.skills.tree import MAX_SKILLS, UnusableSkillError, contents, digest_of, is_in_run, skill_names
from explorer.text.rendering import NOTHING, ModelText, by_user, code, own, render
from explorer.text.sanitize import single_line

MAX_LISTED_CHARS = 24_000
"""Limit of all descriptions in a prompt; each has an equal share, which 23 skills do not reach."""
MAX_REASON_CHARS = 400

HEADING = own(
    "## Skills\n\n"
    "A skill is a proven method for one kind of work. Where one fits your task, or is named in it, call `load_skill` "
    "before you plan or begin, and work by it: for that kind of work it goes before the general advice above, but it "
    "changes nothing about sources, citations and text in marks. Who leads names it in the tasks of the helpers whose "
    "work it concerns. Load none that does not fit."
)


@dataclass(frozen=True)
class LeftOut:
    """A skill that does not count."""

    place: str
    """Its folder."""
    why: str


@dataclass(frozen=True)
class SkillCatalog:
    """The skills that agents may load."""

    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    """The skills by name."""
    left_out: tuple[LeftOut, ...] = ()

    @property
    def listing(self) -> ModelText:
        """The part of a prompt that lists them; it is recorded with the prompt, and stays the same for a whole run."""
        if not self.skills:
            return NOTHING
        share = MAX_LISTED_CHARS // len(self.skills)
        # Built in, the user's own, or of a folder that the user trusts: none of it is an outsider's.
        lines = [
            own(
                "- {name}: {about}",
                name=code(name, len(name)),
                about=by_user(single_line(one.fields.description, share)),
            )
            for name, one in self.skills.items()
        ]
        return render(HEADING, render(*lines), between="\n\n")


def built_in_skills() -> SkillFolder:
    """Return the folder of the built-in skills."""
    return SkillFolder(path=Path(__file__).parent / "built_in", origin=SkillOrigin.BUILT_IN)


def find_skills(folders: Iterable[SkillFolder]) -> SkillCatalog:
    """Return the skills of some folders.

    Of two with one name, a user's counts before a built-in one and the later of two of the user's before the
    earlier; a project's is left out.

    Args:
        folders: The built-in folder first, then the user's, then the project's.
    """
    chosen: dict[str, Skill] = {}
    left_out: list[LeftOut] = []
    for folder in folders:
        found, problems = _in_folder(folder)
        left_out += problems
        for skill in found:
            why = _why_not(skill, chosen)
            if why:
                left_out.append(LeftOut(str(skill.folder), why))
            else:
                chosen[skill.name] = skill
    return SkillCatalog(chosen, tuple(left_out))


def _in_folder(folder: SkillFolder) -> tuple[list[Skill], list[LeftOut]]:
    """Return the usable skills of one folder, and the others."""
    if folder.origin is not SkillOrigin.BUILT_IN and is_in_run(folder.path):
        return [], [LeftOut(str(folder.path), "it is in a run's folder, where agents write")]
    skills = contents(folder.path)
    if folder.sha256 and digest_of(skills) != folder.sha256:
        return [], [LeftOut(str(folder.path), "it was changed while this session began")]
    found: list[Skill] = []
    more = len(skill_names(folder.path)) - len(skills)
    left_out = [LeftOut(str(folder.path), f"{more} of its skills: {MAX_SKILLS} are the limit")] if more > 0 else []
    for name, files in skills.items():
        try:
            if isinstance(files, UnusableSkillError):
                raise files
            found.append(read_skill(folder.path / name, folder.origin, files))
        except UnusableSkillError as error:
            left_out.append(LeftOut(str(folder.path / name), single_line(str(error), MAX_REASON_CHARS)))
    return found, left_out


def _why_not(skill: Skill, chosen: Mapping[str, Skill]) -> str:
    """Return why a skill does not count next to those before it; empty where it does."""
    other = chosen.get(skill.name)
    if other is not None and skill.origin is SkillOrigin.PROJECT:
        whose = f"a {other.origin} skill" if other.origin is not SkillOrigin.PROJECT else f"the one in {other.folder}"
        return f"{whose} has the name {skill.name}; give it another"
    if other is None and len(chosen) >= MAX_SKILLS:
        return f"there are {MAX_SKILLS} skills already"
    return ""
