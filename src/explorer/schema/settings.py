"""All settings of a run, resolved and frozen. Reading them from flags, environment and files is the CLI's part."""

import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from explorer.schema.limits import DEPENDENT_LIMITS, Limits
from explorer.schema.model_options import Effort, Price
from explorer.schema.network import Network

SEARCH_ENGINES = ("auto", "tavily", "brave", "exa", "searxng", "ddgs")
"""What `search` may be."""


JINA_READER_URL = "https://r.jina.ai"
"""The reader that `JINA_API_KEY` is a key for."""
NO_READER = "none"
"""As the reader's address: pages are read directly, whatever keys there are."""

SHELLS = ("auto", "off", "unsafe")
"""What `shell` may be."""


class Services(BaseModel):
    """Base URLs of every outside service, so that proxies, mirrors and tests can stand in."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    anthropic_url: str = ""
    """Empty: the SDK's own default."""
    openai_url: str = ""
    hn_api_url: str = "https://hacker-news.firebaseio.com/v0"
    hn_search_url: str = "https://hn.algolia.com/api/v1"
    tavily_url: str = "https://api.tavily.com"
    searxng_url: str = ""
    """Of the user's own SearXNG; empty: none."""
    brave_url: str = "https://api.search.brave.com"
    exa_url: str = "https://api.exa.ai"
    reddit_url: str = ""
    """Stands in for all of Reddit's hosts and its archive; empty: the public ones."""
    reader_url: str = ""
    """A Jina-style reader that pages are read through; `none`: never; empty: Jina's, where its key is set."""
    allow_hosts: tuple[str, ...] = ()
    """Hosts whose private or loopback addresses may be fetched."""
    otlp_endpoint: str = ""
    """An OpenTelemetry collector, without the path for spans; empty: none."""
    otlp_traces_endpoint: str = ""
    """The same with the whole path; it goes before the other."""


class Secrets(BaseModel):
    """Keys. Never written to a journal, a log or a page."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    anthropic_key: SecretStr = SecretStr("")
    openai_key: SecretStr = SecretStr("")
    tavily_key: SecretStr = SecretStr("")
    brave_key: SecretStr = SecretStr("")
    exa_key: SecretStr = SecretStr("")
    jina_key: SecretStr = SecretStr("")
    """For the reader."""
    reddit_id: SecretStr = SecretStr("")
    reddit_secret: SecretStr = SecretStr("")
    otlp_headers: SecretStr = SecretStr("")
    """For the OpenTelemetry collector: `name=value`, parted by commas."""

    def all(self) -> list[str]:
        """Every key that is set."""
        values = [getattr(self, name).get_secret_value() for name in type(self).model_fields]
        # A header's name and scheme are no secret, and would be taken out of every text.
        pairs = (pair.partition("=")[2] for pair in self.otlp_headers.get_secret_value().split(","))
        values += [re.split(r"\s|%20", value)[-1] for value in pairs]
        return [value for value in values if value]


class Settings(BaseModel):
    """One run's settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workspace: Path = Path("workspace")
    """The folder that holds the runs' folders."""
    model: str = "auto"
    """`auto`, `offline`, `anthropic:<name>`, `openai:<name>`, or a bare name (`claude-...` is Anthropic's, any
    other goes to the OpenAI-compatible server). `openai-responses:<name>` and `openai-chat:<name>` say the API, too."""
    role_models: dict[str, str] = {}
    """Model by role, over `model`."""
    anthropic_model: str = ""
    """The model of all roles where `model` is `auto` and Anthropic is taken; empty: the tiers' defaults."""
    openai_model: str = ""
    """The same for OpenAI and compatible servers."""
    effort: dict[str, Effort] = {}
    """How much models are to reason, by role or for `EVERY_ROLE`; none: as the role's file or the vendor has it."""
    roles_dir: Path | None = None
    """A folder of the user's with further role files, or files that replace built-in ones by name."""
    language: str = ""
    """Of the report; empty: the question's."""
    price: Price | None = None
    """Used for models without a known price."""
    max_output_tokens: int = Field(default=16_000, ge=1_024)
    """Of one reply."""
    limits: Limits = Limits()
    services: Services = Services()
    secrets: Secrets = Secrets()
    network: Network = Network()
    """Proxies and certificate authorities; of now, never of the time a run was started."""
    is_sample: bool = False
    """Read the bundled, invented sample day instead of the network."""
    files: tuple[Path, ...] = ()
    """Local files the question is about."""
    corpus: Path | None = None
    """A folder of the user's to search: text, markdown, HTML, PDF."""
    reports_dir: Path = Path("reports")
    """The library of reports, which outlives runs."""
    since_run: str = ""
    """An earlier run this one is to be compared with: only what is new matters."""
    judge: str = ""
    """A model that judges whether the sources carry the cited sentences; empty: none."""
    timezone: str = ""
    """The asker's, as the IANA database names it, for words like `today`; empty: UTC."""
    contact: str = ""
    """How the operators of sites can reach the user; sent to sources in the User-Agent."""
    search: str = "auto"
    """The web search engine, one of `SEARCH_ENGINES`."""
    shell: str = "auto"
    """`auto`: agents have a shell where a sandbox holds; `off`: none; `unsafe`: one without a sandbox."""
    shell_hosts: tuple[str, ...] = ()
    """Hosts that commands in the sandbox may reach; none by default."""

    @property
    def reader_address(self) -> str:
        """Where pages are read through; empty: they are read directly, as on the sample day."""
        url = self.services.reader_url
        if self.is_sample or url == NO_READER:
            return ""
        return url or (JINA_READER_URL if self.secrets.jina_key.get_secret_value() else "")

    def public(self) -> dict[str, object]:
        """Everything but the secrets and the user's network, as JSON types.

        Limits left to their defaults are absent, not without limit.
        """
        unset = DEPENDENT_LIMITS - self.limits.model_fields_set
        return self.model_dump(mode="json", exclude={"secrets": True, "network": True, "limits": set(unset)})

    def secret_texts(self) -> list[str]:
        """Every key and password that is set."""
        return [*self.secrets.all(), *self.network.secrets()]
