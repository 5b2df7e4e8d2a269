"""The parts of the settings that other packages are handed: none of them sees the whole."""

from pathlib import Path
from typing import Any

from explorer.llm.models import ModelRef, ModelSetup
from explorer.llm.vendors import ConfiguredVendor, Vendor, with_prefix
from explorer.run.extensions import Extensions, installed_extensions
from explorer.schema.errors import ConfigError
from explorer.schema.settings import Settings
from explorer.schema.skill_folder import SkillFolder, SkillOrigin
from explorer.skills.catalog import built_in_skills
from explorer.skills.tree import SKILLS, is_in_run
from explorer.sources.http.caller import Caller
from explorer.sources.search.selection import ConfiguredEngine, SearchSetup


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


def model_setup(settings: Settings) -> ModelSetup:
    """Return what choosing and opening models needs."""
    return ModelSetup(
        model=settings.model,
        role_models=settings.role_models,
        vendors={name: _configured(one, settings) for name, one in installed_extensions().vendors.items()},
        price=settings.price,
        network=settings.network,
        # The orchestrator asks at the same time as its helpers.
        max_parallel_requests=settings.limits.max_parallel_agents + 1,
    )


def vendor_of(ref: ModelRef, settings: Settings) -> ConfiguredVendor | None:
    """Return a model's vendor as it is set; None for the stand-in, which has none."""
    vendor = with_prefix(installed_extensions().vendors.values(), ref.provider)
    return _configured(vendor, settings) if vendor else None


def _configured(vendor: Vendor[Any], settings: Settings) -> ConfiguredVendor:
    return ConfiguredVendor(vendor, settings.extension(vendor.name, vendor.settings))


def search_setup(settings: Settings, extensions: Extensions | None = None) -> SearchSetup:
    """Return what choosing and opening search engines needs."""
    extensions = extensions or installed_extensions()
    engines = (ConfiguredEngine(one, settings.extension(one.name, one.settings)) for one in extensions.engines)
    return SearchSetup(tuple(engines), settings.search, Caller(settings.network, settings.contact), settings.is_sample)
