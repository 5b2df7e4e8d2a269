"""What a run hands over besides its report: recommended links, and what helpers did."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.observe.run_view import RunView
from explorer.run.hooks import RunHooks
from explorer.run.results import run_facts
from explorer.run.run import RunResult, start
from explorer.schema.events import ToolFinished
from explorer.schema.messages import Turn
from explorer.schema.settings import Settings
from explorer.schema.tool import Arguments, Tool, ToolContext, ToolResult
from explorer.testing import ScriptedClient, says
from explorer.text.rendering import without_marks

LIST = ("get_hn_stories", {"story_type": "top", "limit": 30})
TOOLS = "call_agent, get_hn_stories, read_file, write_file, odd, finish_exploration"


class OddArguments(Arguments):
    """Of `odd`."""

    number: int


class Odd(Tool[OddArguments]):
    """Hands back metadata of a test's."""

    name = "odd"
    description = "Odd."
    arguments = OddArguments

    def __init__(self, metadata: Sequence[dict[str, Any]]) -> None:
        self._metadata = metadata

    async def execute(self, arguments: OddArguments, context: ToolContext) -> ToolResult:  # noqa: ARG002
        """Give it."""
        return ToolResult(success=True, content="Done.", metadata=self._metadata[arguments.number])


async def run_with(folder: Path, replies: Sequence[Turn], *metadata: dict[str, Any]) -> RunResult:
    """A run on the sample day with a scripted model."""
    roles = folder / "roles"
    roles.mkdir()
    for role, tools in (("orchestrator", TOOLS), ("searcher", "get_hn_stories")):
        fields = f"name: {role}\ndescription: Works.\ntools: [{tools}]\n"
        (roles / f"{role}.md").write_text(f"---\n{fields}---\nYou are the {role}.\n")
    scripts = {"orchestrator": replies, "searcher": [says("", LIST), says("Thirty stories.")]}
    hooks = RunHooks(client=ScriptedClient(scripts), tools=[Odd(metadata)], run_id="run")
    return await start("What boots?", Settings(workspace=folder, is_sample=True, roles_dir=roles, shell="off"), hooks)


def finishing(*links: str) -> Turn:
    """The end of a run, with links."""
    return says("", ("finish_exploration", {"summary": "It boots.", "interesting_links": list(links)}))


def calls(run: RunResult) -> dict[str, ToolFinished]:
    """By tool, the result of its latest call."""
    events = (record.event for record in read_records(run.folder))
    return {event.name: event for event in events if isinstance(event, ToolFinished)}


@pytest.mark.slow
async def test_links_of_sources_stand_below_the_references(tmp_path: Path) -> None:
    """Best first and each once; one that is cited stands above, and one that no source has nowhere."""
    known = [f"https://news.ycombinator.com/item?id=900000{number}" for number in ("199", "003")]
    report = "# Boots\n\nA minicomputer boots from paper tape again [S30].\n"
    links = (known[0], "https://invented.example/page", f"{known[0]}#again", known[1])
    replies = [
        says("", LIST),
        says("", ("write_file", {"filepath": "report.md", "content": report})),
        finishing(*links),
    ]
    run = await run_with(tmp_path, replies)
    ids = {source.url: source.id for source in RunState.of_records(read_records(run.folder)).sources.values()}
    assert ids[known[1]] == "S30"
    assert [(link.url, link.source) for link in run.further_links] == [(known[0], ids[known[0]]), (known[1], "S30")]
    _, _, tail = run.report_text.partition("## References\n")
    assert tail.index("`S30`") < tail.index("### Further links\n\n- ") < tail.index(f"`{ids[known[0]]}`")
    assert "invented.example" not in run.report_text
    assert run.status == "complete"
    assert calls(run)["finish_exploration"].data == {"interesting_links": list(links)}


@pytest.mark.slow
async def test_what_helpers_did_is_data(tmp_path: Path) -> None:
    """On disk with the call, and in the result."""
    ask = ("call_agent", {"agent_type": "searcher", "task_description": "Look.", "return_full_output": True})
    report = ("write_file", {"filepath": "report.md", "content": "# Boots\n\nIt boots again [S30].\n"})
    run = await run_with(tmp_path, [says("", ask), says("", report), finishing()])
    data = calls(run)["call_agent"].data
    assert data == {
        "agent_id": "searcher-1",
        "steps_used": 2,
        "status": "complete",
        "reason": "answered",
        "output_files": [],
        "full_output": "Thirty stories.",
    }
    (helper,) = run.helpers
    assert (helper.agent, helper.role, helper.status, helper.steps) == ("searcher-1", "searcher", "complete", 2)
    assert helper.summary == "Thirty stories."
    shown = run_facts(RunView(), run.folder, read_records(run.folder))
    assert shown["helpers"] == [helper.model_dump(mode="json")]
    assert shown["further_links"] == []
    assert run.further_links == ()
    assert "Further links" not in run.report_text


async def test_a_tools_metadata_is_recorded(tmp_path: Path) -> None:
    """All that is JSON and of a bearable size; anything else is that tool's failure, in words."""
    whole = {"score": 0.5, "hits": [{"id": 1}], "sources": []}
    metadata = [whole, {"sources": ["S1"]}, {"path": Path("x")}, {"long": "x" * 270_000}]
    report = ("write_file", {"filepath": "report.md", "content": "# Boots\n\nIt boots again [S30].\n"})
    replies = [says("", LIST), *[says("", ("odd", {"number": n})) for n in range(4)], says("", report), finishing()]
    run = await run_with(tmp_path, replies, *metadata)
    events = (record.event for record in read_records(run.folder))
    odd = [event for event in events if isinstance(event, ToolFinished) and event.name == "odd"]
    assert [event.data for event in odd] == [{"score": 0.5, "hits": [{"id": 1}]}, {}, {}, {}]
    assert [without_marks(event.content)[:28] for event in odd] == [
        "Done.",
        "Done.",
        "odd failed: TypeError: Objec",
        "odd failed: ValueError: the ",
    ]
    assert without_marks(odd[3].content).endswith("the result's metadata takes 270012 bytes; the limit is 262144")
