"""What the files of a folder may set while the user does not trust it: what is harmless, and nothing else.

Flags, the environment and the user's own file are the user's. A key goes only to a host that they name, because a
folder's addresses take no effect; and no value of a folder sends the user's text to another service than theirs.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from explorer.cli.settings.layers import Layer, is_left_open, overlay, parsed, settings_of, short
from explorer.cli.settings.trust import SettingsFolder
from explorer.cli.settings.values import Origin, Raw, setting_named
from explorer.schema.limits import DEFAULT_COST_USD, DEFAULT_TOKENS, Limits
from explorer.schema.network import without_secrets
from explorer.schema.setting import Setting, WithoutTrust
from explorer.schema.settings import Settings

LANGUAGE = re.compile(r"[^\W_]+(?:[_-][^\W_]+){0,2}(?: [^\W_]+)?")
"""`de`, `zh-Hans-CN`, `Brazilian Portuguese`."""
MAX_LANGUAGE_CHARS = 24
OPEN_LIMITS = {"limits.max_cost_usd": DEFAULT_COST_USD, "limits.max_tokens": DEFAULT_TOKENS}
"""What limits that are left to the models are at most."""
SHOWN_CHARS = 300
"""Length of a value in the list of what needs trust: longer than any name of a host."""
OUTSIDE = "it leads out of the folder: only --corpus or the environment can name such a folder"
UNTRUSTED = "the folder is not trusted"
SHELLS_BY_REACH = ("off", "auto", "unsafe")
OFFLINE = "offline"
"""The name of offline mode in settings; not imported from the models, which few folders name."""
OVERRIDING = frozenset({Origin.FLAG, Origin.ENVIRONMENT, Origin.PRESET})
"""Origins that go before a folder's files anyway."""


@dataclass(frozen=True)
class Withheld:
    """A value of a folder's file that is not in force."""

    name: str
    """Path of the field in `Settings`."""
    origin: str
    """Where it is written: `.env ANTHROPIC_BASE_URL`."""
    value: str
    """The text in the file; `set` for a key."""
    why: str
    is_final: bool = False
    """Whether it has no effect in a trusted folder either."""
    is_optional: bool = False
    """Whether commands work without it: the file is shared with other programs."""


@dataclass(frozen=True)
class Destinations:
    """Where the user's own settings send text; empty: they name no service, so a local server or none is asked."""

    model: str = ""
    """The vendor of the models, or `offline`."""
    search: str = ""
    """The search engine that is asked first."""


@dataclass(frozen=True)
class OwnSettings:
    """What holds without the folder."""

    values: Mapping[str, Raw]
    models: Mapping[str, Raw]

    def destinations(self, more: Mapping[str, Raw]) -> Destinations:
        """Return where text goes with these settings, and with some values of the folder."""
        return destinations_of(settings_of({**self.values, **more}, self.models))

    @cached_property
    def own_destinations(self) -> Destinations:
        """Where text goes without the folder."""
        return self.destinations({})

    @cached_property
    def ready(self) -> set[str]:
        """The vendors of models that the user can ask, also those that are never chosen by themselves."""
        return ready_vendors(settings_of(self.values, self.models))

    @cached_property
    def vendors(self) -> set[str]:
        """The vendors of models that the user asks, for all roles or for one."""
        named = {vendor_of_text(raw.text) for raw in self.models.values()}
        return {self.own_destinations.model, *named} - {""}


def without_trust(folder: SettingsFolder, own: Sequence[Layer]) -> tuple[list[Layer], tuple[Withheld, ...]]:
    """Return what of a folder's files takes effect, and what does not.

    Args:
        folder: The folder, with what its files say.
        own: What flags, the environment, the user's file and this machine say, the one that counts first.

    Raises:
        ConfigError: A value is not allowed.
    """
    judge = _Judge(OwnSettings(overlay(one.values for one in own), overlay(one.models for one in own)))
    taken: list[Layer] = []
    for file, layer in folder.layers:
        taken.append(judge.taken_of(layer, file.problem))
    links = [
        Withheld(name, f"link {setting_named(name).initial}", str(target), f"{UNTRUSTED}, and this leads out of it")
        for name, target in folder.links.items()
        if name not in judge.own.values
    ]
    return taken, (*judge.withheld, *links)


def preset_without_trust(layer: Layer, own: Sequence[Layer]) -> tuple[Layer, tuple[Withheld, ...]]:
    """Return what the settings of a preset of unknown origin do, and what they do not.

    Args:
        layer: What the preset says.
        own: As for the files of a folder.

    Raises:
        ConfigError: A value is not allowed.
    """
    judge = _Judge(OwnSettings(overlay(one.values for one in own), overlay(one.models for one in own)))
    return judge.taken_of(layer, ""), tuple(judge.withheld)


@dataclass
class _Judge:
    """Decides value by value, and keeps what it withheld."""

    own: OwnSettings
    taken: dict[str, Raw] = field(default_factory=dict[str, Raw])
    """Values of the folder that take effect, to which the next ones are added: together they may do what none does."""
    withheld: list[Withheld] = field(default_factory=list[Withheld])

    def taken_of(self, layer: Layer, problem: str) -> Layer:
        """Return what of a layer takes effect; nothing where there is a problem with all of it."""
        values = {name: raw for name, raw in layer.values.items() if self.takes(problem, name, raw)}
        models = {role: raw for role, raw in layer.models.items() if self.takes_model(problem, role, raw)}
        return Layer(values, models)

    def takes(self, problem: str, name: str, raw: Raw) -> bool:
        """Return whether a value takes effect: one that changes nothing does, and not one that another goes before."""
        setting, current = setting_named(name), self.own.values.get(name)
        if setting.without_trust is WithoutTrust.TIGHTENS:
            return self._noted(name, raw, problem)
        if current and current.level in OVERRIDING:
            return False
        if value_or_default(setting, raw) == value_or_default(setting, current):
            return True
        is_taken = self._noted(name, raw, problem or self._why_not(setting, raw), is_secret=setting.is_secret)
        if is_taken:
            self.taken.setdefault(name, raw)
        return is_taken

    def takes_model(self, problem: str, role: str, raw: Raw) -> bool:
        """Return whether the model of a role takes effect."""
        current = self.own.models.get(role)
        if current and current.level in OVERRIDING:
            return False
        vendor = vendor_of_text(raw.text)
        why = "" if vendor in {"", *self.own.vendors} else self._why_not_vendor(vendor)
        return self._noted(f"role_models.{role}", raw, problem or why)

    def _noted(self, name: str, raw: Raw, why: str, *, is_secret: bool = False) -> bool:
        if why:
            shown = "set" if is_secret else short(without_secrets(raw.text), SHOWN_CHARS)
            self.withheld.append(Withheld(name, raw.origin, shown, why))
        return not why

    def _why_not(self, setting: Setting, raw: Raw) -> str:
        """Return why a value takes no effect; empty where it does."""
        match setting.without_trust:
            case WithoutTrust.FULL | WithoutTrust.TIGHTENS:
                why = ""
            case WithoutTrust.LOWERS:
                own = value_or_default(setting, self.own.values.get(setting.name))
                is_lower = reach(value_or_default(setting, raw)) <= reach(own)
                why = "" if is_lower else f"{UNTRUSTED}, and this allows more than without it"
            case WithoutTrust.WORDS:
                is_name = len(raw.text) <= MAX_LANGUAGE_CHARS and LANGUAGE.fullmatch(raw.text)
                why = "" if is_name else f"{UNTRUSTED}, and this is more than the name of a language"
            case WithoutTrust.KEY | WithoutTrust.MODEL:
                # A judge may be any model that the roles may have.
                why = self._why_not_asked("model" if setting.name == "judge" else setting.name, raw)
            case WithoutTrust.NO_EFFECT:
                why = UNTRUSTED
        return why

    def _why_not_asked(self, name: str, raw: Raw) -> str:
        """Return why a value would send text to another service than the user's; empty where it would not."""
        before, after = self.own.own_destinations, self.own.destinations({**self.taken, name: raw})
        if before.search and after.search != before.search:
            return _instead(after.search, before.search)
        return "" if after.model == before.model else self._why_not_vendor(after.model)

    def _why_not_vendor(self, vendor: str) -> str:
        """Return why a vendor is not asked that is not asked without the folder; empty where it is.

        Offline mode sends nothing. Where the user set up nothing, only the folder's own key can open a vendor.
        """
        own = self.own.own_destinations.model
        is_harmless = vendor == OFFLINE or not (own or vendor in self.own.ready)
        return "" if is_harmless else _instead(vendor, own or "what you set up")


def _instead(new: str, old: str) -> str:
    return f"{UNTRUSTED}, and this would ask {new or 'another service'} instead of {old}"


def value_or_default(setting: Setting, raw: Raw | None) -> object:
    """Return the value of a text, or the default; for a limit that is left to the models, what it is at most."""
    if setting.name in OPEN_LIMITS and (raw is None or is_left_open(setting, raw)):
        return OPEN_LIMITS[setting.name]
    return parsed(setting, raw) if raw else setting.initial


def reach(value: object) -> float:
    """Return how much a limit allows, as a number to compare; no limit is infinite."""
    if isinstance(value, str):
        return SHELLS_BY_REACH.index(value)
    return float(value) if isinstance(value, int | float) else float("inf")


def within(settings: Settings, of_folder: Iterable[str], recorded: Settings) -> Settings:
    """Return the settings that a run is resumed with, without what would allow more than it was started with.

    Args:
        settings: The settings now.
        of_folder: The names of those that files of a folder without trust set.
        recorded: The settings that the run was started with.
    """
    before = recorded.limits
    raised = {
        leaf
        for name in of_folder
        for group, _, leaf in [name.partition(".")]
        if group == "limits" and leaf in before.model_fields_set
        if reach(getattr(settings.limits, leaf)) > reach(getattr(before, leaf))
    }
    kept = {name: getattr(settings.limits, name) for name in settings.limits.model_fields_set - raised}
    is_more = "shell" in of_folder and reach(settings.shell) > reach(recorded.shell)
    more = {"shell": recorded.shell} if is_more else {}
    return settings.model_copy(update={"limits": Limits(**kept), **more})


def vendor_of_text(text: str) -> str:
    """Return the vendor of a model as it is written; empty for one that is left open."""
    from explorer.llm.models import parse_model  # noqa: PLC0415 - few folders name models
    from explorer.llm.vendors import with_prefix  # noqa: PLC0415 - the same
    from explorer.run.extensions import installed_extensions  # noqa: PLC0415 - the same

    if text.strip() in {"", "auto"}:
        return ""
    vendors = installed_extensions().vendors.values()
    provider = parse_model(text, vendors).provider
    found = with_prefix(vendors, provider)
    return found.name if found else OFFLINE


def ready_vendors(settings: Settings) -> set[str]:
    """Return the vendors of models that could be asked with these settings."""
    from explorer.run.settings_parts import model_setup  # noqa: PLC0415 - few folders name models

    return {name for name, one in model_setup(settings).vendors.items() if one.is_ready}


def destinations_of(settings: Settings) -> Destinations:
    """Return the services that settings name; nothing is asked."""
    from explorer.run.settings_parts import model_setup, search_setup  # noqa: PLC0415 - few folders set keys or models

    models = model_setup(settings)
    ready = [one for one in models.vendors.values() if one.is_automatic and one.is_ready]
    first = next((one for one in ready if one.model), next(iter(ready), None))
    search = search_setup(settings)
    engines = [one.engine.name for one in search.engines if one.engine.needs and one.is_ready]
    return Destinations(
        model=vendor_of_text(settings.model) or (first.vendor.name if first else ""),
        search=next(iter(engines), "") if search.engine == "auto" else search.engine,
    )
