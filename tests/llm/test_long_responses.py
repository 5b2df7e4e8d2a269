"""A long run over OpenAI's Responses API, whose models reason before every reply."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from explorer.events import Status
from explorer.run import Extras, start
from explorer.settings import Secrets, Services
from llm.test_preserved_thinking import QUESTION, RUN, Reader, kinds_of, settings
from model_servers import Asked, OpenAIResponsesServer, Reply

STEPS, WORDS = 40, 5_000


@pytest.mark.slow
async def test_a_long_run_ends_complete(tmp_path: Path) -> None:
    """Through clearing and summaries no request is refused, and no reasoning is sent that the API would ignore."""
    reader = Reader(STEPS, WORDS)

    def script(asked: Asked) -> Reply:
        return replace(reader(asked), thinking="I weigh it.")

    with OpenAIResponsesServer(script) as server:
        here = settings(server, tmp_path, STEPS).model_copy(
            update={
                "model": "openai-responses:gpt-6-luna",
                "services": Services(openai_url=server.url),
                "secrets": Secrets(openai_key=SecretStr("key")),
            }
        )
        result = await start(QUESTION, here, Extras(run_id=RUN))
    kinds = kinds_of(here.workspace / RUN)
    assert (result.status, kinds["turn_failed"]) == (Status.COMPLETE, 0), result.reason
    assert kinds["compacted"] >= 2
    assert kinds["summarised"] >= 1
    assert server.withheld == [[]] * len(server.requests)
    # Reasoning did go back, behind edits, too, or the above would hold of itself.
    assert server.kept["R20"] >= len(server.requests) - 1 - kinds["compacted"] - kinds["summarised"] - 3
