"""Long runs, edits and repairs against a server that binds reasoning to what stands before it, as Anthropic's does."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from explorer.journal.agent_state import MAX_REASONING_REFUSALS
from explorer.journal.codec import encode_all
from explorer.journal.listing import read_records
from explorer.llm.anthropic.messages import AnthropicClient
from explorer.llm.history import BoundReasoning, KeptReasoning
from explorer.llm.options import ClientOptions
from explorer.run.hooks import RunHooks
from explorer.run.run import resume, start
from explorer.schema.errors import ModelError
from explorer.schema.events import Status, TurnTaken
from explorer.schema.messages import Message, Request, Turn, UserText
from explorer.schema.settings import Settings
from explorer.workspace.access import journal_path
from llm.long_run import QUESTION, Reader, settings
from model_servers import Asked, Reply, ThinkingServer
from vendor_rules import rule
from vendor_rules.anthropic_thinking import placed
from vendor_rules.rule import Refusal, Rule, RuleSet

RUN = "run"


def kinds_of(run: Path) -> Counter[str]:
    return Counter(record.event.type for record in read_records(run))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "words", "cleared", "summarised"),
    [(40, 5_000, 2, 1), pytest.param(300, 1_500, 6, 2, marks=pytest.mark.timeout(900))],
)
async def test_a_long_run_ends_complete(tmp_path: Path, steps: int, words: int, cleared: int, summarised: int) -> None:
    """Old results are cleared and exchanges summarised many times, and no reasoning is sent behind anything else."""
    with ThinkingServer(Reader(steps, words)) as server:
        here = settings(server, tmp_path, steps)
        result = await start(QUESTION, here, RunHooks(run_id=RUN))
    kinds = kinds_of(here.workspace / RUN)
    assert (result.status, result.reason, kinds["turn_failed"]) == (Status.COMPLETE, "", 0)
    assert kinds["compacted"] >= cleared
    assert kinds["summarised"] >= summarised
    edits = kinds["compacted"] + kinds["summarised"]
    # An edit costs what it costs; nothing else makes an entry of the cache useless.
    assert server.cache.missed <= edits
    # Reasoning did go back, behind edits, too, or the rule would hold of itself.
    assert server.kept["A1"] == server.kept["A3"] >= len(server.requests) - 2 - edits


class OneTooMany(BoundReasoning):
    """Sends the reasoning of one turn back although something before it has changed."""

    def before(self, request: Request) -> KeptReasoning:
        """Add the latest turn that is not to be sent."""
        bound = super().before(request)
        turns = {place for place, one in enumerate(request.history) if isinstance(one, Turn)} - bound.kept
        return KeptReasoning(bound.kept | {max(turns)}, bound.digest) if turns else bound


class Mutant(AnthropicClient):
    """The adapter with that fault."""

    def __init__(self, options: ClientOptions, reasoning: BoundReasoning) -> None:
        super().__init__(options)
        self._reasoning = reasoning


@pytest.mark.slow
@pytest.mark.parametrize(("reasoning", "status"), [(BoundReasoning, Status.COMPLETE), (OneTooMany, Status.PARTIAL)])
async def test_one_block_too_many_is_refused(tmp_path: Path, reasoning: type[BoundReasoning], status: Status) -> None:
    """The server sees it, and only it: with the same adapter and the right rule the run ends complete."""
    with ThinkingServer(Reader(14, 5_000), expects_refusals=True) as server:
        options = ClientOptions(base_url=server.url, key=SecretStr("key"))
        async with Mutant(options, reasoning("anthropic")) as client:
            result = await start(QUESTION, settings(server, tmp_path, 14), RunHooks(run_id=RUN, client=client))
    assert {name for name, _ in server.refused} == (set[str]() if status is Status.COMPLETE else {"A1"})
    assert (result.status is Status.COMPLETE) == (status is Status.COMPLETE)


class Interrupted:
    """A model whose key is refused once, after so many replies; then it goes on."""

    def __init__(self, model: Reader, after: int) -> None:
        self._model, self._left = model, after

    def __call__(self, asked: Asked) -> Reply:
        """Say what comes next, but for the one time."""
        self._left -= 1
        return Reply(status=401, error="bad_key") if self._left == -1 else self._model(asked)


async def interrupted(here: Settings) -> None:
    with pytest.raises(ModelError):
        await start(QUESTION, here, RunHooks(run_id=RUN))
    assert kinds_of(here.workspace / RUN)["compacted"]


def rewrite(run: Path, change: Callable[[Turn], Turn]) -> None:
    """Change every turn of a journal."""
    records = [
        record.model_copy(update={"event": record.event.model_copy(update={"turn": change(record.event.turn)})})
        if isinstance(record.event, TurnTaken)
        else record
        for record in read_records(run)
    ]
    journal_path(run).write_bytes(encode_all(records))


def forged(turn: Turn) -> Turn:
    """A turn whose reasoning the server has never made where it stands."""
    blocks = [block | {"signature": "claude-opus-5-5|0|0"} if "signature" in block else block for block in turn.blocks]
    return turn.model_copy(update={"blocks": tuple(blocks)})


@pytest.mark.slow
async def test_a_run_of_an_older_version_goes_on(tmp_path: Path) -> None:
    """Its journal says nothing of what reasoning is bound to, so none of it is sent; further reasoning is."""
    with ThinkingServer(Interrupted(Reader(20, 2_000), 16)) as server:
        here = settings(server, tmp_path, 20)
        await interrupted(here)
        rewrite(here.workspace / RUN, lambda turn: forged(turn).model_copy(update={"bound_to": ""}))
        before = server.kept["A1"]
        result = await resume(here.workspace / RUN, here)
    assert result.status is Status.COMPLETE
    assert server.kept["A1"] > before
    assert not kinds_of(here.workspace / RUN)["reasoning_dropped"]


@pytest.mark.slow
async def test_reasoning_that_is_refused_all_the_same_is_dropped_once(tmp_path: Path) -> None:
    """Whatever the provider's reason: one refusal, one record of it, and the run goes on, also when resumed."""
    with ThinkingServer(Interrupted(Reader(20, 2_000), 16), expects_refusals=True) as server:
        here = settings(server, tmp_path, 20)
        await interrupted(here)
        rewrite(here.workspace / RUN, forged)
        result = await resume(here.workspace / RUN, here)
    assert result.status is Status.COMPLETE
    assert [name for name, _ in server.refused] == ["A1"]
    assert kinds_of(here.workspace / RUN)["reasoning_dropped"] == 1


@pytest.mark.slow
async def test_a_server_that_takes_no_reasoning_back_is_sent_none(tmp_path: Path) -> None:
    """Something between here and the provider may change every request: after two refusals nothing is tried again."""
    words = "messages.1.content.0: Invalid `signature` in `thinking` block"
    never = Rule(
        "X1",
        "no reasoning is taken back",
        "a gateway that writes messages anew",
        lambda asked: Refusal(words) if any(one.is_reasoning for one in placed(asked.body)) else None,
        lambda _asked: None,
    )
    rules = RuleSet("gateway", (never,), lambda: rule.Asked({}))
    with ThinkingServer(Reader(12, 100), rules=rules, expects_refusals=True) as server:
        here = settings(server, tmp_path, 12)
        result = await start(QUESTION, here, RunHooks(run_id=RUN))
    assert result.status is Status.COMPLETE
    assert len(server.refused) == kinds_of(here.workspace / RUN)["reasoning_dropped"] == MAX_REASONING_REFUSALS


async def test_a_model_and_back() -> None:
    """Another model is sent none of the first one's reasoning; back at the first, its own goes back again."""
    with ThinkingServer(lambda _asked: Reply(text="Yes.", redacted="all")) as server:
        options = ClientOptions(base_url=server.url, key=SecretStr("key"))
        history: tuple[Message, ...] = ()
        async with AnthropicClient(options) as client:
            for model in ("claude-opus-5-5", "claude-opus-5-5", "claude-sonnet-5-5", "claude-opus-5-5"):
                history = (*history, UserText(text="And?"))
                asked = Request(
                    agent="a", role="r", model=model, system="s", tools=(), history=history, max_output_tokens=1
                )
                history = (*history, await client.generate(asked))
    sent = [sum(one.is_reasoning for one in placed(body)) for body in server.requests]
    assert sent == [0, 2, 0, 4]
