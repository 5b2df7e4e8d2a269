"""From flags, environment and files to one frozen `Settings`, with the origin of every value.

Precedence: flags > environment > preset > `.env` > `explorer.toml` > the user's `config.toml` > defaults. What lies in
the folder may be a stranger's: while the user does not trust it, it sets what is harmless (`untrusted.py`).
"""

import os
import stat
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from explorer.cli.secrecy import keep_secret
from explorer.cli.settings.layers import (
    NO_FLAGS,
    RULES,
    TIGHTENING,
    Flags,
    Layer,
    flag_layer,
    joined_rules,
    machine_layer,
    overlay,
    settings_of,
    user_file,
    user_layer,
    variable_layer,
)
from explorer.cli.settings.mcp_servers import mcp_servers
from explorer.cli.settings.options import CommonOptions, ModelOptions, RunOptions
from explorer.cli.settings.presets import (
    GIVEN,
    PROJECT,
    LoadedPreset,
    PresetFolder,
    find_preset,
    load_preset,
    project_presets,
    server_tools,
    without_roles_of_files,
)
from explorer.cli.settings.trust import SettingsFolder, TrustedFolders, read_folder
from explorer.cli.settings.untrusted import (
    OUTSIDE,
    OVERRIDING,
    UNTRUSTED,
    Withheld,
    preset_without_trust,
    without_trust,
)
from explorer.cli.settings.user_folders import cache_folder, config_folder, state_folder
from explorer.cli.settings.values import (
    CORE,
    DEFAULT,
    MODEL_VARIABLE,
    ROLE,
    Ignored,
    Origin,
    Raw,
    Value,
    all_settings,
    values_of,
    with_ignored,
)
from explorer.cli.typo import closest
from explorer.run.extensions import installed_extensions
from explorer.schema.errors import ConfigError
from explorer.schema.mcp import McpServer
from explorer.schema.network import VARIABLES as NETWORK_VARIABLES
from explorer.schema.network import network_of
from explorer.schema.settings import Settings
from explorer.schema.skill_folder import SkillFolder, SkillOrigin
from explorer.skills.tree import project_places
from explorer.text.sanitize import single_line
from explorer.workspace.access import journal_path

FROM_ENVIRONMENT = "it is read from the environment only"


@dataclass(frozen=True)
class Unknown:
    """A variable that looks like one of ours and is none."""

    place: str
    """`environment EXPLORER_MAX_STEP`."""
    near: str | None
    """The closest one there is."""


@dataclass(frozen=True)
class Configuration:
    """What the outside said, resolved."""

    settings: Settings
    values: tuple[Value, ...]
    unknown: tuple[Unknown, ...]
    """Variables that look like ours and are not."""
    folder: SettingsFolder
    """The folder whose files were read."""
    is_trusted: bool
    """Whether its files may set everything."""
    withheld: tuple[Withheld, ...] = ()
    """Values of the folder's files that are not in force: most are once the user trusts it."""
    unread: tuple[str, ...] = ()
    """Variables in the folder's `.env` that are read from the environment only."""
    withheld_of_preset: tuple[Withheld, ...] = ()
    """Values of a preset that the user named by its path, and which need their consent."""

    @property
    def origins(self) -> dict[str, str]:
        """Where each setting that is not the default was set, by its name."""
        return {value.name: value.origin for value in self.values if value.origin != DEFAULT}

    @property
    def withheld_needs(self) -> list[Withheld]:
        """The values not in force that commands do not work without."""
        return [one for one in self.withheld if not one.is_optional]

    @property
    def of_stranger(self) -> set[str]:
        """The names of the settings that files of a folder without trust set."""
        return {value.name for value in self.values if value.level is Origin.FOLDER and not self.is_trusted}

    @property
    def waiting_skills(self) -> list[Path]:
        """The folders of skills that count once the user trusts the folder."""
        return [] if self.is_trusted else self.folder.skills

    def with_origin(self, name: str, origin: str) -> "Configuration":
        """Return this configuration with the origin of a value that a command set itself."""
        values = (replace(value, origin=origin) if value.name == name else value for value in self.values)
        return replace(self, values=tuple(values))

    def origin(self, name: str) -> str:
        """Return where a setting's value comes from."""
        return next((value.origin for value in self.values if value.name == name), DEFAULT)


NOT_SETTINGS = frozenset({"EXPLORER_CRASH"})
"""Variables of ours that set nothing: tests end the process with this one."""


def read_configuration(flags: Flags, environment: Mapping[str, str], folder: Path) -> Configuration:
    """Resolve all settings; `folder` is where `.env` and `explorer.toml` are looked for.

    Raises:
        ConfigError: A value is not allowed, or a file cannot be read; it names the place.
    """
    files = read_folder(folder)
    is_trusted = TrustedFolders(environment).trusts(files) if flags.trusts_folder is None else flags.trusts_folder
    above = [flag_layer(flags), variable_layer(environment, "environment", Origin.ENVIRONMENT)]
    below = [user_layer(user_file(environment)), machine_layer(environment)]
    preset, refused_preset = _preset(flags, environment, folder, is_trusted=is_trusted)
    mcp = mcp_servers(files, user_file(environment), environment, is_trusted=is_trusted)
    judged = _judged(preset, [*above, *below], mcp.servers)
    above += [without_roles_of_files(judged.preset)] if judged.preset else []
    taken, withheld = _of_folder(files, [*above, *below], is_trusted=is_trusted)
    withheld += refused_preset
    rules = joined_rules([*above, *taken, *below], is_trusted=is_trusted, strangers=judged.rules)
    layers = rules.layers
    found, models = overlay(layer.values for layer in layers), overlay(layer.models for layer in layers)
    withheld += mcp.withheld
    given = {**_of_environment(environment), **({"preset": preset.preset} if preset else {})}
    given |= {TIGHTENING: rules.tightening} if rules.tightening else {}
    given |= {"mcp": dict(mcp.servers), "skill_folders": _skill_folders(files, environment, is_trusted=is_trusted)}
    settings = settings_of(found, models).model_copy(update=given)
    unread = tuple(name for name in files.variables if name in NETWORK_VARIABLES)
    unknown = (*_unknown_variables(environment, "environment"), *_unknown_variables(files.variables, ".env"))
    ignored = _ignored((*withheld, *judged.withheld), unread)
    values = with_ignored((*values_of(settings, found, models), *rules.rows), ignored)
    return Configuration(settings, values, unknown, files, is_trusted, withheld, unread, judged.withheld)


def _preset(
    flags: Flags, environment: Mapping[str, str], folder: Path, *, is_trusted: bool
) -> tuple[LoadedPreset | None, tuple[Withheld, ...]]:
    """Return the preset that is named, or that it needs trust; nothing where none is named.

    Who names a preset by its path wants its roles, and need not know where its settings send keys.
    """
    if not flags.preset:
        return None, ()
    found = find_preset(flags.preset, environment, folder)
    if found.owner == PROJECT and not is_trusted:
        return None, (_withheld(found),)
    path = found.path.resolve()
    is_own = path.is_relative_to(config_folder(environment).resolve())
    is_seen = is_trusted and path in [one.path.resolve() for one in project_presets(folder)]
    is_of_stranger = found.owner == GIVEN and not (is_own or is_seen or flags.trusts_folder)
    return replace(load_preset(found), is_of_stranger=is_of_stranger), ()


@dataclass(frozen=True)
class _JudgedPreset:
    """A preset with those of its settings that are in force."""

    preset: LoadedPreset | None
    withheld: tuple[Withheld, ...] = ()
    rules: tuple[Raw, ...] = ()
    """Its approval rules, where they only tighten the user's own."""


def _judged(preset: LoadedPreset | None, own: Sequence[Layer], servers: Mapping[str, McpServer]) -> _JudgedPreset:
    """Return what of a preset's settings is in force next to the user's own layers, and what is not."""
    if preset is None or not preset.is_of_stranger:
        return _JudgedPreset(preset)
    layer, withheld = preset_without_trust(preset.layer, own)
    rules = tuple(raw for name, raw in layer.values.items() if name == RULES)
    tools = [
        Withheld("mcp", f"preset {preset.preset.name} {role}", tool, UNTRUSTED)
        for role, tool in server_tools(preset.preset, servers)
    ]
    return _JudgedPreset(replace(preset, layer=layer), (*withheld, *tools), rules)


def _withheld(preset: PresetFolder) -> Withheld:
    return Withheld("preset", f"preset {preset.name}", str(preset.path), UNTRUSTED)


def _of_folder(
    files: SettingsFolder, own: Sequence[Layer], *, is_trusted: bool
) -> tuple[Sequence[Layer], tuple[Withheld, ...]]:
    """Return what of a folder's files is in force next to the user's own layers, and what is not."""
    everything = [layer for _, layer in files.layers]
    taken, withheld = (everything, ()) if is_trusted else without_trust(files, own)
    corpus = overlay(layer.values for layer in own).get("corpus")
    if corpus is None or corpus.level not in OVERRIDING:
        withheld += tuple(Withheld("corpus", raw.origin, raw.text, OUTSIDE, is_final=True) for raw in files.outside)
    return taken, withheld


def _skill_folders(
    files: SettingsFolder, environment: Mapping[str, str], *, is_trusted: bool
) -> tuple[SkillFolder, ...]:
    """Return the user's own folder of skills, and those of the current folder if the user trusts it."""
    own = config_folder(environment) / "skills"
    places = [one for one in project_places(files.path) if one in files.skill_digests] if is_trusted else []
    return (
        *([SkillFolder(path=own, origin=SkillOrigin.USER)] if own.is_dir() else []),
        *(SkillFolder(path=one, origin=SkillOrigin.PROJECT, sha256=files.skill_digests[one]) for one in places),
    )


def _of_environment(environment: Mapping[str, str]) -> Mapping[str, object]:
    """Return what is read from the environment alone: a folder's files must not lead connections elsewhere."""
    places = {"cache_dir": cache_folder(environment), "state_dir": state_folder(environment)}
    return {"network": network_of(environment), **places}


def _ignored(withheld: Collection[Withheld], unread: Collection[str]) -> list[tuple[str, Ignored]]:
    """Return what is not in force, by the names of the settings."""
    found = [(one.name, Ignored(one.origin, one.value, one.why)) for one in withheld]
    return found + [(f"network.{name}", Ignored(f".env {name}", "-", FROM_ENVIRONMENT)) for name in unread]


def refuse_unknown(configuration: Configuration) -> None:
    """Refuse variables that look like ours and are not: a mistyped limit would be none.

    Raises:
        ConfigError: There is one; the hint names the closest there is.
    """
    if not configuration.unknown:
        return
    first, more = configuration.unknown[0], len(configuration.unknown) - 1
    place, _, name = first.place.rpartition(" ")
    others = f" (and {more} more: explorer doctor)" if more else ""
    near = f"did you mean {first.near}? To" if first.near else "all names: explorer config show; to"
    way = f"unset {name}" if place == "environment" else f"take it out of {place}"
    raise ConfigError(f"{first.place}: there is no such setting{others}", hint=f"{near} go without it: {way}")


def _unknown_variables(variables: Mapping[str, str], origin: str) -> tuple[Unknown, ...]:
    known = [setting.variable for setting in all_settings()]
    strangers = [
        name
        for name in sorted(variables)
        if name.startswith("EXPLORER_")
        and name not in known
        and not name.startswith(MODEL_VARIABLE)
        and name not in NOT_SETTINGS
    ]
    return tuple(Unknown(f"{origin} {name}", closest(name, known, 4)) for name in strangers)


OnUntrusted = Callable[[Configuration, CommonOptions], bool]
"""What a command does where a folder's files are not in force: return whether the user trusts it now; or raise."""


def refused(configuration: Configuration, _options: CommonOptions | None = None) -> bool:
    """Refuse to work in a folder whose files set what has no effect, but for what commands work without.

    Raises:
        ConfigError: They do.
    """
    if needed := configuration.withheld_needs:
        raise _refusal(configuration, needed)
    return False


def refuse_preset(configuration: Configuration) -> None:
    """Refuse a preset that was named by its path and sets what needs consent.

    Raises:
        ConfigError: It does.
    """
    if configuration.withheld_of_preset:
        names = ", ".join(one.origin for one in configuration.withheld_of_preset)
        ways = "allow it for one command: --trust-folder; for good: move it to ~/.config/explorer/presets"
        preset = configuration.settings.preset
        place = single_line(preset.place) if preset is not None else "the preset"
        raise ConfigError(f"{place} is named by its path, and sets what needs trust: {names}", hint=ways)


def _refusal(configuration: Configuration, withheld: Collection[Withheld]) -> ConfigError:
    """Return the error that names the settings, and the ways out."""
    for one in withheld:
        if one.is_final:
            way = f"search it if you want to: --corpus {single_line(one.value)}; go without: --ignore-folder"
            return ConfigError(f"{one.origin} has no effect: {one.why}", hint=way)
    names = ", ".join(one.origin for one in withheld)
    message = f"{configuration.folder.path} is not trusted, and its files set what needs trust: {names}"
    ways = "see and allow it: explorer trust; for one command: --trust-folder; go without: --ignore-folder"
    return ConfigError(message, hint=ways)


def passed_over(configuration: Configuration, options: CommonOptions) -> bool:
    """Leave them out, and say so."""
    if options.quiet:
        return False
    waiting = [single_line(one.origin) for one in configuration.withheld if not one.is_final]
    if waiting:
        print(f"not in force, since this folder is not trusted (explorer trust): {', '.join(waiting)}", file=sys.stderr)
    for one in configuration.withheld:
        if one.is_final:
            print(f"not in force: {single_line(one.origin)}, since {one.why}", file=sys.stderr)
    return False


def _refuse_links(configuration: Configuration) -> None:
    """Refuse to work where runs or reports would be written through a link of a folder that is not trusted.

    Raises:
        ConfigError: There is such a link, so there is no default to fall back on.
    """
    for one in configuration.withheld:
        target = configuration.folder.links.get(one.name)
        if target is not None and configuration.origin(one.name) == DEFAULT:
            variable = next(value.variable for value in configuration.values if value.name == one.name)
            message = f"{one.origin} leads out of the folder, to {target}, and the folder is not trusted"
            raise ConfigError(
                message, hint=f"see and allow it: explorer trust; or say so yourself: {variable}={target}"
            )


def _of_runs(decide: OnUntrusted) -> OnUntrusted:
    """Return what decides only where the folder says where runs and reports are: nothing else matters to a command."""

    def decided(configuration: Configuration, options: CommonOptions) -> bool:
        places = tuple(one for one in configuration.withheld if one.name in {"workspace", "reports_dir"})
        return bool(places) and decide(replace(configuration, withheld=places), options)

    return decided


changes_runs = _of_runs(refused)
"""For commands that change or remove runs: in another workspace than the folder names, they would be others."""
looks_at_runs = _of_runs(passed_over)
"""For commands that show what is in a workspace."""


def configured(options: CommonOptions, on_untrusted: OnUntrusted = refused) -> Configuration:
    """Return the settings after the flags of a command, the environment and the files.

    Args:
        options: The flags.
        on_untrusted: Called where the folder's files set what needs trust, and it is not trusted.

    Raises:
        ConfigError: A value is not allowed, a variable of ours is not known, or the folder is refused.
    """
    environment = dict(os.environ)
    configuration = inspected(options)
    refuse_unknown(configuration)
    refuse_preset(configuration)
    decide = on_untrusted if configuration.withheld_needs and not options.ignore_folder else passed_over
    if configuration.withheld and decide(configuration, options):
        # Read again, because the files may have changed while the user looked at what they say.
        configuration = inspected(options, environment)
        if configuration.withheld:
            refused(configuration)
    _refuse_links(configuration)
    _refuse_no_folder(configuration.settings.workspace)
    if options.preset and configuration.settings.preset is None:
        # Left out with the rest of the folder: without its preset the run would be another one.
        raise _refusal(configuration, [one for one in configuration.withheld if one.name == "preset"])
    if not options.quiet:
        for failure in installed_extensions().failures:
            print(failure, file=sys.stderr)
    return configuration


def _refuse_no_folder(workspace: Path) -> None:
    """Refuse a workspace that runs can neither be in nor be made in.

    Raises:
        ConfigError: It is a file, or the system refuses its path.
    """
    try:
        is_folder = stat.S_ISDIR(workspace.stat().st_mode)
    except FileNotFoundError:
        return
    except OSError as error:
        why = error.strerror
    else:
        if is_folder:
            return
        why = "it is not a folder"
    raise ConfigError(f"there can be no runs in {workspace}: {why}", hint="choose another folder: --workspace DIR")


def inspected(options: CommonOptions, environment: Mapping[str, str] = os.environ) -> Configuration:
    """Return the settings without refusing anything, for `config show`, `doctor` and `trust`, which report it."""
    configuration = read_configuration(flags_of(options), environment, settings_folder(Path.cwd()))
    keep_secret(configuration.settings, os.environ)
    if options.trust:
        _remember(configuration, options)
    return configuration


def _remember(configuration: Configuration, options: CommonOptions) -> None:
    """Trust the folder as its files were read, if anything in it needs trust, and say what that is."""
    trusted = TrustedFolders(os.environ)
    if trusted.trusts(configuration.folder):
        return
    needs = [one.origin for one in folder_configuration(configuration.folder.path).withheld if not one.is_final]
    needs += [f"skill {one.name}" for one in configuration.folder.skills]
    if not needs:
        return
    trusted.add(configuration.folder)
    if not options.quiet:
        words = "this folder is trusted now, until its files change (to take it back: explorer trust --remove)"
        print(f"{words}: {', '.join(map(single_line, needs))}", file=sys.stderr)


def folder_configuration(folder: Path | None) -> Configuration:
    """Return the settings as they are without trust in a folder, for the command that shows what trust would change."""
    flags = replace(NO_FLAGS, trusts_folder=False)
    place = folder or settings_folder(Path.cwd())
    configuration = read_configuration(flags, os.environ, place)
    keep_secret(configuration.settings, os.environ)
    presets = tuple(_withheld(preset) for preset in project_presets(place))
    return replace(configuration, withheld=configuration.withheld + presets)


def settings_folder(here: Path) -> Path:
    """Return the folder of `.env` and `explorer.toml`: this one, or above a run, whose folder agents can write in."""
    runs = [folder for folder in (here, *here.parents) if journal_path(folder).exists()]
    return runs[-1].parent if runs else here


def flags_of(options: CommonOptions) -> Flags:
    """Return flags by the names of the settings that they set.

    Raises:
        ConfigError: Two flags say opposite things.
    """
    _check_opposites(options)
    given: dict[str, str] = {}
    models: dict[str, str] = {}
    for setting in CORE:
        for flag in setting.flags:
            value: str | bool | tuple[str, ...] | None = getattr(options, flag.name[2:].replace("-", "_"), None)
            if isinstance(value, bool):
                given |= {setting.name: flag.value} if value else {}
            elif isinstance(value, str):
                given[setting.name] = value
            elif value and setting.name in JOINED:
                given[setting.name] = JOINED[setting.name](value)
            else:
                _take_models(value or (), given, models)
    return Flags(
        given, models, trusts_folder=options.trust or options.trust_folder or None, preset=options.preset or ""
    )


def _only_roles(values: Sequence[str]) -> str:
    if len(values) > 1:
        raise ConfigError("--roles is given twice", hint="several sets of roles are for `explorer eval` only")
    return values[0]


JOINED: Mapping[str, Callable[[Sequence[str]], str]] = {
    "effort": ",".join,
    "approval_rules": "; ".join,
    "roles_dir": _only_roles,
}
"""Settings whose flag can be repeated, each with how its values become one."""


def _check_opposites(options: CommonOptions) -> None:
    if isinstance(options, RunOptions) and options.no_shell and options.unsafe_shell:
        raise ConfigError("a shell cannot be both absent and unsafe", hint="give one of --no-shell and --unsafe-shell")
    if isinstance(options, ModelOptions) and options.lean and options.no_lean:
        raise ConfigError("a run cannot be both in lean mode and not", hint="give one of --lean and --no-lean")
    if (options.trust or options.trust_folder) and options.ignore_folder:
        raise ConfigError("a folder's files cannot be both trusted and ignored", hint="give one of the two flags")


def _take_models(values: tuple[str, ...], given: dict[str, str], models: dict[str, str]) -> None:
    """Sort `NAME` and `ROLE=NAME` of repeated flags."""
    for value in values:
        role, equals, name = value.partition("=")
        if equals and ROLE.fullmatch(role):
            models[role] = name
        else:
            given["model"] = value


def settings_of_process(*, preset: str = "", trust_folder: bool = False, given: Collection[str] = ()) -> Settings:
    """Return the settings of the process's environment and the files of its folder, as for a command without flags.

    Args:
        preset: The name of a preset, or its folder with a slash; empty: none.
        trust_folder: Whether the files of the folder are trusted for this once.
        given: Fields of `Settings` that the caller sets itself, so that what a file says of them does not matter.

    Raises:
        ConfigError: A value is not allowed, a variable of ours is not known, or the folder is not trusted.
    """
    flags = replace(NO_FLAGS, trusts_folder=trust_folder or None, preset=preset)
    configuration = read_configuration(flags, os.environ, settings_folder(Path.cwd()))
    refuse_unknown(configuration)
    refuse_preset(configuration)
    withheld = [one for one in configuration.withheld_needs if one.name.partition(".")[0] not in given]
    if withheld:
        raise _refusal(configuration, withheld)
    return configuration.settings
