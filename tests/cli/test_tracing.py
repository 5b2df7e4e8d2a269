"""Spans of a run that the command line drives."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.stage import Process
from explorer.cli.screens.screen import Lines, Quiet, tap_for
from explorer.cli.session import Session
from explorer.cli.settings.options import RunOptions
from explorer.cli.telemetry import REFUSED, read_headers, traced, traces_url, with_login
from explorer.journal.listing import read_records
from explorer.schema.settings import Secrets, Services, Settings
from otlp_reader import read_spans
from sources.loopback import Answer, serving

KEY = "c29tZS1rZXk6b2YtYS1jb2xsZWN0b3I="


@pytest.mark.slow
def test_a_run_is_told_to_the_collector(here: Callable[..., Process], tmp_path: Path) -> None:
    """Every turn and every call, below the agents they are of; the question and the key are nowhere in it."""
    question = "What did people say about the harbour plant?"
    with serving({"/v1/traces": Answer(b"")}) as site:
        done = here(
            "demo",
            question,
            OTEL_EXPORTER_OTLP_ENDPOINT=site.url,
            OTEL_EXPORTER_OTLP_HEADERS=f"Authorization=Basic%20{KEY}",
        )
    assert done.returncode == 3, done.stderr
    assert "nothing found" in done.stderr
    (folder,) = (tmp_path / "workspace").iterdir()
    events = [record.event for record in read_records(folder)]
    spans = [span for asked in site.asked for span in read_spans(asked.body)]
    assert {asked.headers["authorization"] for asked in site.asked} == {f"Basic {KEY}"}
    kinds = [span.name.partition(" ")[0] for span in spans]
    assert kinds.count("chat") == sum(event.type == "turn" for event in events)
    assert kinds.count("execute_tool") == sum(event.type == "tool_finished" for event in events)
    assert kinds.count("invoke_agent") == sum(event.type == "agent_started" for event in events)
    ids = {span.id for span in spans}
    assert [span.name for span in spans if span.parent not in ids] == ["invoke_agent orchestrator"]
    assert not any(question.encode() in asked.body or KEY.encode() in asked.body for asked in site.asked)
    assert KEY not in done.stdout + done.stderr + (folder / ".explorer" / "journal.jsonl").read_text()
    assert site.url in json.dumps([event.settings for event in events if event.type == "run_started"])


def test_without_a_collector_a_session_stays_as_it_is() -> None:
    """Nothing is put between, and nothing is opened beside."""
    session = Session(Quiet(), tap_for(RunOptions()))
    assert traced(session, Settings()) is session


@pytest.mark.parametrize("address", ["127.0.0.1:4317", "grpc://collector:4317", "http://", "http://[::1"])
def test_an_address_for_another_protocol_is_told_and_refuses_nothing(address: str) -> None:
    """The variable may be there for other programs."""
    shown: list[str] = []
    session = Session(Lines(shown.append))
    assert traced(session, Settings(services=Services(otlp_endpoint=address))) is session
    assert shown == [REFUSED]


def test_the_address_is_completed_as_the_specification_says() -> None:
    """The general one gets the path of spans, the one for spans alone is whole."""
    base = Services(otlp_endpoint="https://collector.example/otlp/")
    assert traces_url(Settings(services=base)) == "https://collector.example/otlp/v1/traces"
    alone = base.model_copy(update={"otlp_traces_endpoint": "https://traces.example/in"})
    assert traces_url(Settings(services=alone)) == "https://traces.example/in"
    assert traces_url(Settings()) == ""


def test_headers_are_read_and_their_values_kept_secret() -> None:
    """Values are decoded; what is no header is left out; of each value the key is what must not be written."""
    text = f"Authorization=Basic {KEY}, x-team=a%20b,broken,bad name=1,=2,x-line=a%0Ab"
    assert read_headers(text) == {"Authorization": f"Basic {KEY}", "x-team": "a b"}
    assert KEY in Secrets.model_validate({"otlp_headers": text}).all()


def test_a_login_in_the_address_becomes_a_header() -> None:
    """As other programs send it; a header of the user's own goes before it, and an address without one stays."""
    given = {"X-Team": "a"}
    login = "Basic bWU6cEB3"
    assert with_login("http://me:p%40w@127.0.0.1:9/v1/traces", given) == (
        "http://127.0.0.1:9/v1/traces",
        {"Authorization": login, "X-Team": "a"},
    )
    assert with_login("http://me:p@h/", {"Authorization": "Bearer x"}) == ("http://h/", {"Authorization": "Bearer x"})
    assert with_login("http://h:9/v1?a=1", given) == ("http://h:9/v1?a=1", given)
