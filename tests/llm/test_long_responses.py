"""Long runs over OpenAI's Responses API, whose models reason before every reply."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from explorer.llm.history import BoundReasoning, KeptReasoning
from explorer.llm.openai.responses import ResponsesClient, is_reasoning, to_prefix
from explorer.llm.options import ClientOptions
from explorer.llm.prompt_cache import EncodedRequests
from explorer.llm.vendors import OPENAI_RESPONSES as PROVIDER
from explorer.run.hooks import RunHooks
from explorer.run.run import start
from explorer.schema.events import Status
from explorer.schema.messages import JsonObject, Request
from llm.long_run import QUESTION, Reader, settings
from llm.test_preserved_thinking import RUN, OneTooMany, kinds_of
from model_servers import Asked, OpenAIResponsesServer, Reply
from vendor_rules.responses_reasoning import lost

MODEL = "openai-responses:gpt-6-luna"


class Thinker(Reader):
    """Reasons before every reply."""

    def __call__(self, asked: Asked) -> Reply:
        """Say what comes next."""
        return replace(super().__call__(asked), thinking="I weigh it.")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "words", "cleared", "summarised"),
    [(40, 5_000, 2, 1), pytest.param(300, 1_500, 6, 2, marks=pytest.mark.timeout(900))],
)
async def test_a_long_run_ends_complete(tmp_path: Path, steps: int, words: int, cleared: int, summarised: int) -> None:
    """Through clearing and summaries no request is refused, no reasoning is sent in vain, and none is left out."""
    with OpenAIResponsesServer(Thinker(steps, words)) as server:
        here = settings(server, tmp_path, steps, MODEL)
        result = await start(QUESTION, here, RunHooks(run_id=RUN))
    kinds = kinds_of(here.workspace / RUN)
    assert (result.status, kinds["turn_failed"]) == (Status.COMPLETE, 0), result.reason
    assert kinds["compacted"] >= cleared
    assert kinds["summarised"] >= summarised
    assert server.withheld == [[]] * len(server.requests)
    assert lost(server.requests) == []
    # Reasoning did go back, behind edits, too, or the above would hold of itself.
    assert server.kept["R20"] >= len(server.requests) - 1 - kinds["compacted"] - kinds["summarised"] - 3


class OneTooFew(BoundReasoning):
    """Leaves the reasoning of the latest turn out although nothing before it has changed."""

    def before(self, request: Request) -> KeptReasoning:
        """Leave out one turn that is to be sent."""
        bound = super().before(request)
        return KeptReasoning(bound.kept - {max(bound.kept, default=-1)}, bound.digest)


class Careless(EncodedRequests):
    """Leaves out one item of reasoning, and what it led to stays as it was."""

    def body(self, request: Request, messages: Sequence[JsonObject], rest: JsonObject) -> bytes:
        """Write a request without the first item of reasoning."""
        first = next((place for place, item in enumerate(messages) if is_reasoning(item)), len(messages))
        return super().body(request, [*messages[:first], *messages[first + 1 :]], rest)


class Mutant(ResponsesClient):
    """The adapter with a fault."""

    def __init__(self, options: ClientOptions, reasoning: BoundReasoning, heads: EncodedRequests) -> None:
        super().__init__(options)
        self._reasoning, self._prefixes = reasoning, heads


def right() -> tuple[BoundReasoning, EncodedRequests]:
    return BoundReasoning(PROVIDER), EncodedRequests(to_prefix)


def keeps_one_too_many() -> tuple[BoundReasoning, EncodedRequests]:
    return OneTooMany(PROVIDER), EncodedRequests(to_prefix)


def keeps_one_too_few() -> tuple[BoundReasoning, EncodedRequests]:
    return OneTooFew(PROVIDER), EncodedRequests(to_prefix)


def drops_half_a_turn() -> tuple[BoundReasoning, EncodedRequests]:
    return BoundReasoning(PROVIDER), Careless(to_prefix)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "found"),
    [
        (right, set[str]()),
        (keeps_one_too_many, {"withheld"}),
        (keeps_one_too_few, {"withheld", "lost"}),
        (drops_half_a_turn, {"lost", "refused"}),
    ],
)
async def test_one_item_too_many_or_too_few_is_found(
    tmp_path: Path, made: Callable[[], tuple[BoundReasoning, EncodedRequests]], found: set[str]
) -> None:
    """The server sees each fault for what it is, and none in the right adapter."""
    with OpenAIResponsesServer(Thinker(14, 5_000), expects_refusals=True) as server:
        async with Mutant(ClientOptions(base_url=server.url, key=SecretStr("key")), *made()) as client:
            here = settings(server, tmp_path, 14, "gpt-6-luna")
            result = await start(QUESTION, here, RunHooks(run_id=RUN, client=client))
    seen = {
        "withheld": any(server.withheld),
        "lost": bool(lost(server.requests)),
        "refused": any(name == "R21" for name, _ in server.refused),
    }
    assert {name for name, is_seen in seen.items() if is_seen} == found
    # Reasoning that is refused is dropped for good after two refusals, so none of these faults ends a run.
    assert result.status is Status.COMPLETE
