"""Addresses of services with something secret in them: in no journal, log, page or archive."""

import gzip
import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from cli.stage import Explorer
from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.run.resumed_settings import as_started
from explorer.schema.events import RunStarted
from explorer.schema.network import secrets_in, without_secrets
from explorer.schema.settings import Secrets, Services, Settings
from sources.loopback import Answer, serving

CANARY = "canary-0123456789"
LOGGED = re.compile(r"\b(DEBUG|INFO|WARNING|ERROR)\b")


@pytest.mark.parametrize(
    ("url", "shown", "secrets"),
    [
        ("http://host/v1", "http://host/v1", []),
        ("https://me:pw@host:8/v1?a=1", "https://***@host:8/v1?a=1", ["me:pw"]),
        ("http://host/v1?api_key=k1&version=2", "http://host/v1?api_key=***&version=2", ["k1"]),
        ("http://host/?X-Auth-Token=a%20b#x", "http://host/?X-Auth-Token=***#x", ["a b"]),
        ("http://host/?api%5Fkey=k", "http://host/?api%5Fkey=***", ["k"]),
        ("http://[", "http://[", []),
        ("not an address", "not an address", []),
    ],
)
def test_what_opens_something_is_left_out(url: str, shown: str, secrets: list[str]) -> None:
    """A login and the values of parameters whose names say so; all else stays as it is."""
    assert (without_secrets(url), secrets_in(url)) == (shown, secrets)
    settings = Settings(services=Services(otlp_endpoint=url))
    assert settings.public()["services"] == {**Services().model_dump(mode="json"), "otlp_endpoint": shown}
    assert set(secrets) <= set(settings.secret_texts())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann@127.0.0.1:1/fleet", "postgresql://ann@127.0.0.1:1/fleet"),
        ("postgres://127.0.0.1:1/fleet?sslmode=prefer", "postgresql://127.0.0.1:1/fleet?sslmode=prefer"),
        (f"postgresql://ann:{CANARY}@127.0.0.1:1/fleet", "postgresql://ann:***@127.0.0.1:1/fleet"),
        (f"postgresql://127.0.0.1:1/fleet?sslpassword={CANARY}", "postgresql://127.0.0.1:1/fleet"),
        (f"postgresql://ann:x/{CANARY}%40@127.0.0.1:1/fleet", "postgresql://ann:***@127.0.0.1:1/fleet"),
        (f"postgresql://ann:x@{CANARY}@127.0.0.1:1/fleet", "write the password with percent-encoding"),
    ],
)
def test_an_address_of_a_database_is_shown_without_its_password(url: str, shown: str, here: Explorer) -> None:
    """And whole where there is none: it is what has to be corrected."""
    pytest.importorskip("dbos", reason="the extra fleet is not installed")
    done = here("queue", EXPLORER_FLEET_DATABASE=url)
    assert shown in done.stderr
    assert CANARY not in done.stderr
    hidden = Secrets(fleet_database=SecretStr(url)).all()
    assert bool(hidden) == (CANARY in url) == any(CANARY in one and "ann" not in one for one in hidden)


@pytest.mark.parametrize("name", ["OPENAI_BASE_URL", "EXPLORER_HN_API_URL", "EXPLORER_READER_URL"])
@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"http://me:{CANARY}@127.0.0.1:9/v1", "http://***@127.0.0.1:9/v1"),
        (f"http://127.0.0.1:9/v1?key={CANARY}", "http://127.0.0.1:9/v1?key=***"),
    ],
)
def test_a_service_with_a_secret_in_its_address_is_refused(name: str, url: str, shown: str, here: Explorer) -> None:
    """No client asks with a login, and paths are added behind a query; the refusal does not repeat the secret."""
    done = here("what is new", **{name: url})
    assert done.returncode == 2
    assert CANARY not in done.stderr
    assert shown in done.stderr
    assert "without user name, password or query" in done.stderr


@pytest.mark.slow
def test_a_collector_with_a_login_is_not_recorded(here: Explorer, tmp_path: Path) -> None:
    """The run, its log, the pages and the archive have an address that leads nowhere; `resume` leaves it out."""
    address = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://me:{CANARY}@127.0.0.1:9"}
    done = here("demo", "-vv", **address)
    run_id = next(path.name for path in (tmp_path / "workspace").iterdir() if path.name[0].isdigit())
    shown = [done, here("config", "show", **address), here("show", run_id, **address)]
    packed = here("runs", "export", run_id)
    assert packed.returncode == 0, packed.stderr
    with gzip.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        texts = [archive.read().decode(errors="replace")]
    texts += [path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    texts += [text for one in (*shown, packed) for text in (one.stdout, one.stderr)]
    assert len(texts) > 10
    assert not [text for text in texts if CANARY in text]
    started = read_records(tmp_path / "workspace" / run_id)[0].event
    assert isinstance(started, RunStarted)
    assert "http://***@127.0.0.1:9" in str(started.settings["services"])
    assert as_started(Settings(), RunState.of([started]), is_own=True).services.otlp_endpoint == ""
    now = Settings(services=Services(otlp_endpoint="http://127.0.0.1:8"))
    assert as_started(now, RunState.of([started]), is_own=True).services.otlp_endpoint == "http://127.0.0.1:8"


@pytest.mark.slow
def test_no_log_line_and_no_span_has_what_opens_something(here: Explorer) -> None:
    """With -vv, logins and keys of pages, of what they redirect to, of a proxy and of a collector are in neither."""
    moved = Answer(b"", 302, headers={"Location": f"/moved?access_token={CANARY}"})
    text = Answer(b"The tide rose by 3.4 metres at the old pier in March. " * 9, content_type="text/plain")
    routes = {"/v1/traces": Answer(b""), "/page": text, "/old": moved, "/moved": text, "/shut": Answer(b"no", 403)}
    with serving(routes) as site:
        host = site.url.removeprefix("http://")
        pages = [f"{site.url}/{name}?api_key={CANARY}&token={CANARY}" for name in ("page", "old", "shut")]
        pages += [f"http://me:{CANARY}@{host}/page", f"https://other.test/x?sig={CANARY}"]
        variables = {
            "EXPLORER_ALLOW_HOSTS": "127.0.0.1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://me:{CANARY}@{host}",
            "HTTPS_PROXY": f"http://me:{CANARY}@127.0.0.1:9",
        }
        question = f"What do these pages say of the tide? {' '.join(pages)}"
        done = here("ask", question, "--model", "offline", "-vv", **variables)
    logged = [line for line in done.stderr.splitlines() if LOGGED.search(line)]
    assert any(CANARY in asked.path for asked in site.asked), "the pages were asked for with their keys"
    spans = [asked.body for asked in site.asked if asked.path == "/v1/traces"]
    assert spans
    assert any("127.0.0.1" in line for line in logged)
    assert not [line for line in logged if CANARY in line]
    assert not [body for body in spans if CANARY.encode() in body]
