"""Where a run's skills are, by its settings."""

from pathlib import Path

from explorer.schema.errors import ConfigError
from explorer.schema.settings import Settings
from explorer.schema.skill_folder import SkillFolder, SkillOrigin
from explorer.skills.catalog import built_in_skills
from explorer.skills.tree import SKILLS, is_in_run


def skill_folders(settings: Settings) -> list[SkillFolder]:
    """Return where skills are: built in, the user's, the preset's, the project's.

    Raises:
        ConfigError: The folder that the user names is not there, or is one of a run.
    """
    named = settings.skills_dir
    if named is not None and not named.is_dir():
        raise ConfigError(f"{named} is not a folder of skills", hint="give a folder: --skills DIR")
    if named is not None and is_in_run(named):
        raise ConfigError(f"{named} is in a run's folder, where agents write", hint="copy the skills out of it")
    own = [SkillFolder(path=named, origin=SkillOrigin.USER)] if named is not None else []
    preset = settings.preset
    if preset is not None and preset.skills:
        path = Path(preset.place) / SKILLS
        own.append(SkillFolder(path=path, origin=SkillOrigin.PRESET, sha256=preset.skills))
    of_project = [one for one in settings.skill_folders if one.origin is SkillOrigin.PROJECT]
    of_user = [one for one in settings.skill_folders if one.origin is not SkillOrigin.PROJECT]
    return [built_in_skills(), *of_user, *own, *of_project]
