"""All settings of a run, resolved and frozen: the one place where each is named, explained and given its default.

Flags, help pages, docs/configuration.md, `.env.example` and `config show` are made from these fields. Reading values
from flags, environment and files is the command line's part.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from explorer.schema.approvals import ApprovalRulesSetting, RuleTexts
from explorer.schema.errors import ConfigError
from explorer.schema.fleet_settings import FleetSettings
from explorer.schema.limits import DEPENDENT_LIMITS, Limits
from explorer.schema.mcp import McpServer
from explorer.schema.model_options import Effort, Price
from explorer.schema.network import Network, secrets_in, without_secrets
from explorer.schema.plan import Planning
from explorer.schema.preset import Preset
from explorer.schema.services import Secrets, Services
from explorer.schema.setting import (
    ABSOLUTE_PATH,
    CONTACT,
    EFFORTS,
    PATH,
    PRICE,
    PUBLIC_HOSTS,
    REPLY_TOKENS,
    SHARE,
    TEXT,
    TIMEZONE,
    WHOLE,
    ExtensionSettings,
    Flag,
    Group,
    PerRole,
    Setting,
    WithoutTrust,
    extension_place,
    one_of,
)
from explorer.schema.skill_folder import SkillFolder

JINA_READER_URL = "https://r.jina.ai"
"""The reader that `JINA_API_KEY` is a key for."""
NO_READER = "none"
"""The reader's address for reading pages directly, whatever keys are set."""

SHELLS = ("auto", "off", "unsafe")
"""The allowed values of `shell`."""
LEAN = ("auto", "on", "off")
"""The allowed values of `lean`."""
LIBRARY = ("daily", "once")
"""The allowed values of `library`."""


NOT_RECORDED = ("secrets", "network", "cache_dir", "state_dir", "mcp", "skill_folders")
"""Settings that a journal does not have."""

Extension = TypeVar("Extension", bound=ExtensionSettings)


class Settings(Planning, FleetSettings, BaseModel):
    """One run's settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workspace: Annotated[
        Path,
        Setting("EXPLORER_WORKSPACE", PATH, "Folder with the runs", Group.FILES, (Flag("--workspace", "DIR"),)),
    ] = Path("workspace")
    model: Annotated[
        str,
        Setting(
            "EXPLORER_MODEL",
            TEXT,
            "Model of all roles: `auto`, `offline`, `anthropic:NAME`, `openai:NAME`, or a bare `NAME`",
            Group.MODELS,
            flags=(Flag("--model", "NAME", "Model of one role: `searcher=NAME`; repeatable"),),
            details="`auto` takes the first key or local server it finds",
            anchor="openais-two-apis",
            without_trust=WithoutTrust.MODEL,
        ),
    ] = "auto"
    """The model of all roles.

    A bare `claude-...` is Anthropic's, any other goes to the OpenAI-compatible server. `openai-responses:<name>` and
    `openai-chat:<name>` select the API, too.
    """
    role_models: Annotated[
        dict[str, str],
        PerRole(
            "EXPLORER_MODEL_",
            "models",
            "Model of one role, over `EXPLORER_MODEL`; the variable ends in its name",
            Group.MODELS,
            without_trust=WithoutTrust.MODEL,
        ),
    ] = {}
    """The model of each role here; it goes before `model`."""
    effort: Annotated[
        dict[str, Effort],
        Setting(
            "EXPLORER_EFFORT",
            EFFORTS,
            "How much models reason: `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`",
            Group.MODELS,
            flags=(Flag("--effort", "VALUE", "Effort of one role: `writer=high`; repeatable"),),
            details="`low,writer=high` for all roles and for one",
            default="the vendor's",
            anchor="effort",
            without_trust=WithoutTrust.FULL,
        ),
    ] = {}
    """The effort of each role here, or of `EVERY_ROLE`; without one the role's file or the vendor decides."""
    judge: Annotated[
        str,
        Setting(
            "EXPLORER_JUDGE",
            TEXT,
            "Model that checks whether the sources support the cited sentences",
            Group.MODELS,
            flags=(Flag("--judge", "MODEL"),),
            without_trust=WithoutTrust.MODEL,
        ),
    ] = ""
    roles_dir: Annotated[
        Path | None,
        Setting(
            "EXPLORER_ROLES_DIR",
            PATH,
            "Folder of your own role files, which override the built-in ones",
            Group.MODELS,
            flags=(Flag("--roles", "DIR"),),
        ),
    ] = None
    """A folder of role files, which replace built-in ones of the same name."""
    preset: Preset | None = Field(default=None, exclude_if=lambda preset: preset is None)
    """What the run was configured as by `--preset`; its roles come before those of `roles_dir`."""
    skills_dir: Annotated[
        Path | None,
        Setting("EXPLORER_SKILLS_DIR", PATH, "Folder of your own skills", Group.MODELS, (Flag("--skills", "DIR"),)),
    ] = None
    """A folder of skills, which replace built-in ones of the same name."""
    price: Annotated[
        Price | None,
        Setting(
            "EXPLORER_PRICE",
            PRICE,
            "US dollars per million tokens, in/out, like `3/15`, for models whose price is not known",
            Group.MODELS,
            anchor="prices-and-money-limits",
        ),
    ] = None
    context_window: Annotated[
        int | None,
        Setting(
            "EXPLORER_CONTEXT_WINDOW",
            WHOLE,
            "Tokens of a model's context window that are used; the window itself where it is not known",
            Group.MODELS,
            default="all of it; 128000 where it is not known, 32000 on this machine",
            anchor="context-windows",
        ),
    ] = Field(default=None, ge=1024)
    context_share: Annotated[
        float,
        Setting(
            "EXPLORER_CONTEXT_SHARE",
            SHARE,
            "Share of a model's context window at which old results of a conversation are shortened",
            Group.MODELS,
            details="Earlier only where that saves material money at the model's prices",
            anchor="context-windows",
        ),
    ] = Field(default=0.8, ge=0.3, le=0.95)
    max_output_tokens: Annotated[
        int,
        Setting(
            "EXPLORER_MAX_OUTPUT_TOKENS",
            REPLY_TOKENS,
            "Tokens of one reply of a model",
            Group.MODELS,
            details="1024 or more",
            without_trust=WithoutTrust.LOWERS,
        ),
    ] = Field(default=16_000, ge=1_024)
    lean: Annotated[
        str,
        Setting(
            "EXPLORER_LEAN",
            one_of(*LEAN),
            "Lean mode, one agent that fills in forms: `auto` (by the model's profile), `on`, or `off`",
            Group.MODELS,
            details="`explorer doctor --probe` makes the profile",
            flags=(
                Flag("--lean", value="on", help="One agent that fills in forms, for small local models"),
                Flag("--no-lean", value="off", help="Whatever the model's profile says, the whole team"),
            ),
            anchor="lean-mode",
            without_trust=WithoutTrust.FULL,
        ),
    ] = "auto"
    """A run that has begun stays in the mode in which it began."""
    shell: Annotated[
        str,
        Setting(
            "EXPLORER_SHELL",
            one_of(*SHELLS),
            "Whether agents have a shell: `auto` (if a sandbox passes its self-test), `off`, or `unsafe`",
            Group.MODELS,
            details="`unsafe` runs commands without a sandbox",
            flags=(
                Flag("--no-shell", value="off", help="Agents cannot run commands at all"),
                Flag(
                    "--unsafe-shell",
                    value="unsafe",
                    help="Agents run commands without a sandbox, with your rights; the report says so",
                ),
            ),
            without_trust=WithoutTrust.LOWERS,
        ),
    ] = "auto"
    shell_hosts: Annotated[
        tuple[str, ...],
        Setting(
            "EXPLORER_SHELL_HOSTS",
            PUBLIC_HOSTS,
            "Hosts that commands in the sandbox may reach, separated by commas",
            Group.MODELS,
        ),
    ] = ()
    approval_rules: ApprovalRulesSetting = ()
    """Rules of the user; `schema/approvals.py` says what they mean."""
    tightening_rules: RuleTexts = ()
    """Rules of a folder that is not trusted: they count where they are stricter than the user's."""
    language: Annotated[
        str,
        Setting(
            "EXPLORER_LANG",
            TEXT,
            "Language of the report",
            Group.FILES,
            flags=(Flag("--lang", "LANGUAGE", "Otherwise the question's"),),
            key="lang",
            default="the question's",
            without_trust=WithoutTrust.WORDS,
        ),
    ] = ""
    limits: Limits = Limits()
    services: Services = Services()
    secrets: Secrets = Secrets()
    network: Network = Network()
    """Proxies and certificate authorities of this session, never those of the time a run was started."""
    cache_dir: Path | None = None
    """The user's own cache folder on this machine; None: nothing is kept between sessions."""
    state_dir: Path | None = None
    """The user's own folder for what proves that a run is the user's: never one of a run's; None: nothing proves it."""
    mcp: dict[str, McpServer] = {}
    """The MCP servers that are set up now, by name: never those of the time a run was started."""
    skill_folders: tuple[SkillFolder, ...] = ()
    """Further folders of skills in this session: the user's own, and those of a project that the user trusts."""
    is_sample: bool = False
    """Read the bundled, invented sample day instead of the network."""
    files: tuple[Path, ...] = ()
    """Local files that the question is about."""
    corpus: Annotated[
        Path | None,
        Setting(
            "EXPLORER_CORPUS",
            ABSOLUTE_PATH,
            "Folder of your own to search: text, markdown, HTML, PDF, Office, EPUB",
            Group.FILES,
            flags=(Flag("--corpus", "DIR"),),
        ),
    ] = None
    reports_dir: Annotated[
        Path, Setting("EXPLORER_REPORTS_DIR", PATH, "Library of reports that later runs add to", Group.FILES)
    ] = Path("reports")
    """The library of reports, which outlives runs."""
    library: Annotated[
        str,
        Setting(
            "EXPLORER_LIBRARY",
            one_of(*LIBRARY),
            "How often the library takes a report on the same story or topic: `daily` or `once`",
            Group.FILES,
            details="With `once`, what is new later is added to its report",
            without_trust=WithoutTrust.FULL,
        ),
    ] = "daily"
    since_run: str = ""
    """An earlier run to compare this one with: only what is new matters."""
    timezone: Annotated[
        str,
        Setting(
            "EXPLORER_TIMEZONE",
            TIMEZONE,
            "Your time zone, for words like today: a name like `Europe/Berlin`",
            Group.FILES,
            default="this machine's",
            without_trust=WithoutTrust.FULL,
        ),
    ] = ""
    """A name of the IANA time zone database; empty: UTC."""
    contact: Annotated[
        str,
        Setting(
            "EXPLORER_CONTACT",
            CONTACT,
            "How the operators of sites can reach you: an e-mail address, a web address, or `/u/name` of Reddit",
            Group.SOURCES,
            details="Sent to them in the User-Agent",
            anchor="who-asks",
        ),
    ] = ""
    search: Annotated[
        str,
        Setting(
            "EXPLORER_SEARCH",
            TEXT,
            "Web search engine, or several at once (`brave,exa`): `auto` (what is configured)",
            Group.SOURCES,
            anchor="what-automatic-search-takes",
        ),
    ] = "auto"

    @model_validator(mode="before")
    @classmethod
    def _with_models_of_vendors(cls, values: Any) -> Any:  # noqa: ANN401 - whatever is to be validated
        """Move `NAME_model`, a field of its own in 0.1, to where all that vendors declare is."""
        if not isinstance(values, dict):
            return values
        given = cast("dict[str, Any]", values)
        moved = {name for name in given.keys() - cls.model_fields.keys() if name.endswith("_model")}
        if not moved:
            return given
        services: Any = given.get("services") or {}
        declared = services.model_dump(exclude_unset=True) if isinstance(services, Services) else services
        kept = {name: value for name, value in given.items() if name not in moved}
        return {**kept, "services": {**declared, **{name: given[name] for name in moved if given[name]}}}

    @property
    def reader_address(self) -> str:
        """The URL of the reader that pages are read through; empty: they are read directly, as on the sample day."""
        url = self.services.reader_url
        if self.is_sample or url == NO_READER:
            return ""
        return url or (JINA_READER_URL if self.secrets.jina_key.get_secret_value() else "")

    def extension(self, name: str, model: type[Extension]) -> Extension:
        """Return the values of the settings that an extension declares.

        Args:
            name: The extension's name, as it is registered.
            model: The settings that it declares.

        Returns:
            An instance of `model`.

        Raises:
            ConfigError: The extension does not accept a value.
        """
        found: dict[str, object] = {}
        for field, info in model.model_fields.items():
            place = extension_place(name, field, is_secret=info.annotation is SecretStr)
            group, _, leaf = place.partition(".")
            values: dict[str, object] = getattr(self, group).model_extra
            found |= {field: values[leaf]} if leaf in values else {}
        try:
            return model.model_validate(found)
        except ValidationError as error:
            field = str(error.errors(include_input=False)[0]["loc"][0])
            raise ConfigError(
                f"{name}: its setting `{field}` cannot be used", hint="see: explorer config show"
            ) from None

    def public(self) -> dict[str, object]:
        """Return everything but the secrets and the user's network, as JSON types.

        Limits left to their defaults are absent, not without limit. What opens something in a service's address is
        left out.
        """
        unset = DEPENDENT_LIMITS - self.limits.model_fields_set
        shown = self.model_dump(mode="json", exclude={**dict.fromkeys(NOT_RECORDED, True), "limits": set(unset)})
        services = shown["services"]
        services |= {name: without_secrets(value) for name, value in services.items() if isinstance(value, str)}
        return shown

    @classmethod
    def recorded(cls, settings: Mapping[str, object]) -> Self:
        """Return the settings that a journal has, as `public` gave them.

        Raises:
            ConfigError: They are not understood.
        """
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            place = ".".join(str(part) for part in error.errors()[0]["loc"])
            message = f"the run's settings are not understood here: `{place}`"
            raise ConfigError(message, hint="update explorer: pip install -U explorer") from error

    def secret_texts(self) -> list[str]:
        """Return every key and password that is set."""
        addresses = self.services.model_dump().values()
        found = [one for address in addresses if isinstance(address, str) for one in secrets_in(address)]
        found += [one.partition(":")[2] for one in found]
        servers = [text for server in self.mcp.values() for text in server.secret_texts()]
        return [*self.secrets.all(), *self.network.secrets(), *filter(None, [*found, *servers])]
