"""A run as OpenTelemetry spans, and their way to a collector."""

import asyncio
import importlib
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from explorer.observe.spans import Span, SpanKind, Spans
from explorer.observe.tracing import BATCH, LAST_S, MAX_WAITING, Collector, SpanExporter, Tracing, export_request
from explorer.schema.events import (
    AgentContinued,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    JournalRecord,
    RoleLoaded,
    RunFinished,
    RunForked,
    RunStarted,
    Status,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnTaken,
)
from explorer.schema.messages import StopKind, ToolCall, Turn, Usage
from otlp_reader import GotSpan, read_service, read_spans
from sources.loopback import Answer, Handler, Site, closed_port, serving

NOON = datetime(2026, 8, 10, 12, 0, tzinfo=UTC)
LEAD, SEARCHER = "orchestrator", "searcher-1"
SECRET = "the-harbour-plant"
"""Stands in every text of the made run."""
TAKEN = Answer(b"", content_type="application/x-protobuf")


def turn(agent: str, seconds: float, *names: str) -> TurnTaken:
    """A reply that took so long, and asks for these tools."""
    reply = Turn(
        provider="anthropic",
        model="claude-sonnet-5-5",
        blocks=({"type": "text", "text": SECRET},),
        text=SECRET,
        calls=tuple(ToolCall(id=f"toolu_{name}", name=name, arguments={"query": SECRET}) for name in names),
        stop=StopKind.TOOL_USE if names else StopKind.END,
        stop_detail=SECRET,
        usage=Usage(input_tokens=1000, output_tokens=100, cache_read_tokens=800, reasoning_tokens=30),
        cost_usd=0.01,
    )
    return TurnTaken(agent=agent, turn=reply, seconds=seconds)


def run_of_two() -> list[JournalRecord]:
    """An orchestrator, a searcher with an attempt and a call that fail; one moment each."""
    call, search = f"{LEAD}.t1.1", f"{SEARCHER}.t1.1"
    model = "anthropic:claude-sonnet-5-5"
    events: list[tuple[float, AnyEvent]] = [
        (0, RunStarted(run_id="20260810-120000-x-1234", question=SECRET, engine="0", settings={})),
        (0, RoleLoaded(role=LEAD, model=model, system=SECRET, tools=(), max_steps=9)),
        (1, AgentStarted(agent=LEAD, role=LEAD, task=SECRET, max_steps=9)),
        (11, turn(LEAD, 10, "call_agent")),
        (11, ToolStarted(agent=LEAD, call=call, name="call_agent", effect="child")),
        (11, RoleLoaded(role="searcher", model=model, system=SECRET, tools=(), max_steps=9)),
        (11, AgentStarted(agent=SEARCHER, role="searcher", parent=LEAD, parent_call=call, task=SECRET, max_steps=9)),
        (15, TurnFailed(agent=SEARCHER, fault="overloaded", message=SECRET, attempt=1, waits_s=1.0)),
        (20, turn(SEARCHER, 9, "web_search")),
        (20, ToolStarted(agent=SEARCHER, call=search, name="web_search", effect="pure")),
        (22.5, ToolFinished(agent=SEARCHER, call=search, name="web_search", success=False, content=SECRET)),
        (30, turn(SEARCHER, 7)),
        (30, AgentFinished(agent=SEARCHER, status=Status.PARTIAL, reason=SECRET, summary=SECRET)),
        (30, ToolFinished(agent=LEAD, call=call, name="call_agent", success=True, content=SECRET)),
        (33, turn(LEAD, 3)),
        (33, AgentFinished(agent=LEAD, status=Status.COMPLETE, reason="answered", summary=SECRET)),
        (34, RunFinished(status=Status.COMPLETE, reason="")),
    ]
    return [
        JournalRecord(v=1, seq=seq, at=NOON + timedelta(seconds=seconds), event=event)
        for seq, (seconds, event) in enumerate(events, 1)
    ]


def spans_of(records: Sequence[JournalRecord], past: Sequence[JournalRecord] = ()) -> list[GotSpan]:
    """The spans of a life of a run, as a collector gets them."""
    made: list[Span] = []
    spans = Spans(made.append)
    spans.catch_up(past)
    for record in records:
        spans.observe(record)
    spans.end()
    return read_spans(export_request(made, {"service.name": "explorer"}, "0"))


def tree(spans: Sequence[GotSpan], parent: str = "") -> list[object]:
    """Names, each with those below it, by their beginning."""
    below = sorted((span for span in spans if span.parent == parent), key=lambda span: span.start)
    return [item for span in below for item in (span.name, *([tree(spans, span.id)] if tree(spans, span.id) else []))]


def test_spans_stand_below_each_other_as_agents_do() -> None:
    """An agent holds its turns and calls, the call of a helper holds the helper; names are the conventions'."""
    spans = spans_of(run_of_two())
    chat = "chat claude-sonnet-5-5"
    searcher = ["invoke_agent searcher", [chat, chat, "execute_tool web_search", chat]]
    assert tree(spans) == ["invoke_agent orchestrator", [chat, "execute_tool call_agent", searcher, chat]]
    assert {span.trace_id for span in spans} == {spans[0].trace_id}
    assert len({span.id for span in spans}) == len(spans) == 9
    assert all(len(span.trace_id) == 32 and len(span.id) == 16 for span in spans)
    kinds = {span.name.partition(" ")[0]: span.kind for span in spans}
    assert kinds == {"chat": 3, "execute_tool": 1, "invoke_agent": 1}


def test_times_are_those_of_the_work() -> None:
    """A turn begins with its request and not with its record; after a failed attempt and the wait, with the next."""
    times = [
        (span.name.split()[0], (span.start - NOON).total_seconds(), span.seconds) for span in spans_of(run_of_two())
    ]
    assert times == [
        ("chat", 1.0, 10.0),
        ("chat", 11.0, 4.0),
        ("chat", 16.0, 4.0),
        ("execute_tool", 20.0, 2.5),
        ("chat", 23.0, 7.0),
        ("invoke_agent", 11.0, 19.0),
        ("execute_tool", 11.0, 19.0),
        ("chat", 30.0, 3.0),
        ("invoke_agent", 1.0, 32.0),
    ]


def test_attributes_are_the_conventions_and_hold_no_content() -> None:
    """Model, tokens, stop, tool, agent: nothing that was said, asked or found."""
    records = run_of_two()
    spans = spans_of(records)
    chat, failed, tool = spans[0], spans[1], spans[3]
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": "20260810-120000-x-1234",
        "gen_ai.agent.id": LEAD,
        "gen_ai.agent.name": LEAD,
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-5-5",
        "gen_ai.response.model": "claude-sonnet-5-5",
        "gen_ai.response.finish_reasons": ["tool_use"],
        "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.output_tokens": 100,
        "gen_ai.usage.cache_read.input_tokens": 800,
        "gen_ai.usage.reasoning.output_tokens": 30,
        "explorer.cost_usd": 0.01,
    }
    assert (failed.status, failed.attributes["error.type"], failed.attributes["gen_ai.provider.name"]) == (
        2,
        "overloaded",
        "anthropic",
    )
    assert (tool.status, tool.attributes["error.type"]) == (2, "tool_error")
    assert tool.attributes["gen_ai.tool.name"] == "web_search"
    assert tool.attributes["gen_ai.tool.call.id"] == f"{SEARCHER}.t1.1"
    made: list[Span] = []
    spans_made = Spans(made.append)
    for record in records:
        spans_made.observe(record)
    assert SECRET.encode() not in export_request(made, {}, "0")
    # The same search finds it where it is: in the records.
    assert all(SECRET in record.event.model_dump_json() for record in records if record.event.type == "turn")


def test_a_resumed_run_goes_on_in_the_same_trace() -> None:
    """A life that was cut short leaves no span out, and the next has spans of its own, below its own agents."""
    records = run_of_two()
    for cut in range(2, len(records)):
        first, second = spans_of(records[:cut]), spans_of(records[cut:], past=records[:cut])
        ids = [span.id for span in (*first, *second)]
        assert len(set(ids)) == len(ids), cut
        for life in (first, second):
            assert all(span.parent in {one.id for one in life} for span in life if span.parent), cut
            assert sum(not span.parent for span in life) <= 1, cut
        assert len({span.trace_id for span in (*first, *second)}) == 1
    resumed = spans_of(records[11:], past=records[:11])
    helper = next(span for span in resumed if span.name == "invoke_agent searcher")
    assert (helper.start - NOON).total_seconds() == 23.0
    cut_short = [span.name for span in spans_of(records[:10]) if span.attributes.get("explorer.unfinished")]
    assert sorted(cut_short) == [
        "execute_tool call_agent",
        "execute_tool web_search",
        "invoke_agent orchestrator",
        "invoke_agent searcher",
    ]


def test_a_follow_up_and_a_fork_have_spans_of_their_own() -> None:
    """A further task is a further span of the agent; a fork is a trace of its own."""
    records = run_of_two()
    last = records[-1]
    more: list[AnyEvent] = [
        RunForked(run_id="y", of="x", shared=len(records)),
        AgentContinued(agent=LEAD, task=SECRET, max_steps=3),
        turn(LEAD, 1),
        AgentFinished(agent=LEAD, status=Status.FAILED, reason=SECRET, summary=""),
    ]
    added = [
        JournalRecord(v=1, seq=last.seq + n, at=last.at + timedelta(seconds=n), event=e) for n, e in enumerate(more, 1)
    ]
    chat, agent = spans_of(added[1:], past=[*records, added[0]])
    assert (agent.name, agent.parent, agent.status, chat.parent) == ("invoke_agent orchestrator", "", 2, agent.id)
    assert agent.trace_id != spans_of(records)[0].trace_id
    assert agent.id not in {span.id for span in spans_of(records)}


def observed(tracing: Tracing, records: Sequence[JournalRecord]) -> None:
    """Tell all records."""
    for record in records:
        tracing.observe(record)


async def test_spans_reach_a_collector_with_its_headers() -> None:
    """One POST in the protocol's own form; the key is in a header, and nothing was said."""
    shown: list[str] = []
    with serving({"/v1/traces": TAKEN}) as site:
        tracing = Tracing(Collector(f"{site.url}/v1/traces", {"Authorization": "Bearer k"}), shown.append)
        async with tracing.open():
            observed(tracing, run_of_two())
    (asked,) = site.asked
    assert (asked.headers["content-type"], asked.headers["authorization"]) == ("application/x-protobuf", "Bearer k")
    assert read_service(asked.body) == {"service.name": "explorer"}
    assert len(read_spans(asked.body)) == 9
    assert not shown


async def test_many_spans_go_in_batches_and_none_is_sent_twice() -> None:
    """More than fit one request."""
    with serving({"/v1/traces": TAKEN}) as site:
        sender = SpanExporter(Collector(f"{site.url}/v1/traces"), pytest.fail)
        async with sender.open():
            for number in range(2 * BATCH + 1):
                sender.take(numbered(number))
    names = [span.name for asked in site.asked for span in read_spans(asked.body)]
    assert names == [str(number) for number in range(2 * BATCH + 1)]
    assert max(len(read_spans(asked.body)) for asked in site.asked) == BATCH


def numbered(number: int) -> Span:
    """A span by its number."""
    return Span(b"t" * 16, number.to_bytes(8), b"", str(number), SpanKind.INTERNAL, NOON, NOON, {})


@pytest.mark.parametrize("fault", ["error", "no such path", "nobody there"])
async def test_a_collector_that_fails_costs_one_line(fault: str) -> None:
    """The run does not notice; what cannot be delivered is dropped, and that is said once, without the path."""
    shown: list[str] = []
    with serving({"/v1/traces?key=hidden": Answer(b"", 503)}) as site:
        urls = {
            "error": f"{site.url}/v1/traces?key=hidden",
            "no such path": f"{site.url}/hidden",
            "nobody there": f"http://127.0.0.1:{closed_port()}/hidden",
        }
        collector = Collector(urls[fault])
        tracing = Tracing(collector, shown.append)
        async with tracing.open():
            observed(tracing, run_of_two())
            observed(tracing, run_of_two())
    (line,) = shown
    assert re.match(r"spans are lost at http://127\.0\.0\.1: .+; the run continues$", line), line
    assert "hidden" not in line


HANGS_S = 45


@pytest.mark.slow
async def test_a_collector_that_hangs_is_not_waited_for() -> None:
    """At the end it has two seconds; neither the work nor the end waits until it answers."""
    shown: list[str] = []

    def hang(_handler: Handler) -> None:
        site.closing.wait(HANGS_S)

    with serving({}) as site:
        site.routes["/v1/traces"] = hang
        tracing = Tracing(Collector(f"{site.url}/v1/traces"), shown.append)
        began = time.monotonic()
        async with tracing.open():
            observed(tracing, run_of_two())
            assert shown == []
            worked = time.monotonic()
        ended = time.monotonic()
        site.closing.set()
    assert ended - worked >= LAST_S
    # However busy the machine is: whoever waited for the collector would take longer.
    assert ended - began < HANGS_S
    assert shown == [f"spans are lost at http://127.0.0.1: it takes longer than {LAST_S:g} s; the run continues"]


async def test_spans_that_wait_are_bounded() -> None:
    """A collector that takes nothing does not fill the memory."""
    shown: list[str] = []
    sender = SpanExporter(Collector("http://127.0.0.1:9"), shown.append)
    for number in range(MAX_WAITING + 5):
        sender.take(numbered(number))
    assert len(sender._waiting) == MAX_WAITING
    assert len(shown) == 1


async def test_a_cancelled_run_sends_what_it_did() -> None:
    """The second Ctrl-C ends the run; its spans are sent all the same."""
    with serving({"/v1/traces": TAKEN}) as site:
        tracing = Tracing(Collector(f"{site.url}/v1/traces"), pytest.fail)

        async def work() -> None:
            async with tracing.open():
                observed(tracing, run_of_two()[:10])
                await asyncio.Event().wait()

        task = asyncio.ensure_future(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert "invoke_agent orchestrator" in sent(site)


def sent(site: Site) -> list[str]:
    """The names of all spans that a collector has."""
    return [span.name for asked in site.asked for span in read_spans(asked.body)]


def test_the_bytes_are_what_the_protocols_own_library_reads() -> None:
    """`opentelemetry-proto` reads every field of them."""
    service = importlib.import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    as_dict: Callable[..., dict[str, Any]] = importlib.import_module("google.protobuf.json_format").MessageToDict
    made: list[Span] = []
    spans = Spans(made.append)
    for record in run_of_two():
        spans.observe(record)
    body = export_request(made, {"service.name": "explorer", "a": True, "b": -5}, "0")
    found = as_dict(service.ExportTraceServiceRequest.FromString(body))["resourceSpans"][0]
    assert found["resource"]["attributes"][1:] == [
        {"key": "a", "value": {"boolValue": True}},
        {"key": "b", "value": {"intValue": "-5"}},
    ]
    assert found["scopeSpans"][0]["scope"] == {"name": "explorer", "version": "0"}
    first, second = found["scopeSpans"][0]["spans"][:2]
    assert (first["name"], first["kind"]) == ("chat claude-sonnet-5-5", "SPAN_KIND_CLIENT")
    assert first["startTimeUnixNano"] == str(int((NOON + timedelta(seconds=1)).timestamp()) * 10**9)
    assert {"key": "explorer.cost_usd", "value": {"doubleValue": 0.01}} in first["attributes"]
    assert second["status"] == {"message": "overloaded", "code": "STATUS_CODE_ERROR"}


@pytest.mark.slow
def test_nothing_of_it_is_imported_by_the_commands() -> None:
    """Without a collector neither spans nor their sending cost a module."""
    code = (
        "import sys, explorer.cli.commands.ask, explorer.cli.commands.runs\n"
        "print([name for name in sys.modules if 'telemetry' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_the_anthropic_sdk_makes_no_spans_of_our_requests() -> None:
    """It makes one of each of its own calls, where a program has set up tracing, but none of ours: not both."""
    code = """
        import asyncio
        from anthropic import AsyncAnthropic
        from opentelemetry import trace
        from pydantic import SecretStr
        from explorer.llm.anthropic.messages import AnthropicClient
        from explorer.llm.options import ClientOptions
        from explorer.schema.messages import Request, UserText
        from model_servers import AnthropicServer, Reply

        made = []

        class Tracer(trace.NoOpTracer):
            def start_span(self, name, *args, **kwargs):
                made.append(name)
                return super().start_span(name, *args, **kwargs)

        class Provider(trace.TracerProvider):
            def get_tracer(self, *args, **kwargs):
                return Tracer()

        async def main():
            trace.set_tracer_provider(Provider())
            with AnthropicServer([Reply(text="Hello."), Reply(text="Hello.")]) as server:
                async with AnthropicClient(ClientOptions(base_url=server.url, key=SecretStr("k" * 20))) as client:
                    request = Request(agent="a", role="a", model="claude-sonnet-5-5", system="", tools=(),
                                      history=(UserText(text="Hi"),), max_output_tokens=2000)
                    assert (await client.generate(request)).text == "Hello."
                print("ours", made)
                sdk = AsyncAnthropic(api_key="k", base_url=server.url)
                await sdk.messages.create(model="claude-sonnet-5-5", max_tokens=9, stream=True,
                                          messages=[{"role": "user", "content": "Hi"}])
                print("theirs", len(made) > 0)
                await sdk.close()

        asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert done.stdout == "ours []\ntheirs True\n", done.stderr
