"""Roles of a user's own, with names of their own: what each may do is in its file."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.run.hooks import RunHooks, StopSignal
from explorer.run.run import resume, start
from explorer.schema.events import RoleLoaded, ToolFinished
from explorer.schema.messages import Request, Turn
from explorer.schema.settings import Settings
from explorer.testing import Script, ScriptedClient, says

FILES = {
    "chief": "leads: true\ntools: [call_agent, get_hn_stories, write_file, finish_exploration]",
    "scribe": "writes_report: true\ntools: [write_file]",
    "scout": "tools: [get_hn_stories]",
}
REPORT = "# Boots\n\nA minicomputer boots from paper tape again [S30].\n"
LIST = ("get_hn_stories", {"story_type": "top", "limit": 30})


def helper(role: str) -> Turn:
    """A call of a helper."""
    return says("", ("call_agent", {"agent_type": role, "task_description": f"Work as {role}."}))


def prepared(folder: Path) -> Settings:
    """Three roles, none of them with a name of a built-in one."""
    (folder / "roles").mkdir()
    for name, fields in FILES.items():
        head = f"name: {name}\ndescription: Works as {name}.\n{fields}\n"
        (folder / "roles" / f"{name}.md").write_text(f"---\n{head}---\nYou are the {name}.\n")
    return Settings(workspace=folder / "workspace", roles_dir=folder / "roles", is_sample=True, shell="off")


def hooks(chief: Script | Sequence[Turn]) -> RunHooks:
    """A scripted model for each of the three."""
    scripts: dict[str, Sequence[Turn] | Script] = {
        "chief": chief,
        "scout": [says("", LIST), says("Thirty stories.")],
        "scribe": [says("", ("write_file", {"filepath": "report.md", "content": REPORT})), says("Written.")],
    }
    return RunHooks(client=ScriptedClient(scripts), run_id="run")


FINISH = says("", ("finish_exploration", {"summary": "It boots."}))


async def test_a_role_of_any_name_leads_and_another_writes(tmp_path: Path) -> None:
    """The run is complete; in the journal the agent that leads is the orchestrator, and its role has its own name."""
    settings = prepared(tmp_path)
    run = await start("What boots?", settings, hooks([helper("scout"), helper("scribe"), FINISH]))
    assert (run.status, run.reason) == ("complete", "")
    state = RunState.of_records(read_records(run.folder))
    roles = {agent.agent: agent.role for agent in state.agents.values()}
    assert roles == {"orchestrator": "chief", "scout-1": "scout", "scribe-1": "scribe"}
    loaded = [r.event for r in read_records(run.folder) if isinstance(r.event, RoleLoaded)]
    (told,) = [tool.description for event in loaded for tool in event.tools if tool.name == "call_agent"]
    assert "- scribe: Works as scribe." in told
    assert "chief" not in told
    assert "orchestrator" not in told
    again = await resume(run.folder, settings, "And now?", hooks(_follow_up))
    assert again.status == "complete"


def _follow_up(request: Request) -> Turn:
    del request
    return FINISH


@pytest.mark.slow
async def test_a_writer_of_any_name_is_left_when_exploring_is_over(tmp_path: Path) -> None:
    """A scout is refused then, the scribe is not, and its report is the run's."""
    stop = StopSignal()

    def chief(request: Request) -> Turn:
        number = sum(isinstance(message, Turn) for message in request.history)
        if number == 1:
            stop.wind_down("enough is known")
        return [says("", LIST), helper("scout"), helper("scribe"), FINISH][number]

    run = await start("What boots?", prepared(tmp_path), replace(hooks(chief), stop=stop))
    events = [record.event for record in read_records(run.folder)]
    calls = [event for event in events if isinstance(event, ToolFinished) and event.name == "call_agent"]
    assert [call.success for call in calls] == [False, True]
    assert (
        calls[0].content == "refused: the run is winding down (<<enough is known>>); only the report may be worked on"
    )
    assert (run.status, run.reason) == ("partial", "enough is known")
    assert "paper tape again [1]" in run.report_text
