"""What the fault tests stand on: models that fail on cue, a team that carries on all the same, and the checks."""

import asyncio
import json
import os
import random
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import SecretStr

from explorer.journal.listing import read_records
from explorer.llm.clients import RetrySettings
from explorer.llm.options import Timeouts
from explorer.llm.retry import Timing
from explorer.run.hooks import RunHooks
from explorer.schema.events import AgentFinished, JournalRecord, ToolFinished, ToolStarted, TurnTaken
from explorer.schema.model_options import Price
from explorer.schema.settings import Limits, Secrets, Services, Settings
from model_servers import (
    AnthropicServer,
    Asked,
    JsonObject,
    ModelServer,
    OpenAIResponsesServer,
    OpenAIServer,
    Reply,
    Script,
    ThinkingServer,
    _Handler,
    _sse,
)
from sources.loopback import kept_port
from team_script import role_of

QUESTION = "How was May for the plant?"
NOTES = "Solar output rose by 12 % in May, says the plant's log.\nThe battery was replaced on 3 June.\n"
KEY = "sk-canary-7Qw9ZpL2mX4vB8nR"
SECONDS_PER_SECOND = 0.002
"""Waits between attempts pass this much faster than they say."""
WATCH_S = 0.5
"""The watch over content, in real seconds, where replies stall."""
PATIENT_S = 20
"""The same where none does: a busy machine keeps a reply back for more than half a second."""
REPORT = (
    "# A good May for the plant\n\nSolar output rose by 12 % in May [S1], before the battery was replaced on 3 June "
    "[S1]. Both come from the plant's own log and from nowhere else.\n"
)


@dataclass(frozen=True)
class Raw(Reply):
    """A reply with faults below HTTP, or with events that no vendor documents."""

    resets: str = ""
    """`before` any byte of the answer, or `amid` the stream: the connection is reset, not closed."""
    inserted: Callable[[str], list[JsonObject]] | None = None
    """Stream events, by the route asked for, put in after the first."""
    before: Callable[[], None] = lambda: None
    """Called in the server's thread before it answers."""


class _RawHandler(_Handler):
    def _answer(self, reply: Reply, number: int) -> None:
        if isinstance(reply, Raw):
            reply.before()
        if isinstance(reply, Raw) and reply.resets:
            if reply.resets == "amid":
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                # Before any word of an end: a body that ends with its connection may look whole after that.
                for _, event in self.model_server.render(reply, number)[:3]:
                    self.wfile.write(event)
            self._reset()
            return
        super()._answer(reply, number)

    def _reset(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())


class Watchful(ModelServer):
    """Notes when requests came and what is wrong with them; understands `Raw`."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self._http.RequestHandlerClass = type("Handler", (_RawHandler,), {"model_server": self})
        self._http.handle_error = self._note_error
        self.arrivals: list[float] = []
        self.problems: list[str] = []
        self._kept = ExitStack()

    def __exit__(self, exception_type: type[BaseException] | None, *rest: object) -> None:
        """Stop, and give the port free."""
        self._kept.close()
        super().__exit__(exception_type, *rest)

    def _note_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - the base class's names
        """Keep what went wrong in a handler, unless the other side had hung up in the middle of its request."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | json.JSONDecodeError):
            self.problems.append(f"the script failed for {client_address}: {error!r}")

    def stop_listening(self) -> None:
        """Close the port, and keep it for this server; connections that are open stay so."""
        self._http.shutdown()
        self._http.server_close()
        self._kept.enter_context(kept_port(self._http.server_port))

    def listen_again(self) -> None:
        """Serve at the old port again."""
        self._http = type(self._http)(("127.0.0.1", self._http.server_port), self._http.RequestHandlerClass)
        self._http.handle_error = self._note_error
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def reply_to(self, body: JsonObject, headers: dict[str, str]) -> tuple[int, Reply]:
        """Record when a request came, and what a strict server would say of it."""
        self.arrivals.append(time.monotonic())
        self.problems += request_problems(self.path, body)
        return super().reply_to(body, headers)

    def render(self, reply: Reply, number: int) -> list[tuple[str, bytes]]:
        """Write a reply with what is put in."""
        events = super().render(reply, number)
        if isinstance(reply, Raw) and reply.inserted is not None:
            events[1:1] = [("start", _sse(event, str(event.get("type", "")))) for event in reply.inserted(self.path)]
        return events


class WatchfulAnthropic(Watchful, ThinkingServer):
    """Anthropic's wire."""


class WatchfulOpenAI(Watchful, OpenAIServer):
    """OpenAI's wire."""


class WatchfulResponses(Watchful, OpenAIResponsesServer):
    """OpenAI's other wire, whose rules include the pairing of calls and results."""

    def render(self, reply: Reply, number: int) -> list[tuple[str, bytes]]:
        """Write a reply under ids that no other server gives."""
        # A resumed run meets a new server, whose ids of items have to be new, too.
        return super().render(reply, 1_000 * self._http.server_port + number)


WIRES: Mapping[str, type[Watchful]] = {
    "anthropic": WatchfulAnthropic,
    "openai": WatchfulOpenAI,
    "openai-responses": WatchfulResponses,
}
MODELS: Mapping[str, str] = {
    AnthropicServer.path: "anthropic:claude-haiku-5-5",
    OpenAIServer.path: "openai:model-a",
    OpenAIResponsesServer.path: "openai-responses:model-a",
}
"""By the route that a server answers at, a model that is asked for there."""


def request_problems(path: str, body: JsonObject) -> list[str]:
    """What a strict server would refuse: broken text, a call without its one result, words between the two."""
    try:
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        return [f"not encodable: {error}"]
    if path == OpenAIResponsesServer.path:
        return []
    problems = list(_anthropic_problems(body) if path == AnthropicServer.path else _openai_problems(body))
    if not body["messages"] or body["messages"][-1]["role"] == "assistant":
        problems.append("nothing is asked")
    return problems


def _anthropic_problems(body: JsonObject) -> Iterator[str]:
    messages: list[JsonObject] = body["messages"]
    nothing: JsonObject = {"role": "end", "content": []}
    for message, following in zip(messages, [*messages[1:], nothing], strict=True):
        if message["role"] == following["role"]:
            yield "two messages of one role in a row"
        if not message["content"]:
            yield "an empty message"
        asked = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        answers = [block.get("tool_use_id", "") for block in following["content"]][: len(asked)]
        if Counter(asked) != Counter(answers) or len(set(asked)) != len(asked):
            yield f"calls {asked} are followed by results for {answers}"
        if any(block["type"] == "text" and not block["text"].strip() for block in message["content"]):
            yield "an empty text"


def _openai_problems(body: JsonObject) -> Iterator[str]:
    waiting: Counter[str] = Counter()
    for message in body["messages"]:
        if message["role"] == "tool":
            waiting[message["tool_call_id"]] -= 1
            continue
        if any(waiting.values()):
            yield f"calls without one result each: {+waiting}"
        waiting = Counter(call["id"] for call in message.get("tool_calls") or ())
        for call in message.get("tool_calls") or ():
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                yield "arguments that are no object"
    if any(waiting.values()):
        yield f"calls without one result each: {+waiting}"


def pairs(asked: Asked) -> list[tuple[str, JsonObject, str]]:
    """All calls so far: name, arguments, result."""
    return [(name, arguments, result) for (name, arguments), result in zip(asked.calls, asked.results, strict=False)]


def steady(asked: Asked, parts: int = 2) -> Reply:
    """Answer for any role by what has succeeded so far, so that nothing that fails on the way changes the end."""
    return {"orchestrator": _lead, "searcher": _search, "writer": _write}[role_of(asked)](asked, parts)


def _lead(asked: Asked, parts: int) -> Reply:
    helped = [arguments["agent_type"] for name, arguments, result in pairs(asked) if _is_help(name, result)]
    tried = sum(name == "call_agent" for name, _, _ in pairs(asked))
    if "searcher" not in helped and tried < 3 * parts:
        return Reply(calls=[_call("searcher", f"Look at the notes, part {number}.") for number in range(1, parts + 1)])
    if "writer" not in helped and tried < 4 * parts + 3:
        return Reply(calls=[_call("writer", "Write it.")])
    return Reply(calls=[("finish_exploration", {"summary": "The plant had a good May."})])


def _is_help(name: str, result: str) -> bool:
    return name == "call_agent" and '"status": "complete"' in result


def _call(role: str, task: str) -> tuple[str, JsonObject]:
    return "call_agent", {"agent_type": role, "task_description": task}


def part_of(asked: Asked) -> str:
    """Which part of the notes a searcher looks at."""
    return asked.said[0].split("part ")[1].split(".")[0]


def _search(asked: Asked, _parts: int) -> Reply:
    results = [result for _, _, result in pairs(asked)]
    if not any(result.startswith("<<inputs/notes.md>>, lines") for result in results):
        return Reply(calls=[("read_file", {"filepath": "inputs/notes.md"})])
    if not any(result.startswith("Wrote <<parts/") for result in results):
        part = part_of(asked)
        content = f"# Part {part}\n\nSolar output rose by 12 % in May [S1].\n"
        return Reply(calls=[_written(f"parts/{part}.md", content)])
    return Reply(text="Output rose by 12 % [S1].\nNot known: the cause.")


def _write(asked: Asked, _parts: int) -> Reply:
    if not any(result.startswith("Wrote <<report.md>>") for _, _, result in pairs(asked)):
        return Reply(calls=[_written("report.md", REPORT)])
    return Reply(text="The report says that May was good [S1].")


def _written(path: str, content: str) -> tuple[str, JsonObject]:
    return "write_file", {"filepath": path, "content": content, "mode": "overwrite"}


def settings(folder: Path, server: ModelServer, **limits: float) -> Settings:
    """Of a run that asks a server of ours about the user's notes."""
    given = settings_at(server.url, folder, is_anthropic=isinstance(server, AnthropicServer), **limits)
    return given.model_copy(update={"model": MODELS[server.path]})


def settings_at(url: str, folder: Path, *, is_anthropic: bool, **limits: float) -> Settings:
    """The same by a server's address."""
    notes = folder / "notes.md"
    notes.write_text(NOTES)
    services = Services(anthropic_url=url) if is_anthropic else Services(openai_url=url)
    return Settings(
        workspace=folder / "workspace",
        services=services,
        secrets=Secrets(anthropic_key=SecretStr(KEY)) if is_anthropic else Secrets(openai_key=SecretStr(KEY)),
        model="anthropic:claude-haiku-5-5" if is_anthropic else "openai:model-a",
        price=Price(input_usd=1, output_usd=5),
        limits=Limits.model_validate(limits),
        # Nobody uses one here, and to try a sandbox takes a tenth of a second a run.
        shell="off",
        files=(notes,),
    )


def timing(seconds_per_second: float = SECONDS_PER_SECOND) -> Timing:
    """A clock that runs faster than the real one, and the sleep that goes with it."""
    return Timing(
        clock=lambda: time.monotonic() / seconds_per_second,
        sleep=lambda seconds: asyncio.sleep(seconds * seconds_per_second),
        random=random.Random(7).random,  # noqa: S311 - jitter
    )


class WaitedTime:
    """A clock that only waiting moves: what a busy machine takes for the work itself is no time."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def timing(self) -> Timing:
        """The clock, and the sleep that moves it."""
        return replace(timing(), clock=lambda: self._now_s, sleep=self._sleep)

    async def _sleep(self, seconds: float) -> None:
        until_s = self._now_s + seconds
        await asyncio.sleep(seconds * SECONDS_PER_SECOND)
        self._now_s = max(self._now_s, until_s)


def hooks(
    watch_s: float = PATIENT_S, seconds_per_second: float = SECONDS_PER_SECOND, passing: Timing | None = None
) -> RunHooks:
    """A run that waits as the product does, only faster."""
    timeouts = Timeouts(connect_s=5, first_content_s=watch_s, idle_s=watch_s, total_s=20 * watch_s)
    return RunHooks(
        retry_settings=RetrySettings(timeouts, passing or timing(seconds_per_second)),
        run_id="20260810-120000-plant-0001",
    )


def only_run(folder: Path) -> Path:
    """The folder of the one run under a test's folder."""
    (run,) = (folder / "workspace").glob("[!.]*")
    return run


def events_of(run: Path, kind: type) -> list[object]:
    """All events of one kind."""
    return [record.event for record in read_records(run) if isinstance(record.event, kind)]


def is_answered_once(records: list[JournalRecord]) -> None:
    """Check: every call of every turn that was followed up has exactly one result, and none ran twice."""
    turns: Counter[str] = Counter()
    asked: set[str] = set()
    for record in records:
        event = record.event
        if isinstance(event, TurnTaken):
            turns[event.agent] += 1
            key = f"{event.agent}.t{turns[event.agent]}"
            asked |= {f"{key}.{index}" for index in range(1, len(event.turn.calls) + 1)}
    finished = Counter(r.event.call for r in records if isinstance(r.event, ToolFinished))
    started = Counter(r.event.call for r in records if isinstance(r.event, ToolStarted))
    assert set(finished) | set(started) <= asked
    assert max((*finished.values(), *started.values()), default=0) <= 1
    ended = {record.event.agent for record in records if isinstance(record.event, AgentFinished)}
    assert {call for call in asked - set(finished) if call.split(".")[0] in ended} == set()


def check_left_behind(run: Path, server: Watchful) -> None:
    """Check what holds after any run: valid requests, a valid journal, one result a call, a report that says how."""
    assert server.problems == []
    for line in (run / ".explorer" / "journal.jsonl").read_bytes().splitlines():
        json.loads(line.decode(), parse_constant=_no_constant)
    is_answered_once(list(read_records(run)))
    for path in run.rglob("*.md"):
        path.read_text(encoding="utf-8")
    assert (run / "report.md").read_text().startswith("---\n")


def _no_constant(word: str) -> float:
    raise ValueError(word)
