"""What shows a run at work to people who look after it: the log for `-v`, and spans for an OpenTelemetry collector."""

import base64
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import unquote, urlsplit, urlunsplit

from loguru import logger

from explorer.cli.session import Session
from explorer.observe.tracing import Collector, Tracing
from explorer.schema.events import JournalRecord
from explorer.schema.settings import Settings

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
TRACES = "/v1/traces"
REFUSED = "no spans are sent: OTEL_EXPORTER_OTLP_ENDPOINT is not a URL that starts with http:// or https://"


def traced(session: Session, settings: Settings) -> Session:
    """Return the same session, its records made into spans where a collector is configured.

    Args:
        session: Not yet driven.
        settings: Those of now: where earlier sessions of the run sent their spans does not matter.
    """
    tracing, tap = tracing_to(settings, session.screen.say), session.tap
    if tracing is None:
        return session

    def observe(record: JournalRecord) -> None:
        if tap is not None:
            tap(record)
        tracing.observe(record)

    return replace(session, tap=observe, tap_past=tracing.catch_up, on_record=tracing.open)


def tracing_to(settings: Settings, warn: Callable[[str], None]) -> Tracing | None:
    """Return what sends the spans of one session of a run; None where no collector is configured.

    Args:
        settings: With the collector.
        warn: Gets one line when the address cannot be used, and one when spans are lost.
    """
    url = traces_url(settings)
    if not url:
        return None
    if not _is_usable(url):
        warn(REFUSED)
        return None
    url, headers = with_login(url, read_headers(settings.secrets.otlp_headers.get_secret_value()))
    return Tracing(Collector(url, headers, settings.network), warn)


def traces_url(settings: Settings) -> str:
    """Return where spans go; empty when nowhere."""
    services = settings.services
    base = services.otlp_endpoint.rstrip("/")
    return services.otlp_traces_endpoint or (base and base + TRACES)


def with_login(url: str, headers: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Move the user name and password of an address into the header that carries them; a given header stays."""
    parts = urlsplit(url)
    login, is_there, host = parts.netloc.rpartition("@")
    if is_there:
        name, _, password = login.partition(":")
        encoded = base64.b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()
        headers = {"Authorization": f"Basic {encoded}"} | headers
    return urlunsplit(parts._replace(netloc=host)), headers


def _is_usable(url: str) -> bool:
    """Return whether spans can be sent to an address; other programs may use the variable for another protocol."""
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def read_headers(text: str) -> dict[str, str]:
    """Return headers written as `name=value,name=value`, with values as in a URL, as OpenTelemetry specifies."""
    headers: dict[str, str] = {}
    for pair in text.split(","):
        name, equals, value = pair.partition("=")
        clear = unquote(value).strip()
        if equals and HEADER_NAME.fullmatch(name.strip()) and clear.isascii() and clear.isprintable():
            headers[name.strip()] = clear
    return headers


LEVELS = {1: "INFO"}
"""Log level by the number of `-v`; more than these show everything."""


def show_logs(verbose: int) -> None:
    """Send the log to stderr when asked."""
    if not verbose:
        return
    logger.remove()
    # Without `diagnose`: it prints the values of variables, and keys are among them.
    logger.add(
        sys.stderr,
        level=LEVELS.get(verbose, "DEBUG"),
        format="{time:HH:mm:ss} {level} {name}: {message}",
        diagnose=False,
        backtrace=False,
    )
    logger.enable("explorer")
