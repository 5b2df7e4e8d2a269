"""Helpers that call helpers: where their file and the setting say so, to a depth of two, under one set of limits."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.run.hooks import RunHooks
from explorer.run.run import RunResult, start
from explorer.schema.errors import ConfigError
from explorer.schema.events import AgentStarted, RoleLoaded, ToolFinished
from explorer.schema.messages import Turn
from explorer.schema.settings import Limits, Settings
from explorer.testing import Script, ScriptedClient, says
from explorer.text.rendering import without_marks

LIST = ("get_hn_stories", {"story_type": "top", "limit": 30})
REPORT = says("", ("write_file", {"filepath": "report.md", "content": "# Boots\n\nIt boots again from tape [S30].\n"}))
FINISH = says("", ("finish_exploration", {"summary": "It boots."}))


def helper(*roles: str, **more: str) -> Turn:
    """Calls of helpers in one turn."""
    calls = [("call_agent", {"agent_type": role, "task_description": f"Work as {role}.", **more}) for role in roles]
    return says("", *calls)


def settings_of(folder: Path, fields: str, **more: object) -> Settings:
    """A surveyor that may call helpers, and a scout."""
    roles = folder / "roles"
    roles.mkdir(parents=True)
    for name, own in (("surveyor", fields), ("scout", "tools: [call_agent, get_hn_stories]")):
        head = f"name: {name}\ndescription: Works as {name}.\n{own}\n"
        (roles / f"{name}.md").write_text(f"---\n{head}---\nYou are the {name}.\n")
    return Settings.model_validate(
        {"workspace": folder, "roles_dir": roles, "is_sample": True, "shell": "off", "max_depth": 2, **more}
    )


SURVEYOR = "tools: [call_agent, get_hn_stories]\nhelpers: [scout]"


async def ran(settings: Settings, surveyor: Sequence[Turn] | Script, scout: Sequence[Turn] | Script) -> RunResult:
    """A run whose orchestrator calls two surveyors at once."""
    lead = [helper("surveyor", "surveyor"), REPORT, FINISH]
    client = ScriptedClient({"orchestrator": lead, "surveyor": surveyor, "scout": scout})
    return await start("What boots?", settings, RunHooks(client=client, run_id="run"))


def results(run: RunResult, agent: str) -> list[str]:
    """What the calls of helpers of an agent brought."""
    events = (record.event for record in read_records(run.folder))
    found = [event for event in events if isinstance(event, ToolFinished) and event.name == "call_agent"]
    return [("" if one.success else "!") + without_marks(one.content) for one in found if one.agent == agent]


async def test_a_helper_calls_helpers_and_they_call_no_one(tmp_path: Path) -> None:
    """With one place for all: who waits for a helper lends its own. The tree, the tasks and the names are on record."""
    limits = Limits(max_parallel_agents=1)
    surveyor = [helper("scout", "scout"), says("Both scouts are back.")]
    scout = [says("", LIST), helper("scout"), says("Thirty stories.")]
    run = await ran(settings_of(tmp_path, SURVEYOR, limits=limits), surveyor, scout)
    assert (run.status, run.agents) == ("complete", 7)
    events = [record.event for record in read_records(run.folder)]
    parents = {event.agent: event.parent for event in events if isinstance(event, AgentStarted)}
    of_first = [name for name, parent in parents.items() if parent == "surveyor-1"]
    assert (parents["surveyor-1"], parents["surveyor-2"], len(of_first)) == ("orchestrator", "orchestrator", 2)
    state = RunState.of(events)
    task = state.agents[of_first[0]].messages[0]
    assert task.task is not None  # type: ignore[union-attr]
    assert task.task.words == "Work as scout."  # type: ignore[union-attr]
    assert "Another helper wrote this task" in task.text  # type: ignore[union-attr]
    refused = "!helpers of helpers call no one: do this part of your task yourself"
    assert results(run, of_first[0]) == [refused]
    told = {event.role: event.tools[0].description for event in events if isinstance(event, RoleLoaded)}
    assert told["surveyor"].endswith("Helpers:\n- scout: Works as scout.")
    assert "- writer:" in told["orchestrator"]


@pytest.mark.slow
async def test_limits_of_helpers_count_those_of_helpers(tmp_path: Path) -> None:
    """The third of three helpers is refused to whoever asks, and a helper continues only its own."""
    surveyor = [says("", LIST), helper("scout", agent_id="surveyor-2"), helper("scout"), says("Done.")]
    limits = Limits(max_agents=3, max_parallel_agents=1)
    run = await ran(settings_of(tmp_path, SURVEYOR, limits=limits), surveyor, [says("", LIST), says("Thirty.")])
    answers = results(run, "surveyor-1") + results(run, "surveyor-2")
    assert sum("the last place is kept for the writer" in answer for answer in answers) == 2
    assert sum("there is no helper 'surveyor-2' in this run; there are: none yet" in one for one in answers) == 2
    assert run.agents == 3


@pytest.mark.parametrize(
    ("fields", "depth", "words"),
    [
        (SURVEYOR, 1, "only the role that leads may call helpers"),
        ("tools: [call_agent]\nhelpers: [writer]", 2, "it cannot call 'writer'"),
        ("tools: [call_agent]\nhelpers: [nobody]", 2, "it cannot call 'nobody'"),
    ],
)
async def test_a_role_that_may_not_is_refused_before_the_run(
    tmp_path: Path, fields: str, depth: int, words: str
) -> None:
    """At depth 1 as ever; a helper has no report written, and calls only roles that are there."""
    with pytest.raises(ConfigError) as refused:
        await ran(settings_of(tmp_path, fields, max_depth=depth), [], [])
    assert words in refused.value.message
