"""Skills in runs: what they change, what a resumed run does with them, and what never reaches a model."""

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from explorer.cli.settings.presets import PresetFolder, load_preset
from explorer.journal.listing import read_records
from explorer.run.hooks import RunHooks
from explorer.run.run import RunResult, resume, start
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.events import RoleLoaded, SessionConfigured, ToolFinished
from explorer.schema.messages import Request, Results, Turn
from explorer.schema.settings import Settings
from explorer.schema.skill_folder import SkillFolder, SkillOrigin
from explorer.skills.catalog import HEADING, built_in_skills
from explorer.testing import ScriptedClient, says
from explorer.text.words import is_stop_word, words_of

TEMPLATE = re.compile(r"## The report\n\n((?:    .*\n|\n)+)")
LISTED = re.compile(r"^- ([a-z-]+): (.*)$", re.MULTILINE)
SEARCHES = says("", ("get_hn_stories", {"story_type": "top", "limit": 30}))
FACT = "A minicomputer boots from paper tape again [S30].\n"
LEAST_SHARED = 2


@dataclass(frozen=True)
class Follower:
    """A model that chooses a skill by its description and then does what it reads in it.

    It knows none of the skills: it shares words with descriptions, follows links to files, uses tools that the text
    names and that need no argument, takes the numbered headings as its plan, and fills in the report's template.
    """

    question: str

    def __call__(self, request: Request) -> Turn:
        """Return the next turn, by what was read so far."""
        read = [one for message in request.history if isinstance(message, Results) for one in message.results]
        skills = [one.content for one in read if one.name == "load_skill" and not one.is_error]
        text = skills[0] if skills else ""
        chosen = self._chosen(request.system)
        turns = sum(isinstance(message, Turn) for message in request.history)
        if turns == 0 and chosen:
            return says("", ("load_skill", {"name": chosen}))
        if text and len({one.name for one in read}) == 1 and len(skills) == 1:
            links = re.findall(r"\]\((references/[\w.]+)\)", text)
            calls = [("load_skill", {"name": chosen, "file": link}) for link in links]
            free = {tool.name for tool in request.tools if not tool.parameters.get("required")}
            calls += [(name, {}) for name in dict.fromkeys(re.findall(r"`(\w+)`", text)) if name in free]
            plan = "\n".join(re.findall(r"^## \d\. (.*)$", text, re.MULTILINE)) or "Write."
            return says("", *calls, ("write_file", {"filepath": "plan.md", "content": plan}))
        done = [one.name for one in read]
        if "call_agent" not in done:
            return says("", ("call_agent", {"agent_type": "searcher", "task_description": "List the stories."}))
        if "report.md" not in str(read[-1].files):
            return says("", ("write_file", {"filepath": "report.md", "content": self._report(text)}))
        return says("", ("finish_exploration", {"summary": "It boots."}))

    def _chosen(self, system: str) -> str:
        wanted = {word for word in words_of(self.question) if not is_stop_word(word)}
        shared = {
            name: len(wanted & {*words_of(about)}) for name, about in LISTED.findall(system.partition(HEADING)[2])
        }
        best = max(shared, key=lambda name: shared[name], default="")
        return best if shared.get(best, 0) >= LEAST_SHARED else ""

    def _report(self, skill: str) -> str:
        found = TEMPLATE.search(f"{skill}\n")
        parts = re.findall(r"^    (##? .*)$", found[1], re.MULTILINE) if found else ["# Boots"]
        return "".join(f"{part}\n\n{FACT}\n" for part in parts)


def settings_in(folder: Path, **more: object) -> Settings:
    """The sample day, without a shell."""
    places = {"workspace": folder / "workspace", "reports_dir": folder / "library", "state_dir": folder / "state"}
    return Settings.model_validate({**places, "is_sample": True, "shell": "off", **more})


async def explored(question: str, settings: Settings) -> tuple[RunResult, ScriptedClient]:
    """A run of the follower, with a searcher that finds the stories."""
    client = ScriptedClient({"orchestrator": Follower(question), "searcher": [SEARCHES, says("Thirty stories [S30].")]})
    return await start(question, settings, RunHooks(client=client, run_id="run")), client


def loaded_in(run: RunResult) -> list[str]:
    """The skills, and files of them, that the run loaded."""
    events = [record.event for record in read_records(run.folder)]
    return [str(one.data["skill"]) for one in events if isinstance(one, ToolFinished) and one.name == "load_skill"]


def headings(run: RunResult) -> list[str]:
    """The report's own headings of the second level."""
    return [line for line in run.report_text.splitlines() if line.startswith("## ") and "References" not in line]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "loaded", "tools", "parts"),
    [
        (
            "Keep me up to date: what is new on Hacker News today, as a daily digest",
            ["news-digest"],
            {"list_reports"},
            ["## New", "## Changed since the last digest", "## In brief", "## Not known"],
        ),
        (
            "PostgreSQL or SQLite: which of these databases should we use, and is it worth migrating?",
            ["comparing-technologies"],
            set[str](),
            ["## What decides", "## Side by side", "## What speaks against the choice"],
        ),
        (
            "What does research say about sleep and memory? I need the evidence for it from studies",
            ["literature-review", "literature-review/references/searching.md"],
            set[str](),
            ["## Established", "## Disputed", "## Unknown", "## The studies", "## How this review was made"],
        ),
        (
            "A profile of the company Quayside with its competitors and market size",
            ["company-brief"],
            set[str](),
            ["## Business and figures", "## Market and competitors", "## Risks and open questions"],
        ),
        (
            "写一份关于今天新闻的中文报告",
            ["chinese-report", "chinese-report/references/style.md"],
            set[str](),
            ["## 分歧与局限", "## 尚不清楚"],
        ),
        ("Which old machine boots again?", [], set[str](), []),
    ],
    ids=["news", "comparison", "literature", "company", "chinese", "none"],
)
async def test_each_built_in_skill_changes_what_a_run_does(
    question: str, loaded: list[str], tools: set[str], parts: list[str], tmp_path: Path
) -> None:
    """Chosen by its description alone; its steps become the plan, its tools are called, its parts the report's."""
    run, client = await explored(question, settings_in(tmp_path))
    assert run.status == "complete"
    assert loaded_in(run) == loaded
    called = {
        result.name
        for request in client.requests
        for message in request.history
        if isinstance(message, Results)
        for result in message.results
    }
    assert tools <= called
    assert [part for part in headings(run) if part in parts] == parts
    assert ("list_reports" in called) == ("list_reports" in tools)
    plan = run.folder / "plan.md"
    assert plan.exists() == bool(loaded)
    if "literature-review" in loaded:
        assert plan.read_text().splitlines()[1] == "Search in three directions"


async def test_the_text_of_a_skill_is_what_changes_the_run(tmp_path: Path) -> None:
    """The same question with the user's own version of the skill brings another report, and another plan."""
    name = "comparing-technologies"
    own = tmp_path / "mine" / name
    shutil.copytree(built_in_skills().path / name, own)
    text = (own / "SKILL.md").read_text().replace("## Side by side", "## The table").replace("## 1. The", "## 1. My")
    (own / "SKILL.md").write_text(text)
    question = "PostgreSQL or SQLite: which of these databases is worth migrating to?"
    run, _ = await explored(question, settings_in(tmp_path, skills_dir=tmp_path / "mine"))
    assert "## The table" in headings(run)
    assert "## Side by side" not in headings(run)
    assert (run.folder / "plan.md").read_text().startswith("My decision first")
    events = [record.event for record in read_records(run.folder)]
    (configured,) = [event for event in events if isinstance(event, SessionConfigured)]
    assert configured.skills == {name: str(own)}


def with_skill(folder: Path, body: str = "Look at the moon.") -> Settings:
    """Settings with one skill of the user's."""
    place = folder / "mine" / "tides"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(f"---\nname: tides\ndescription: Finds tides.\n---\n{body}\n")
    return settings_in(folder, skills_dir=folder / "mine")


def orchestrator(after: Callable[[Request], Turn]) -> ScriptedClient:
    """A model that loads the skill first."""

    def lead(request: Request) -> Turn:
        turns = sum(isinstance(message, Turn) for message in request.history)
        return says("", ("load_skill", {"name": "tides"})) if turns == 0 else after(request)

    return ScriptedClient({"orchestrator": lead})


def _down(request: Request) -> Turn:
    raise ModelError(ModelFault.CREDENTIALS, f"{request.agent} is refused")


def _end(request: Request) -> Turn:
    is_written = any("report.md" in str(message) for message in request.history if isinstance(message, Turn))
    if is_written:
        return says("", ("finish_exploration", {"summary": "None.", "nothing_found": True}))
    return says("", ("write_file", {"filepath": "report.md", "content": "# Tides\n\nNothing was found.\n"}))


@pytest.mark.slow
async def test_a_resumed_run_reads_what_it_read(tmp_path: Path) -> None:
    """The prompt with its list and the loaded text are the recorded ones, though the skill is gone and others came."""
    settings = with_skill(tmp_path)
    first = orchestrator(_down)
    with pytest.raises(ModelError):
        await start("Tides?", settings, RunHooks(client=first, run_id="run"))
    shutil.rmtree(tmp_path / "mine" / "tides")
    (tmp_path / "mine" / "waves").mkdir()
    (tmp_path / "mine" / "waves" / "SKILL.md").write_text("---\nname: waves\ndescription: x\n---\nObey.\n")
    second = orchestrator(_end)
    folder = tmp_path / "workspace" / "run"
    await resume(folder, settings, hooks=RunHooks(client=second))
    before, after = first.requests[-1], second.requests[0]
    assert "- tides: Finds tides." in before.system
    assert (after.system, after.tools, after.history) == (before.system, before.tools, before.history)
    assert "Look at the moon." in str(after.history[-1])
    loaded = [record.event for record in read_records(folder) if isinstance(record.event, RoleLoaded)]
    assert len(loaded) == 1


async def test_only_roles_that_name_the_tool_see_skills(tmp_path: Path) -> None:
    """A role file without `load_skill` has neither the tool nor the list."""
    roles = tmp_path / "roles"
    roles.mkdir()
    head = "name: chief\ndescription: Leads.\nleads: true\ntools: [write_file, finish_exploration]"
    (roles / "chief.md").write_text(f"---\n{head}\n---\nYou are the chief.\n")
    client = ScriptedClient({"chief": _end})
    settings = with_skill(tmp_path).model_copy(update={"roles_dir": roles})
    await start("Tides?", settings, RunHooks(client=client, run_id="run"))
    assert client.requests[0].system == "You are the chief."
    assert [tool.name for tool in client.requests[0].tools] == ["write_file", "finish_exploration"]


async def test_what_does_not_count_is_recorded_with_the_reason(tmp_path: Path) -> None:
    """The run goes on without a broken skill, and without a project's that has the name of another."""
    settings = with_skill(tmp_path)
    (tmp_path / "mine" / "broken").mkdir()
    (tmp_path / "mine" / "broken" / "SKILL.md").write_text("no frontmatter")
    project = tmp_path / "project" / "tides"
    shutil.copytree(tmp_path / "mine" / "tides", project)
    (project / "SKILL.md").write_text("---\nname: tides\ndescription: Obey.\n---\nObey.\n")
    folders = (SkillFolder(path=project.parent, origin=SkillOrigin.PROJECT),)
    client = orchestrator(_end)
    run = await start(
        "Tides?", settings.model_copy(update={"skill_folders": folders}), RunHooks(client=client, run_id="run")
    )
    assert "Obey." not in str(client.requests)
    events: Sequence[object] = [record.event for record in read_records(run.folder)]
    (session,) = [event for event in events if isinstance(event, SessionConfigured)]
    assert list(session.skills_left_out) == [str(tmp_path / "mine" / "broken"), str(project)]
    assert "does not begin with frontmatter" in session.skills_left_out[str(tmp_path / "mine" / "broken")]
    assert "a user skill has the name tides" in session.skills_left_out[str(project)]


async def test_a_preset_brings_its_skills(tmp_path: Path) -> None:
    """They count as its author left them when the run started, and not once they are changed."""
    place = tmp_path / "preset" / "skills" / "tides"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text("---\nname: tides\ndescription: Finds tides.\n---\nLook at the moon.\n")
    (tmp_path / "preset" / "preset.toml").write_text('description = "Finds tides."\n')
    preset = load_preset(PresetFolder("tides", tmp_path / "preset", "yours")).preset
    settings = settings_in(tmp_path, preset=preset)
    first, folder = orchestrator(_down), tmp_path / "workspace" / "run"
    with pytest.raises(ModelError):
        await start("Tides?", settings, RunHooks(client=first, run_id="run"))
    assert "Look at the moon." in str(first.requests[-1].history)
    (place / "SKILL.md").write_text("---\nname: tides\ndescription: Finds tides.\n---\nObey.\n")
    again = ScriptedClient({"orchestrator": _reload})
    await resume(folder, settings_in(tmp_path), hooks=RunHooks(client=again))
    assert "Obey." not in str(again.requests)
    assert "there is no skill <<tides>>" in str(again.requests[1].history)


def _reload(request: Request) -> Turn:
    turns = sum(isinstance(message, Turn) for message in request.history)
    return says("", ("load_skill", {"name": "tides"})) if turns == 1 else _end(request)
