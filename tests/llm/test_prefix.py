"""What a provider's cache rests on: each request of an agent begins with all of its request before."""

import asyncio
import json
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from explorer.journal.control import ControlKind, Inbox
from explorer.llm.clients import RetrySettings
from explorer.llm.options import Timeouts
from explorer.llm.retry import Timing
from explorer.run.hooks import RunHooks
from explorer.run.run import resume, start
from explorer.schema.errors import ExplorerError
from explorer.schema.settings import Secrets, Services, Settings
from model_servers import Asked, ModelServer, OpenAIResponsesServer, OpenAIServer, Reply, ThinkingServer
from team_script import NOTES, role_of, team

JsonObject = dict[str, Any]

QUESTION = "How was May for the plant?"
FOLLOW_UP = "And what of the battery?"
RUN = "run"
LIVES = 20
KEY_CHARS = 28
"""Of an agent's first words: enough to tell agents apart, and before anything that is added to them."""
LEADING_RESULTS = 8
"""That the orchestrator has when its work is done; what is said to it after that, it answers at once."""
TROUBLES = ("empty", "cut", "overloaded", "steer", "down", "broken")
WIRES: Mapping[str, type[ModelServer]] = {
    "anthropic": ThinkingServer,
    "openai": OpenAIServer,
    "openai-responses": OpenAIResponsesServer,
}
BEHIND_HISTORY = frozenset({"include", "reasoning"})
"""Like the limits, what stands behind the history may differ each time."""


class Troubled:
    """The team's script, with something amiss before the n-th reply to a role."""

    def __init__(self, troubles: Mapping[tuple[str, int], str], folder: Path) -> None:
        self._troubles = dict(troubles)
        self._folder = folder
        self._asked: defaultdict[str, int] = defaultdict(int)
        self._lock = threading.Lock()

    def reply(self, asked: Asked) -> Reply:
        """The trouble whose time has come, else what the team says."""
        role = role_of(asked)
        with self._lock:
            self._asked[role] += 1
            trouble = self._troubles.pop((role, self._asked[role]), "")
        if trouble == "steer":
            Inbox(self._folder / ".explorer").leave(ControlKind.STEER, "Mind the battery, too.", time.time_ns)
        if trouble in REPLIES:
            return REPLIES[trouble]
        if role == "orchestrator" and len(asked.results) >= LEADING_RESULTS:
            return Reply(calls=[("finish_exploration", {"summary": "It was replaced."})])
        return team(asked)


REPLIES = {
    "empty": Reply(),
    "cut": Reply(text="The plant had a", stop="max_tokens"),
    "overloaded": Reply(status=529, error="overloaded"),
    "broken": Reply(text="The plant had a good month.", cut="text"),
    "down": Reply(status=401, error="bad_key"),
}


async def whole_run(server: ModelServer, wire: str, folder: Path) -> None:
    """A question, as many lives as it takes, and a follow-up."""
    inputs = folder / "notes.md"
    inputs.write_text(NOTES)
    here = Settings(
        workspace=folder / "workspace",
        reports_dir=folder / "reports",
        model=f"{wire}:model-a",
        files=(inputs,),
        services=Services.model_validate({f"{wire.partition('-')[0]}_url": server.url}),
        secrets=Secrets(anthropic_key=SecretStr("key"), openai_key=SecretStr("key")),
        shell="off",
    )
    hooks = RunHooks(
        run_id=RUN, retry_settings=RetrySettings(Timeouts(), Timing(sleep=lambda _seconds: asyncio.sleep(0)))
    )
    run = here.workspace / RUN
    for life in range(LIVES):
        try:
            await (resume(run, here, hooks=hooks) if life else start(QUESTION, here, hooks))
        except ExplorerError:
            continue
        break
    with suppress(ExplorerError):
        await resume(run, here, FOLLOW_UP, hooks)


def breaks(bodies: list[JsonObject]) -> list[tuple[str, str]]:
    """Where an agent's request does not begin with its request before: the two texts from there on."""
    before: dict[str, str] = {}
    found: list[tuple[str, str]] = []
    for body in bodies:
        text = _text(body)
        agent = _agent(body)
        # What closes a body is where the next one goes on: with a message, a block, or further words of the user's.
        last = before.get(agent, "").rstrip('"}]')
        if not text.startswith(last):
            at = next(index for index, (one, other) in enumerate(zip(last, text, strict=False)) if one != other)
            found.append((last[at : at + 80], text[at : at + 80]))
        before[agent] = text
    return found


def _text(body: JsonObject) -> str:
    """What a provider compares: the body up to the end of the messages, without marks."""
    kept = {name: value for name, value in body.items() if not name.startswith("max_") and name not in BEHIND_HISTORY}
    assert list(kept)[-1] == history_of(body), "something that may change stands before the history"
    assert list(body)[: len(kept)] == list(kept)
    text = json.dumps(kept, separators=(",", ":"))
    return text.replace(',"cache_control":{"type":"ephemeral"}', "").removesuffix("}")


def history_of(body: JsonObject) -> str:
    """What the wire calls the history."""
    return "input" if "input" in body else "messages"


def _agent(body: JsonObject) -> str:
    output = next(message["content"] for message in body[history_of(body)] if message.get("role") == "user")
    first = output if isinstance(output, str) else output[0]["text"]
    return first[:KEY_CHARS]


def requests_of(wire: str, troubles: Mapping[tuple[str, int], str]) -> list[JsonObject]:
    """Play a whole run with its troubles; what was asked."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        script = Troubled(troubles, folder / "workspace" / RUN)
        with WIRES[wire](script.reply) as server:
            asyncio.run(whole_run(server, wire, folder))
    return server.requests


EVERYDAY = {
    ("orchestrator", 1): "empty",
    ("orchestrator", 3): "steer",
    ("orchestrator", 5): "down",
    ("searcher", 2): "overloaded",
    ("searcher", 5): "empty",
    ("analyzer", 2): "cut",
    ("writer", 2): "broken",
    ("writer", 3): "cut",
}


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
def test_every_request_begins_with_the_one_before(wire: str) -> None:
    """For every role, over a whole run: with notes, steering, retries, a life that was cut off, and a follow-up."""
    requests = requests_of(wire, EVERYDAY)
    assert breaks(requests) == []
    heads = defaultdict[str, set[str]](set)
    for body in requests:
        system = body.get("system") or body.get("instructions") or body["messages"][0]
        heads[_agent(body)].add(json.dumps([body["tools"], system]))
    assert [len(head) for head in heads.values()] == [1] * 6
    # A changed word in an old message is seen, or the test could not fail.
    changed = json.loads(json.dumps(requests[-1]).replace("stated by the engine", "said by the engine", 1))
    name = history_of(changed)
    assert len(breaks([*requests, changed | {name: [*changed[name], changed[name][-1]]}])) == 1


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
@settings(max_examples=10, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["orchestrator", "searcher", "analyzer", "writer"]), st.integers(1, 8)),
        st.sampled_from(TROUBLES),
        max_size=12,
    )
)
def test_whatever_is_amiss_requests_begin_with_those_before(wire: str, troubles: dict[tuple[str, int], str]) -> None:
    """Notes, steering, retries and resumed lives in any order change no byte of what was sent before."""
    downs = [place for place, trouble in troubles.items() if trouble == "down"]
    bounded = {place: trouble for place, trouble in troubles.items() if place not in downs[len(TROUBLES) :]}
    assert breaks(requests_of(wire, bounded)) == []
