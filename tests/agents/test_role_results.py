"""Results of helpers as data: declared by roles, given by models or known by the engine, checked, never lost."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from explorer.agents.roles import load_role
from explorer.journal.listing import read_records
from explorer.observe.run_view import RunView
from explorer.run.hooks import RunHooks
from explorer.run.results import run_facts
from explorer.run.run import RunResult, start
from explorer.schema.errors import ConfigError
from explorer.schema.events import ToolFinished
from explorer.schema.messages import Turn
from explorer.schema.settings import Settings
from explorer.testing import ScriptedClient, says
from explorer.text.rendering import without_marks

LIST = ("get_hn_stories", {"story_type": "top", "limit": 30})
FORM = """
  properties:
    insights: {type: array, items: {type: string}, minItems: 1}
    sure: {type: string, enum: [high, low]}
    word_count: {type: integer, readOnly: true}
    sections: {type: array, items: {type: string}, readOnly: true}
    search_queries: {type: array, items: {type: string}, readOnly: true}
    total_results: {type: integer, readOnly: true}
    sources_found: {type: array, items: {type: string}, readOnly: true}
  required: [insights]
"""
FINDING = "# Boots\n\n## How\n\nFrom paper tape [S1].\n\n```sh\n# no heading\n```\n"
WRITES = says("", LIST, ("write_file", {"filepath": "boots.md", "content": FINDING}))
GIVEN = {"summary": "It boots.", "insights": ["It boots from paper tape [S1]."], "sure": "high"}


def gives(**fields: Any) -> Turn:
    """A result."""
    return says("", ("give_result", {**GIVEN, **fields}))


def role_file(folder: Path, form: str, tools: str = "write_file, get_hn_stories, search_hn") -> Path:
    """A role whose file declares a result."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "scout.md"
    path.write_text(f"---\nname: scout\ndescription: Scouts.\ntools: [{tools}]\nresult: {form}\n---\nYou scout.\n")
    return path


async def ran(folder: Path, scout: Sequence[Turn], form: str = FORM) -> tuple[RunResult, ScriptedClient]:
    """A run on the sample day with one helper."""
    roles = role_file(folder / "roles", form).parent
    report = ("write_file", {"filepath": "report.md", "content": "# Boots\n\nIt boots again [S30].\n"})
    ask = ("call_agent", {"agent_type": "scout", "task_description": "Look."})
    lead = [says("", ask), says("", report), says("", ("finish_exploration", {"summary": "It boots."}))]
    client = ScriptedClient({"orchestrator": lead, "scout": scout})
    settings = Settings(workspace=folder, is_sample=True, roles_dir=roles, shell="off")
    return await start("What boots?", settings, RunHooks(client=client, run_id="run")), client


def call_data(run: RunResult) -> ToolFinished:
    """What the journal has of the call that asked the helper."""
    events = (record.event for record in read_records(run.folder))
    return next(event for event in events if isinstance(event, ToolFinished) and event.name == "call_agent")


async def test_a_result_is_data_and_what_the_journal_knows_is_not_asked(tmp_path: Path) -> None:
    """In the call's data, the result, `show` and what the orchestrator reads; counts are those of calls and files."""
    search = ("search_hn", {"query": "paper tape"})
    run, client = await ran(tmp_path, [says("", search), WRITES, gives()])
    (helper,) = run.helpers
    assert helper.summary == "It boots."
    assert {name: helper.result[name] for name in ("insights", "sure", "word_count", "sections", "search_queries")} == {
        "insights": GIVEN["insights"],
        "sure": "high",
        "word_count": 9,
        "sections": ["Boots", "How"],
        "search_queries": ["paper tape"],
    }
    assert (helper.result["total_results"], len(helper.result["sources_found"])) == (31, 30)
    answer = call_data(run)
    assert answer.data["result"] == helper.result
    read = json.loads(without_marks(answer.content))
    assert json.loads(read["result"]) == {"insights": GIVEN["insights"], "sure": "high"}
    view = RunView()
    for record in read_records(run.folder):
        view.apply(record)
    assert view.agents["scout-1"].result == helper.result
    assert run_facts(view, run.folder, read_records(run.folder))["helpers"] == [helper.model_dump(mode="json")]
    offered = next(one for one in client.requests if one.role == "scout").tools[-1]
    assert offered.name == "give_result"
    assert list(offered.parameters["properties"]) == ["summary", "insights", "sure"]


@pytest.mark.slow
async def test_a_wrong_result_is_sent_back_twice_and_then_taken_as_far_as_it_fits(tmp_path: Path) -> None:
    """The error names field and values; the helper's summary and files are kept whatever it gives."""
    wrong = [gives(sure="rather"), gives(insights="one"), gives(sure="rather", colour="red")]
    run, client = await ran(tmp_path, [WRITES, *wrong])
    (helper,) = run.helpers
    assert (helper.status, helper.summary, helper.output_files) == ("complete", "It boots.", ("boots.md",))
    assert helper.result["insights"] == GIVEN["insights"]
    assert "sure" not in helper.result
    shown = without_marks(str(client.requests[-3].history))
    assert "`sure`: Input should be 'high' or 'low'" in shown
    assert "`insights`: Input should be a valid list" in shown
    events = (record.event for record in read_records(run.folder))
    taken = [event for event in events if isinstance(event, ToolFinished) and event.name == "give_result"]
    assert [event.success for event in taken] == [False, False, True]
    assert "no argument `colour`" in without_marks(taken[-1].data["result_problem"])


@pytest.mark.slow
async def test_a_missing_result_is_asked_for_once_where_it_is_required(tmp_path: Path) -> None:
    """Text alone is taken after that, as it is at once for a role that requires nothing."""
    run, client = await ran(tmp_path / "a", [WRITES, says("It boots."), says("It boots, I say.")])
    assert [helper.summary for helper in run.helpers] == ["It boots, I say."]
    assert "insights" not in run.helpers[0].result
    assert sum("Your result is missing" in str(one.history) for one in client.requests if one.role == "scout") == 1
    optional = FORM.replace("  required: [insights]\n", "")
    run, _ = await ran(tmp_path / "b", [WRITES, says("It boots.")], optional)
    assert run.helpers[0].result["word_count"] == 9


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("{properties: {a: {type: text}}}", "result.properties.a.type"),
        ("{properties: {a: {type: string, pattern: x}}}", "result.properties.a.pattern"),
        ("{properties: {a: {type: string, readOnly: true}}}", "the engine cannot fill in a"),
        ("{properties: {word_count: {type: integer}}}", "add `readOnly: true`"),
        ("{properties: {summary: {type: string}}}", "there is a summary anyway"),
        ("{properties: {}, required: [b]}", "`required` names b"),
        ("{properties: {a: {type: string, minimum: 1}}}", "`minimum` has no meaning"),
        ("[]", "field `result`"),
    ],
)
def test_a_form_that_cannot_be_used_is_refused_with_its_file_and_field(tmp_path: Path, form: str, words: str) -> None:
    """Before anything starts."""
    with pytest.raises(ConfigError) as refused:
        load_role(role_file(tmp_path, form))
    assert words in refused.value.message
    assert "scout.md" in refused.value.message
