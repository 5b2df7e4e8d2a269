"""How much a model is to reason: said by the user, checked at the start, sent in each vendor's own field."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from anthropic.types.output_config_param import OutputConfigParam
from openai.types.shared.reasoning_effort import ReasoningEffort
from pydantic import SecretStr

from explorer.journal.listing import read_records
from explorer.llm.anthropic.vendor import VENDOR as ANTHROPIC_VENDOR
from explorer.llm.openai.vendor import VENDOR as OPENAI_VENDOR
from explorer.llm.options import Timeouts
from explorer.llm.retry import WaitLimits
from explorer.run.hooks import RunHooks
from explorer.run.resources import open_resources
from explorer.run.run import resume, start
from explorer.schema.errors import ConfigError, ModelError
from explorer.schema.events import RoleLoaded
from explorer.schema.settings import Secrets, Services, Settings
from llm.conversations import ANTHROPIC, BOTH, CHAT, QUESTION, RESPONSES
from llm.test_conversations import client_for, request_for, server_for
from model_servers import Asked, JsonObject, OpenAIResponsesServer, Reply

FIELDS: dict[str, JsonObject] = {
    ANTHROPIC: {"output_config": {"effort": "high"}},
    CHAT: {"reasoning_effort": "high"},
    RESPONSES: {"reasoning": {"effort": "high"}},
}
ROLE = "---\nname: scout\ndescription: Looks around.\ntools: [read_file]\neffort: low\n---\nLook around."


def test_the_sdks_know_the_words() -> None:
    """The words of each vendor are those of its SDK: a new one breaks this test."""
    anthropic = get_type_hints(OutputConfigParam)["effort"]
    assert set(ANTHROPIC_VENDOR.efforts) == set(get_args(get_args(anthropic)[0]))
    assert set(OPENAI_VENDOR.efforts) == set(get_args(get_args(ReasoningEffort)[0]))


@pytest.mark.parametrize("wire", BOTH)
async def test_the_effort_is_sent_in_the_vendors_own_field(wire: str) -> None:
    """Behind the history, so that another effort leaves the beginning as it is; without one, no field at all."""
    with server_for(wire, Reply(text="a"), Reply(text="b")) as server:
        async with client_for(wire, server.url, Timeouts()) as client:
            await client.generate(request_for(QUESTION))
            await client.generate(replace(request_for(QUESTION), effort="high"))
    plain, shown = server.requests
    assert shown == plain | FIELDS[wire]
    assert list(shown)[: len(plain)] == list(plain)


@pytest.mark.parametrize(
    ("effort", "model", "says"),
    [
        ({"*": "minimal"}, "claude-opus-5-5", "anthropic:claude-opus-5-5 does not take the effort 'minimal'"),
        ({"nobody": "low"}, "claude-opus-5-5", "an effort is set for the role 'nobody'"),
    ],
)
async def test_what_cannot_be_sent_is_refused_at_the_start(effort: dict[str, str], model: str, says: str) -> None:
    """A word that the vendor does not know, and a role that is not there, before anything is asked."""
    secrets = Secrets(anthropic_key=SecretStr("k"))
    settings = Settings.model_validate({"model": model, "effort": effort, "secrets": secrets})
    with pytest.raises(ConfigError, match=says):
        async with open_resources(settings):
            pass


@pytest.mark.slow
async def test_who_decides_how_much_a_role_reasons(tmp_path: Path) -> None:
    """The user's word for the role, else the one for all, else the role file's."""
    (tmp_path / "scout.md").write_text(ROLE)
    found: list[tuple[str, str]] = []
    for effort in ({}, {"*": "high"}, {"*": "high", "scout": "max"}):
        settings = Settings.model_validate({"model": "offline", "effort": effort, "roles_dir": tmp_path})
        async with open_resources(settings) as resources:
            models = [resources.model_of(role, _ignore, WaitLimits()) for role in ("scout", "writer")]
            found.append((models[0].effort, models[1].effort))
    assert found == [("low", ""), ("high", "high"), ("max", "high")]


async def _ignore(*_failure: object) -> None:
    pass


async def test_a_resumed_run_keeps_its_effort_unless_told_otherwise(tmp_path: Path) -> None:
    """The effort is on record with the role; another one changes nothing of what stands before the history's end."""
    down = Reply(status=401, error="bad_key")
    replies = [Reply(thinking="Hm.", calls=[("list_files", {})]), down, down]

    def script(asked: Asked) -> Reply:
        if replies:
            return replies.pop(0)
        return (
            Reply(calls=[("finish_exploration", {"summary": "No."})]) if len(asked.results) > 1 else Reply(text="No.")
        )

    with OpenAIResponsesServer(script) as server:
        settings = Settings.model_validate(
            {
                "workspace": tmp_path,
                "model": "openai-responses:model-a",
                "effort": {"orchestrator": "high"},
                "services": Services(openai_url=server.url),
                "shell": "off",
                "state_dir": tmp_path / "state",
            }
        )
        hooks = RunHooks(run_id="run")
        with pytest.raises(ModelError):
            await start("What is new?", settings, hooks)
        services = Services(openai_url=server.url)
        now = Settings(workspace=tmp_path, shell="off", services=services, state_dir=settings.state_dir)
        for again in (now, now.model_copy(update={"effort": {"*": "low"}})):
            with pytest.raises(ModelError) if replies else nullcontext():
                await resume(tmp_path / "run", again, hooks=hooks)
    efforts = [body["reasoning"]["effort"] for body in server.requests]
    assert efforts[:4] == ["high", "high", "high", "low"]
    third, fourth = (json.dumps(body) for body in server.requests[2:4])
    assert third.partition('"max_output_tokens"')[0] == fourth.partition('"max_output_tokens"')[0]
    heads = [record.event for record in read_records(tmp_path / "run") if isinstance(record.event, RoleLoaded)]
    assert [head.effort for head in heads if head.role == "orchestrator"] == ["high"]
