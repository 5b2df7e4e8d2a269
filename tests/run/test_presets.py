"""Runs by presets: what each built-in one promises, with a scripted model, and that a resumed run keeps its preset."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

import pytest

from explorer.cli.settings.configuration import read_configuration
from explorer.cli.settings.layers import Flags
from explorer.journal.listing import read_records
from explorer.run.hooks import RunHooks, StopSignal
from explorer.run.run import RunResult, resume, start
from explorer.sandbox.selection import choose_sandbox
from explorer.schema.events import RoleLoaded, RunStarted, SessionConfigured, ToolFinished
from explorer.schema.messages import JsonObject, Request, Turn, UserText
from explorer.schema.settings import Settings
from explorer.schema.tool import ToolResult, tool
from explorer.testing import Script, ScriptedClient, says
from sources.hn_site import hn_routes
from sources.loopback import serving
from sources.reddit_site import SECRET, api_routes

MONDAY = datetime(2026, 3, 16, 9, 0, tzinfo=UTC)
NOTHING: Mapping[str, str] = MappingProxyType({})
FINISH = says("", ("finish_exploration", {"summary": "Done."}))


def settings_of(folder: Path, preset: str, variables: Mapping[str, str] = NOTHING, **more: object) -> Settings:
    """The settings that `--preset` gives in a folder."""
    found = read_configuration(Flags({}, {}, preset=preset), {"HOME": str(folder), **variables}, folder).settings
    places = {"workspace": folder / "workspace", "reports_dir": folder / "reports", "shell": "off"}
    return found.model_copy(update=places | more)


def helper(role: str, task: str = "Do your part.") -> Turn:
    """A call of a helper."""
    return says("", ("call_agent", {"agent_type": role, "task_description": task}))


def written(path: str, text: str) -> Turn:
    """A file."""
    return says("", ("write_file", {"filepath": path, "content": text}))


def calls_in(run: RunResult, name: str) -> list[ToolFinished]:
    """The finished calls of a tool."""
    events = [record.event for record in read_records(run.folder)]
    return [event for event in events if isinstance(event, ToolFinished) and event.name == name]


def loaded(run: RunResult) -> dict[str, RoleLoaded]:
    """What models were shown, by role."""
    events = (record.event for record in read_records(run.folder))
    return {event.role: event for event in events if isinstance(event, RoleLoaded)}


LISTS = says("", ("get_hn_stories", {"limit": 30}), ("list_reports", {"date": "2026-03"}))
NEWS = "# 今日\n\nTern TLS 的维护者要停手 [S2]。\n"
QUIET = "# 今日\n\n没有值得一读的新故事：首页上的都已在库中 [S2]。\n"
REPORT = {
    "title": "Tern TLS 的维护者宣布停手",
    "content": "## 发生了什么\n\nTern TLS 的维护者说他要停手 [S2]。\n",
    "story_id": "900000002",
    "verdict": "值得读：依赖它的人要找替代。",
}


async def _day(folder: Path, day: datetime, lead: Sequence[Turn], writer: Sequence[Turn]) -> RunResult:
    scripts: dict[str, Sequence[Turn] | Script] = {
        "orchestrator": lead,
        "searcher": [says("", ("get_hn_stories", {})), written("stories/2.md", "Stops [S2]."), says("Read. [S2]")],
        "writer": writer,
    }
    hooks = RunHooks(client=ScriptedClient(scripts), now=lambda: day)
    settings = settings_of(folder, "hn-news", is_sample=True)
    assert settings.preset is not None
    return await start(settings.preset.question, settings, hooks)


@pytest.mark.slow
async def test_hn_news_repeats_nothing_the_next_day(tmp_path: Path) -> None:
    """Day one: a report in the library, in Chinese, with a verdict. Day two: it is refused, and the run is complete."""
    write = [says("", ("create_report", REPORT)), written("report.md", NEWS), says("写好了。")]
    first = await _day(tmp_path, MONDAY, [LISTS, helper("searcher"), helper("writer"), FINISH], write)
    assert (first.status, first.reason) == ("complete", "")
    (kept,) = (tmp_path / "reports").glob("*/*.md")
    assert kept.parent.name == "2026-03-16"
    assert "verdict: 值得读：依赖它的人要找替代。" in kept.read_text()
    assert "Language of the report: Chinese" in (first.folder / ".explorer" / "journal.jsonl").read_text()
    again = [says("", ("create_report", REPORT)), written("report.md", QUIET), says("没有新的。")]
    second = await _day(tmp_path, MONDAY + timedelta(days=1), [LISTS, helper("writer"), FINISH], again)
    (listed,) = calls_in(second, "list_reports")
    assert "story 900000002" in listed.content
    (refused,) = calls_in(second, "create_report")
    assert "the library has a report on this already: <<2026-03-16/" in refused.content
    assert list((tmp_path / "reports").glob("*/*.md")) == [kept]
    assert (second.status, second.reason) == ("complete", "")
    assert "没有值得一读的新故事" in second.report_text


KNOWN = "## Halcyon-2：助听器上的语音识别\n\n值得读 [S2]。\n"
OTHERS = "## 一台小型机又从纸带启动\n\n可以跳过 [S30]。\n"


@pytest.mark.slow
async def test_hn_news_has_no_story_of_yesterday_on_its_front_page(tmp_path: Path) -> None:
    """Written up again under a heading, it is sent back once with the report's name; a mention is not."""
    report = REPORT | {"title": "Halcyon-2", "story_id": "900000138"}
    write = [says("", ("create_report", report)), written("report.md", NEWS), says("写好了。")]
    await _day(tmp_path, MONDAY, [LISTS, helper("searcher"), helper("writer"), FINISH], write)
    (kept,) = (tmp_path / "reports").glob("*/*.md")
    repeats = written("report.md", f"# 今日\n\n两个故事。\n\n{KNOWN}\n{OTHERS}")
    corrects = {
        "filepath": "report.md",
        "content": f"# 今日\n\nHalcyon-2 已在库中 [S2]。\n\n{OTHERS}",
        "mode": "overwrite",
    }
    lead = [LISTS, repeats, FINISH, says("", ("write_file", corrects)), FINISH]
    second = await _day(tmp_path, MONDAY + timedelta(days=1), lead, [])
    refused, finished = calls_in(second, "finish_exploration")
    assert (refused.success, finished.success) == (False, True)
    assert f"the library had before this run: <<{kept.parent.name}/{kept.name}>>" in refused.content
    assert (second.status, second.reason) == ("complete", "")
    assert "助听器" not in second.report_text
    assert "一台小型机又从纸带启动" in second.report_text


@pytest.mark.slow
async def test_hn_news_takes_out_what_is_repeated_all_the_same(tmp_path: Path) -> None:
    """A writer that does not listen: the story of Monday is no section of Tuesday's page, and the run is complete."""
    report = REPORT | {"title": "Halcyon-2", "story_id": "900000138"}
    write = [says("", ("create_report", report)), written("report.md", NEWS), says("写好了。")]
    await _day(tmp_path, MONDAY, [LISTS, helper("searcher"), helper("writer"), FINISH], write)
    repeats = written("report.md", f"# 今日\n\n两个故事。\n\n{KNOWN}\n{OTHERS}")
    second = await _day(tmp_path, MONDAY + timedelta(days=1), [LISTS, repeats, FINISH, FINISH], [])
    assert [call.success for call in calls_in(second, "finish_exploration")] == [False, True]
    assert (second.status, second.reason) == ("complete", "")
    assert "助听器" not in second.report_text
    assert "一台小型机又从纸带启动" in second.report_text
    assert "## 已在库中，此前已报道\n\n- Halcyon-2 (`2026-03-16/" in second.report_text
    assert "## 参考" in second.report_text, "the engine's own words are in the language of the preset"


@pytest.mark.slow
async def test_hn_news_ends_by_itself_when_nothing_is_interesting(tmp_path: Path) -> None:
    """The editor alone: two lists, a sentence with its source, a complete run, and no helper was paid."""
    run = await _day(tmp_path, MONDAY, [LISTS, written("report.md", QUIET), FINISH], [])
    assert (run.status, run.agents) == ("complete", 1)
    assert not (tmp_path / "reports").exists()


@pytest.mark.slow
async def test_reddit_hn_reads_both_platforms(tmp_path: Path) -> None:
    """A listener for each, in one turn, through the services' own wires; the report cites a thread of both."""
    with serving(hn_routes()) as news, serving(api_routes()) as reddit:
        variables = {
            "EXPLORER_HN_API_URL": f"{news.url}/v0",
            "EXPLORER_HN_SEARCH_URL": f"{news.url}/api",
            "EXPLORER_REDDIT_URL": reddit.url,
            "EXPLORER_ALLOW_HOSTS": "127.0.0.1",
            "REDDIT_CLIENT_ID": "app",
            "REDDIT_CLIENT_SECRET": SECRET,
        }
        both = [("call_agent", {"agent_type": "listener", "task_description": f"Read {n}."}) for n in ("hn", "reddit")]
        scripts: dict[str, Sequence[Turn] | Script] = {
            "orchestrator": [says("", *both), helper("writer"), FINISH],
            "listener": _listen,
            "writer": lambda request: _write_both(request, tmp_path / "workspace" / "run" / ".explorer" / "sources"),
        }
        hooks = RunHooks(client=ScriptedClient(scripts), run_id="run")
        run = await start("What is said?", settings_of(tmp_path, "reddit-hn", variables), hooks)
    assert [call.success for call in calls_in(run, "get_comments")] == [True, True]
    assert [call.success for call in calls_in(run, "get_reddit_posts")] == [True]
    assert (run.status, run.reason) == ("complete", "")
    references = run.report_text.partition("## References")[2]
    assert "news.ycombinator.com/item?id=10" in references
    assert "reddit.com/r/kites/comments/p1" in references


def _listen(request: Request) -> Turn:
    done = sum(isinstance(message, Turn) for message in request.history)
    asked = request.history[0]
    of_reddit = isinstance(asked, UserText) and "Read reddit." in asked.said
    posts: tuple[str, JsonObject] = (
        ("get_reddit_posts", {"subreddit": "kites"}) if of_reddit else ("get_hn_stories", {})
    )
    post = {"platform": "reddit", "post_id": "p1"} if of_reddit else {"platform": "hackernews", "post_id": "10"}
    return [says("", posts), says("", ("get_comments", {**post, "limit": 5})), says("Heard.")][done]


def _write_both(request: Request, sources: Path) -> Turn:
    """Cite the thread of each platform."""
    if any(isinstance(message, Turn) for message in request.history):
        return says("Written.")
    threads = [path.stem for path in sources.glob("S*.md") if "kind: comments" in path.read_text()]
    return written("report.md", "# Both\n\n" + "".join(f"People argue about it [{one}].\n\n" for one in threads))


SHELL = frozenset({"execute_shell", "get_shell_output", "kill_shell"})
JOB = says("", ("execute_shell", {"command": "echo counted", "run_in_background": True}))
TEAM = ("orchestrator", "searcher", "analyzer", "writer")


def _research(steps: Sequence[Turn]) -> RunHooks:
    """Each of the team takes a turn; the searcher lists stories, and does more if it is asked to."""
    scripts: dict[str, Sequence[Turn] | Script] = {
        "orchestrator": [helper("searcher"), helper("analyzer"), helper("writer"), FINISH],
        "searcher": [says("", ("get_hn_stories", {})), *steps, says("Thirty stories.")],
        "analyzer": [says("Nothing to compare.")],
        "writer": [
            written("report.md", "# Boots\n\nA minicomputer boots from paper tape again [S30].\n"),
            says("Written."),
        ],
    }
    return RunHooks(client=ScriptedClient(scripts))


@pytest.mark.slow
async def test_researcher_gives_everybody_a_shell_where_the_sandbox_holds(tmp_path: Path) -> None:
    """Models are shown its tools with its defaults, and a call that leaves `block` out waits for the job's end."""
    if (await choose_sandbox(tmp_path)).confinement is None:
        pytest.skip("no sandbox holds here")
    settings = settings_of(tmp_path, "researcher", is_sample=True, shell="auto")
    run = await start("What boots?", settings, _research([JOB, says("", ("get_shell_output", {"bash_id": "bash_1"}))]))
    assert (run.status, run.reason) == ("complete", "")
    for role in TEAM:
        tools = {one.name: one.parameters["properties"] for one in loaded(run)[role].tools}
        assert tools.keys() >= SHELL
        assert tools["get_shell_output"]["block"]["default"] is True
    (output,) = calls_in(run, "get_shell_output")
    assert "counted" in output.content
    assert "ended" in output.content


@pytest.mark.slow
async def test_researcher_has_no_shell_where_nothing_holds_commands(tmp_path: Path) -> None:
    """Neither without a sandbox nor with the user's leave to do without: these roles read what strangers write."""
    for shell in ("off", "unsafe"):
        settings = settings_of(tmp_path, "researcher", is_sample=True, shell=shell)
        run = await start("What boots?", settings, _research([]))
        assert (run.status, run.reason) == ("complete", "")
        assert [role for role in TEAM if SHELL & {one.name for one in loaded(run)[role].tools}] == []


@tool
async def web_search(query: str, max_results: int = 8, search_depth: str = "basic") -> ToolResult:
    """Search."""
    return ToolResult(success=True, content=f"{query}: {max_results} of {search_depth}")


@pytest.mark.slow
async def test_a_roles_defaults_are_what_a_call_leaves_out(tmp_path: Path) -> None:
    """The researcher's searches are ten deep ones, unless a call says otherwise; the model is shown what it gets."""
    steps = [says("", ("web_search", {"query": "a"}), ("web_search", {"query": "b", "search_depth": "basic"}))]
    settings = settings_of(tmp_path, "researcher", is_sample=True)
    run = await start("What boots?", settings, replace(_research(steps), tools=(web_search,)))
    assert [call.content for call in calls_in(run, "web_search")] == ["<<a: 10 of advanced>>", "<<b: 10 of basic>>"]
    (shown,) = [one for one in loaded(run)["searcher"].tools if one.name == "web_search"]
    assert shown.parameters["properties"]["max_results"]["default"] == 10


def _question(name: str) -> JsonObject:
    return {"question": name, "sources": ["Hacker News"], "helper": "searcher", "lookups": 3}


def _round(*ids: str) -> Turn:
    calls = [{"agent_type": "searcher", "task_description": f"Look {one} up.", "question_id": one} for one in ids]
    return says("", *(("call_agent", asked) for asked in calls))


def _assessed(**states: str) -> Turn:
    questions = [{"id": one, "state": state, "would_settle": "A photo."} for one, state in states.items()]
    return says("", ("assess_round", {"questions": questions, "is_interesting": True}))


@pytest.mark.slow
async def test_web_research_looks_three_questions_up_at_once_and_takes_three_rounds(tmp_path: Path) -> None:
    """The plan has three, each round is assessed, a fourth is refused, and the answer says what stayed open."""
    plan = {"understanding": "It", "questions": [_question(one) for one in "abc"], "enough_when": "Two agree."}
    lead = [
        says("", ("propose_plan", plan)),
        _round("q1", "q2", "q3"),
        _assessed(q1="answered", q2="open", q3="open"),
        _round("q2"),
        _assessed(q2="contradicted", q3="open"),
        _round("q3"),
        _assessed(q2="contradicted", q3="answered"),
        _round("q2"),
        helper("writer"),
        FINISH,
    ]
    text = "# It boots\n\nA minicomputer boots from paper tape again [S30].\n"
    scripts: dict[str, Sequence[Turn] | Script] = {
        "orchestrator": lead,
        "searcher": [says("", ("get_hn_stories", {})), says("Thirty stories. [S30]")],
        "writer": [written("report.md", text), says("Written.")],
    }
    settings = settings_of(tmp_path, "web-research", is_sample=True)
    run = await start("What boots?", settings, RunHooks(client=ScriptedClient(scripts)))
    helpers = calls_in(run, "call_agent")
    assert [call.success for call in helpers] == [True] * 5 + [False, True]
    assert "round" in helpers[5].content
    assert [event.name for event in calls_in(run, "assess_round")] == ["assess_round"] * 3
    assert run.status == "complete"
    assert "https://" in run.report_text.partition("## References")[2]
    assert "What stayed open" in run.report_text


PRESET = """description = "Ours."
roles = ["chief", "scribe"]
[settings]
lang = "Danish"
limits.max_agents = 2
"""
CHIEF = "name: chief\ndescription: Leads.\nextends: orchestrator\ntools: [get_hn_stories]"
SCRIBE = "name: scribe\ndescription: Writes.\nextends: writer"


async def test_a_resumed_run_has_the_preset_that_it_was_started_with(tmp_path: Path) -> None:
    """Its files may change or go: roles that were not yet used come from the journal, and so do its settings."""
    preset = tmp_path / ".config" / "explorer" / "presets" / "ours"
    (preset / "roles").mkdir(parents=True)
    (preset / "preset.toml").write_text(PRESET)
    for name, head in (("chief", CHIEF), ("scribe", SCRIBE)):
        (preset / "roles" / f"{name}.md").write_text(f"---\n{head}\n---\nYou are the {name} of old.\n")
    stop = StopSignal()

    def cut(_request: Request) -> Turn:
        stop.stop_at_once("cut")
        raise asyncio.CancelledError

    hooks = RunHooks(client=ScriptedClient({"chief": cut}), stop=stop, run_id="run")
    with pytest.raises(asyncio.CancelledError):
        await start("What boots?", settings_of(tmp_path, "ours", is_sample=True), hooks)
    shutil.rmtree(preset)
    folder = tmp_path / "workspace" / "run"
    scripts: dict[str, Sequence[Turn] | Script] = {
        "chief": [says("", ("get_hn_stories", {})), helper("scribe"), FINISH],
        "scribe": [
            written("report.md", "# Boots\n\nA minicomputer boots from paper tape again [S30].\n"),
            says("Done."),
        ],
    }
    now = Settings(workspace=tmp_path / "workspace", state_dir=tmp_path / ".local" / "state" / "explorer")
    run = await resume(folder, now, hooks=RunHooks(client=ScriptedClient(scripts)))
    assert (run.status, run.reason) == ("complete", "")
    assert "\n\nYou are the scribe of old." in loaded(run)["scribe"].system
    (begun,) = [record.event for record in read_records(folder) if isinstance(record.event, RunStarted)]
    assert begun.settings["preset"]["roles"].keys() == {"chief.md", "scribe.md"}
    sessions = [record.event for record in read_records(folder) if isinstance(record.event, SessionConfigured)]
    assert [session.limits["max_agents"].value for session in sessions] == [2, 2]
