"""Chooses who works on a run: its roles, and the model of each."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from explorer.agents.roles import PromptLoader, Role, built_in_roles, leading_role, with_offered
from explorer.journal.run_state import JUDGE
from explorer.llm.models import OFFLINE, Choice, choose
from explorer.run.extensions import installed_extensions
from explorer.run.model_facts import profile_of
from explorer.run.settings_parts import model_setup
from explorer.schema.errors import ConfigError, CredentialsError
from explorer.schema.model_options import EVERY_ROLE, Tier
from explorer.schema.preset import Preset
from explorer.schema.setting import extension_place
from explorer.schema.settings import Settings

LEAN_ROLE = "lean"
"""The one role of lean mode, and its folder in that of the built-in roles."""
LEAN_OUTPUT_TOKENS = 1_024
"""Limit of a reply in lean mode: a form takes about 100, and a small machine writes 3 to 10 a second."""


class ChosenTeam(NamedTuple):
    """The roles of a run with their models."""

    roles: Mapping[str, Role]
    choice: Choice
    lean: str
    """Why it is one agent in lean mode; empty: it is the whole team."""


async def choose_team(settings: Settings, offered: Collection[str] = (), *, has_client: bool = False) -> ChosenTeam:
    """Return the roles and the model of each: the whole team, or one agent in lean mode where that is better.

    Args:
        settings: The settings; `lean` decides, or the profile of the model that leads.
        offered: Tools that are no role file's, for the helpers.
        has_client: Whether a client of the caller's own answers, whatever the choice is.

    Raises:
        ConfigError: A role cannot be used, or lean mode is asked for and there is no model.
        ModelError: The server the user named cannot be asked for its models.
    """
    roles = with_offered(load_roles(settings), offered)
    wanted = _lean_wanted(settings)
    if wanted != "on":
        choice = await choose_models(settings, roles)
        ref = choice.models[leading_role(roles).name]
        profile = profile_of(ref, with_servers(settings, choice.found))
        why = profile.why_lean if profile and wanted == "auto" else ""
        if not why:
            return ChosenTeam(roles, choice, "")
        why = f"by the profile of {ref}: {why}"
    else:
        why = "as asked for"
    lean = PromptLoader([built_in_roles() / LEAN_ROLE]).roles()
    own = {role: name for role, name in settings.role_models.items() if role in lean}
    choice = await choose_models(settings.model_copy(update={"role_models": own}), lean)
    if choice.models[LEAN_ROLE].provider == OFFLINE and not has_client:
        hint = "name one: --model NAME; or leave lean mode out: --no-lean"
        raise ConfigError(f"lean mode needs a language model, and this is offline mode: {choice.why}", hint=hint)
    return ChosenTeam(lean, choice, why)


def _lean_wanted(settings: Settings) -> str:
    """Return whether lean mode is wanted; a preset with a team is never made one agent by a model's profile.

    Raises:
        ConfigError: Both were asked for.
    """
    preset = settings.preset
    if preset is None or not preset.has_team:
        return settings.lean
    if settings.lean == "on":
        raise ConfigError(f"the preset {preset.name} is a team, and lean mode is one agent", hint="leave out --lean")
    return "off"


def lean_settings(settings: Settings) -> Settings:
    """Return the settings of a run in lean mode, whose replies are short."""
    return settings.model_copy(update={"max_output_tokens": LEAN_OUTPUT_TOKENS})


def role_origins(settings: Settings) -> list[Path | Preset]:
    """Return where roles come from: built-in ones, installed packages, the preset, and the user's folder."""
    own = (settings.preset, settings.roles_dir)
    return [*installed_extensions().role_folders, *(origin for origin in own if origin is not None)]


def load_roles(settings: Settings) -> dict[str, Role]:
    """Return the built-in roles and the user's.

    Raises:
        ConfigError: A role file cannot be used, or a model is set for a role that is not there.
    """
    roles = PromptLoader(role_origins(settings)).roles()
    # The user's own file may name a model for a built-in role that a preset's team does not have.
    built_in = (path.stem for folder in installed_extensions().role_folders for path in folder.glob("*.md"))
    known = {*roles, LEAN_ROLE, *built_in}
    for what, named in (("a model", settings.role_models), ("an effort", settings.effort.keys() - {EVERY_ROLE})):
        for name in sorted(named):
            if name not in known:
                near = get_close_matches(name, roles, 1)
                hint = f"did you mean {near[0]}? All roles: explorer agents" if near else "all roles: explorer agents"
                raise ConfigError(f"{what} is set for the role {name!r}, which is not there", hint=hint)
    return roles


async def choose_models(settings: Settings, roles: Mapping[str, Role]) -> Choice:
    """Choose the model of every role: the user's for it, else the user's for all, the role file's, its tier's."""
    own = {name: role.model for name, role in roles.items() if role.model not in set(Tier)}
    if settings.model not in {"", "auto"}:
        own = {}
    asked = settings.model_copy(update={"role_models": {**own, **settings.role_models}})
    return await choose(model_setup(asked), {name: _tier(role) for name, role in roles.items()})


def _tier(role: Role) -> Tier:
    return Tier(role.model) if role.model in set(Tier) else Tier.BALANCED


async def choose_judge(settings: Settings) -> Choice:
    """Return the model of `--judge`, as the one role `judge`.

    Raises:
        ConfigError: It is no language model.
        CredentialsError: Its key is missing.
    """
    asked = settings.model_copy(update={"model": settings.judge, "role_models": {}})
    try:
        choice = await choose(model_setup(asked), {JUDGE: Tier.BALANCED})
    except CredentialsError as error:
        raise CredentialsError(f"the judge {error.message}", hint="set the key, or leave out --judge") from error
    if choice.models[JUDGE].provider == OFFLINE:
        raise ConfigError("a judge is a language model; `offline` is none", hint="for example --judge openai:NAME")
    return choice


def with_servers(settings: Settings, found: Mapping[str, str]) -> Settings:
    """Return the settings with the addresses of servers that were found on this machine, by their vendors."""
    vendors = installed_extensions().vendors
    places = {extension_place(name, vendors[name].url, is_secret=False): url for name, url in found.items()}
    update = {place.partition(".")[2]: url for place, url in places.items()}
    return settings.model_copy(update={"services": settings.services.model_copy(update=update)}) if found else settings


def effort_of(settings: Settings, role: Role) -> str:
    """Return how much a role's model is to reason: as set for the role, for all, or in its file; empty: nothing set."""
    return settings.effort.get(role.name) or settings.effort.get(EVERY_ROLE) or role.effort
