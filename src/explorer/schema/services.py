"""The addresses of external services, and the keys for them."""

import re
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from explorer.schema.network import secrets_in_database
from explorer.schema.setting import HEADERS, HOSTS, KEY, TEXT, URL_OR_NONE, Group, Setting


class Services(BaseModel):
    """Base URLs of every external service, so that proxies, mirrors and tests can replace them.

    Settings that vendors of models, search engines and other extensions declare are here, too: `NAME_FIELD`, as text.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, str] = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride]

    if TYPE_CHECKING:

        def __init__(self, **values: Any) -> None:
            """Take declared fields, and those of extensions by their names."""

    reader_url: Annotated[
        str,
        Setting(
            "EXPLORER_READER_URL",
            URL_OR_NONE,
            "Reader that pages are read through; `none`: pages are read directly, whatever keys are set",
            Group.SOURCES,
            default="Jina's with its key",
            anchor="reading-pages-through-a-reader",
        ),
    ] = ""
    """A Jina-style reader; empty: Jina's, where its key is set."""
    archive_url: Annotated[
        str,
        Setting(
            "EXPLORER_ARCHIVE_URL",
            URL_OR_NONE,
            "Archive that is asked for copies of pages that are gone; `none`: none is",
            Group.SOURCES,
            default="the Internet Archive",
            details="It learns the addresses of these pages",
        ),
    ] = ""
    """An archive with the Wayback availability API; empty: the public one."""
    allow_hosts: Annotated[
        tuple[str, ...],
        Setting(
            "EXPLORER_ALLOW_HOSTS",
            HOSTS,
            "Hosts whose private or loopback addresses may be fetched, separated by commas",
            Group.SOURCES,
        ),
    ] = ()
    otlp_endpoint: Annotated[
        str,
        Setting(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            # Other programs may have it set for another protocol: a run reports that when it starts, and continues.
            TEXT,
            "OpenTelemetry collector that a run's spans are sent to, like `http://127.0.0.1:4318`",
            Group.TRACES,
            details="Without one, none are made",
            anchor="traces",
        ),
    ] = ""
    """The collector's URL without the path for spans."""
    otlp_traces_endpoint: Annotated[
        str,
        Setting(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", TEXT, "The same for spans alone, with its whole path", Group.TRACES
        ),
    ] = ""
    """The collector's URL with the path for spans; it goes before `otlp_endpoint`."""


class Secrets(BaseModel):
    """Keys, with those of vendors and other extensions: `NAME_FIELD`. Never written to a journal, a log or a page."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, SecretStr] = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride]

    if TYPE_CHECKING:

        def __init__(self, **values: Any) -> None:
            """Take declared fields, and those of extensions by their names."""

    jina_key: Annotated[
        SecretStr,
        Setting(
            "JINA_API_KEY",
            KEY,
            "Key for Jina's reader; with it alone, pages are read through `https://r.jina.ai`",
            Group.SOURCES,
            details="It learns the addresses of all pages that are read",
            anchor="reading-pages-through-a-reader",
        ),
    ] = SecretStr("")
    otlp_headers: Annotated[
        SecretStr,
        Setting(
            "OTEL_EXPORTER_OTLP_HEADERS",
            HEADERS,
            "Headers for the collector of spans, like `Authorization=Bearer%20...`",
            Group.TRACES,
            details="Separated by commas, values written as in a URL",
        ),
    ] = SecretStr("")

    mcp_token: Annotated[
        SecretStr,
        Setting(
            "EXPLORER_MCP_TOKEN",
            KEY,
            "Token that clients of `explorer mcp serve --http` send; 16 characters or more",
            Group.FILES,
            default="made once for this machine: `explorer mcp token` prints it",
        ),
    ] = SecretStr("")

    fleet_database: Annotated[
        SecretStr,
        Setting(
            "EXPLORER_FLEET_DATABASE",
            KEY,
            "Database of the fleet's queue: `sqlite:///PATH`, or `postgresql://USER:PASSWORD@HOST/NAME`",
            Group.FILES,
            default="a file in the folder with the runs",
        ),
    ] = SecretStr("")

    webhook_secret: Annotated[
        SecretStr,
        Setting(
            "EXPLORER_WEBHOOK_SECRET",
            KEY,
            "Secret that webhooks of `--notify` are signed with: `whsec_` and 24 to 64 bytes in base64",
            Group.FILES,
            details="Without it they are not signed",
        ),
    ] = SecretStr("")

    def all(self) -> list[str]:
        """Return every key that is set."""
        keys = {name: getattr(self, name).get_secret_value() for name in type(self).model_fields}
        values = [*secrets_in_database(keys.pop("fleet_database")), *keys.values()]
        values += [key.get_secret_value() for key in (self.model_extra or {}).values()]
        # A header's name and scheme are no secret, and would be taken out of every text.
        pairs = (pair.partition("=")[2] for pair in self.otlp_headers.get_secret_value().split(","))
        values += [re.split(r"\s|%20", value)[-1] for value in pairs]
        return [value for value in values if value]
