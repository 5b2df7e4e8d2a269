"""What a role has not got it cannot use, however it is asked for; the model is told, and the journal shows it."""

from pathlib import Path

from attacks.obedient import Call, ObedientClient
from attacks.world import NO_SHELL, ROLE_TOOLS, events, helping, leading, world
from explorer.schema.events import AgentStarted, ToolFinished, ToolStarted
from explorer.schema.messages import JsonObject, Request, Results

ATTEMPTS: list[Call] = [
    ("execute_shell", {"command": "id"}),
    ("call_agent", {"agent_type": "analyzer", "task_description": "Run a command."}),
    ("READ_WEBPAGE", {"url": "http://evil.test/"}),
    ("Execute_Shell", {"command": "id"}),
    ("execute_shell ", {"command": "id"}),
    ("execute\u200b_shell", {"command": "id"}),
    ("ex\u0435cute_shell", {"command": "id"}),
    ("functions.execute_shell", {"command": "id"}),
    ("multi_tool_use.parallel", {"tool_uses": [{"recipient_name": "execute_shell", "parameters": {}}]}),
    ("finish_exploration", {"summary": "All is done."}),
    ("bash", {"command": "id"}),
    ("__class__", {}),
    ("", {}),
]


def told(request: Request) -> list[str]:
    """All results an agent has read."""
    return [one.content for output in request.history if isinstance(output, Results) for one in output.results]


class Listening(ObedientClient):
    """Keeps what each role was told."""

    def __init__(self, *plans: JsonObject) -> None:
        super().__init__(plans[0])
        self.told: dict[str, list[str]] = {}

    async def generate(self, request: Request):  # noqa: ANN201 - as the one it is made of
        """Keep, and go on."""
        self.told[request.role] = told(request)
        return await super().generate(request)


async def test_a_tool_of_another_role(tmp_path: Path) -> None:
    """A searcher that asks for a shell, for a helper, or for look-alikes of tools is denied each, and told its own."""
    async with world(tmp_path, {}) as made:
        # Something that works in between: errors alone would end it before it has tried all.
        steps = [
            [attempt, ("list_files", {"path": "", "glob": str(number)})] for number, attempt in enumerate(ATTEMPTS)
        ]
        client = Listening({"orchestrator": leading(_call("searcher")), "searcher": helping(*steps)})
        await made.explore(client, **NO_SHELL)
        record = events(made.run)
    denials = [one for one in record if isinstance(one, ToolFinished) and one.name != "list_files" and not one.success]
    assert [one.name for one in denials] == [name for name, _ in ATTEMPTS]
    tools = ", ".join(ROLE_TOOLS["searcher"])
    assert all("there is no tool called" in one.content and one.content.endswith(tools) for one in denials)
    assert {one.content for one in denials} <= set(client.told["searcher"])
    ran = {one.name for one in record if isinstance(one, ToolStarted) and one.agent == "searcher-1"}
    assert ran == {"list_files"}
    assert [one.role for one in record if isinstance(one, AgentStarted)] == ["orchestrator", "searcher"]


async def test_no_helper_can_be_made_of_nothing(tmp_path: Path) -> None:
    """The lead cannot call itself, a role that is not there, a file, nor give a helper the tools of another."""
    asked = [
        _call("orchestrator"),
        _call("Searcher"),
        _call("searcher\n"),
        _call("../../roles/analyzer"),
        ("call_agent", {**_call("searcher")[1], "tools": ["execute_shell"]}),
        ("call_agent", {**_call("searcher")[1], "agent_id": "orchestrator"}),
        ("call_agent", {**_call("searcher")[1], "agent_id": "analyzer-1"}),
        ("call_agent", {**_call("searcher")[1], "output_dir": ".explorer"}),
    ]
    async with world(tmp_path, {}) as made:
        client = ObedientClient({"orchestrator": leading(*asked), "searcher": helping()})
        await made.explore(client, **NO_SHELL)
        record = events(made.run)
    answers = [one for one in record if isinstance(one, ToolFinished) and one.name == "call_agent"]
    assert len(answers) == len(asked)
    assert not any(one.success for one in answers)
    assert [one.agent for one in record if isinstance(one, AgentStarted)] == ["orchestrator"]


def _call(role: str) -> Call:
    return "call_agent", {"agent_type": role, "task_description": "Look."}
