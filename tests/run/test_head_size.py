"""What a model is told before any history, in bytes: it is sent with every request of every agent.

Measured on 2026-11-22 over OpenAI's wire, the longer one, with a shell: orchestrator 7,440 bytes, searcher 5,890 (with
a folder of the user's 6,530), analyzer 5,280, writer 5,930. Some hosts' shells take 60 bytes more.
"""

import json
from pathlib import Path

import pytest

from explorer.agents.roles import PromptLoader, built_in_roles
from explorer.run.run import start
from explorer.schema.settings import Services, Settings
from model_servers import AnthropicServer, Asked, JsonObject, OpenAIResponsesServer, OpenAIServer, Reply
from team_script import role_of

MAX_BYTES = {"orchestrator": 7_500, "searcher": 6_000, "analyzer": 6_000, "writer": 6_000}
"""Of system text and tools, by role. Who needs more room says less elsewhere."""
MAX_BYTES_WITH_FOLDER = {**MAX_BYTES, "searcher": 6_600}
WIRES = {
    "anthropic": (AnthropicServer, "anthropic_url", ""),
    "chat": (OpenAIServer, "openai_url", ""),
    "responses": (OpenAIResponsesServer, "openai_url", "openai-responses:model-a"),
}
"""The server, the setting of its address, and the model that is asked for where the address alone does not choose."""


def call_everybody(asked: Asked) -> Reply:
    """The orchestrator calls one helper of each role, and nobody does anything."""
    if role_of(asked) != "orchestrator" or asked.results:
        return Reply(text="Done.")
    helpers = [role for role in MAX_BYTES if role != "orchestrator"]
    return Reply(calls=[("call_agent", {"agent_type": role, "task_description": "Wait."}) for role in helpers])


def head_bytes(asked: Asked) -> int:
    """Of a request's system text and of its tools as JSON, without a flag that is for the API and not for the model."""
    shown = [{name: value for name, value in tool.items() if name != "strict"} for tool in asked.body["tools"]]
    tools = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    return len(asked.system.encode()) + len(tools.encode())


async def heads_of_a_run(wire: str, folder: Path, corpus: Path | None = None) -> dict[str, Asked]:
    """The last request of each role in a run with nothing set but a server's address."""
    server_class, address, model = WIRES[wire]
    with server_class(call_everybody) as server:
        services = Services.model_validate({address: server.url})
        here = Settings(workspace=folder / "workspace", services=services, corpus=corpus, model=model)
        await start("What is the matter?", here)
    bodies: list[JsonObject] = list(server.requests)
    return {role_of(asked): asked for asked in map(server.read, bodies)}


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
async def test_what_is_sent_with_every_request_is_short(wire: str, tmp_path: Path) -> None:
    """No built-in role is told more than its bound, over any wire."""
    heads = await heads_of_a_run(wire, tmp_path)
    assert set(heads) == set(MAX_BYTES) == set(PromptLoader([built_in_roles()]).roles())
    assert {role: size for role, asked in heads.items() if (size := head_bytes(asked)) > MAX_BYTES[role]} == {}
    assert {"web_search", "read_webpage", "get_hn_stories", "write_file"} < set(heads["searcher"].tools)


async def test_a_folder_of_the_users_adds_little(tmp_path: Path) -> None:
    """With a corpus the searcher has two tools more, and still a short head; nobody else notices."""
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "note.md").write_text("The plant had a good May.\n")
    heads = await heads_of_a_run("chat", tmp_path, folder)
    assert {"search_corpus", "read_document"} < set(heads["searcher"].tools)
    over = {role: size for role, asked in heads.items() if (size := head_bytes(asked)) > MAX_BYTES_WITH_FOLDER[role]}
    assert over == {}
