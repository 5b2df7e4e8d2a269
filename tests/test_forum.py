"""The example of a forum: its server by the official client, and whole explorations of it by the command line."""

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from pydantic import BaseModel

from cli.stage import begin_explorer
from command import explorer
from explorer.journal.listing import read_records
from explorer.schema.events import ApprovalDecided, RoleLoaded, RunFinished, Status, ToolFinished, ToolStarted
from explorer.schema.messages import Turn
from explorer.testing import ScriptedServer, says
from explorer.text.frontmatter import read_frontmatter

FORUM = Path(__file__).resolve().parents[1] / "examples" / "forum"
READING = {"get_recent_interactions", "get_thread_context", "get_persona_memory", "get_global_policy"}
WRITING = {"create_reply", "cast_vote", "update_short_term_memory"}
KEY = "thread-1-post-3-ada"
BODY = (
    "Thank you for measuring. Dry to 8 cm at noon may be the reason; would a second litre in the morning be possible?"
)
TASK = f"You are ada. Answer post 3 of thread 1: she measured, and nobody answered. The idempotency key is {KEY}."
REPORT = """\
# The forum today

lena found the soil of her tomatoes “dry to 8 cm” [S2]. ada answered her. The minutes were left alone: “Please do not
reply here” [S3].
"""
REPLY = "mcp__forum__create_reply"
COUNT = "SELECT COUNT(*) FROM posts WHERE author = 'ada'"
Json = dict[str, Any]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A copy of the example, whose forum nobody has changed."""
    return Path(copytree(FORUM, tmp_path / "forum", ignore=ignore_patterns("*.db*", "__pycache__", "workspace")))


@asynccontextmanager
async def served(place: Path) -> AsyncGenerator[Client]:
    """The server as a process of its own, with the official client."""
    command = StdioServerParameters(command=sys.executable, args=["server.py", "data/forum.db"], cwd=place)
    async with Client(stdio_client(command)) as client:
        yield client


def server_here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - a program of the examples
    """The server in this process."""
    monkeypatch.setattr(sys, "path", [str(place), *sys.path])
    spec = spec_from_file_location("forum_example", place / "server.py")
    assert spec is not None
    assert spec.loader is not None
    program = module_from_spec(spec)
    spec.loader.exec_module(program)
    monkeypatch.delitem(sys.modules, "store")
    forum = program.Forum(place / "data" / "forum.db")
    forum.create(**json.loads(program.SAMPLE.read_text(encoding="utf-8")))
    return program.forum_server(forum)


async def ask(client: Client, tool: str, **arguments: Any) -> Json:
    """What a tool returns."""
    answer = await client.call_tool(tool, arguments)
    assert answer.structured_content is not None, answer
    return answer.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    """Why a call is refused."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    return "".join(getattr(part, "text", "") for part in answer.content)


def rows(place: Path, query: str) -> list[Any]:
    """What is in the forum's file."""
    with closing(sqlite3.connect(place / "data" / "forum.db")) as connection:
        return [one[0] for one in connection.execute(query)]


async def test_each_tool_has_a_clear_schema(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven tools: each says what it does, what it takes with bounds, and what it returns."""
    async with Client(server_here(place, monkeypatch)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() == READING | WRITING
    for name, tool in tools.items():
        assert tool.description
        assert tool.output_schema
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (name in READING)
        assert name in READING or tool.annotations.idempotent_hint
        for parameter in tool.input_schema["properties"].values():
            assert parameter["type"] in {"string", "integer"}
            assert parameter.keys() & {"maxLength", "minimum", "enum"}, f"{name}: {parameter} has no bound"


@pytest.mark.slow
async def test_a_repeated_key_writes_once(place: Path) -> None:
    """Also over two processes; for another reply, the key is refused."""
    reply = {"persona": "ada", "parent_id": 3, "body": BODY, "idempotency_key": KEY}
    async with served(place) as client:
        first = await ask(client, "create_reply", **reply)
    async with served(place) as client:
        second = await ask(client, "create_reply", **reply)
        assert "belongs to another reply" in await refusal(client, "create_reply", **{**reply, "body": "Other words"})
    assert (first["created"], second["created"]) == (True, False)
    assert first["post"] == second["post"]
    assert rows(place, "SELECT body FROM posts WHERE author = 'ada'") == [BODY]


@pytest.mark.slow
async def test_what_is_written_is_read(place: Path) -> None:
    """Replies, votes and notes are seen by the next one who reads; each refusal says what would be right."""
    async with served(place) as client:
        reply = await ask(client, "create_reply", persona="ada", parent_id=3, body=BODY, idempotency_key=KEY)
        post = reply["post"]["post_id"]
        assert (await ask(client, "cast_vote", persona="brio", post_id=post, value=1))["score"] == 1
        assert (await ask(client, "cast_vote", persona="brio", post_id=post, value=-1))["score"] == -1
        assert (await ask(client, "cast_vote", persona="brio", post_id=post, value=0))["score"] == 0
        for note in ("first", "second"):
            assert (await ask(client, "update_short_term_memory", persona="ada", topic="t", note=note))["notes"] == 1
        assert [one["note"] for one in (await ask(client, "get_persona_memory", persona="ada"))["notes"]] == ["second"]
        assert (await ask(client, "get_recent_interactions", limit=1))["posts"][0]["post_id"] == post
        involved = (await ask(client, "get_recent_interactions", involving="lena"))["posts"]
        assert [one["post_id"] for one in involved] == [7, 3, 2, 1]
        thread = (await ask(client, "get_thread_context", thread_id=1, limit=2))["posts"]
        assert [one["post_id"] for one in thread] == [1, 7]
        assert "own posts" in await refusal(client, "cast_vote", persona="ada", post_id=post, value=1)
        assert "there are: ada, brio" in await refusal(client, "get_persona_memory", persona="zoe")
        long = await refusal(
            client, "create_reply", persona="ada", parent_id=3, body="x" * 601, idempotency_key="another-key"
        )
        assert "the policy allows 600" in long
        assert "there is no post 99" in await refusal(client, "cast_vote", persona="ada", post_id=99, value=1)


def test_only_the_store_knows_sql() -> None:
    """The agents' part, which is role files, has tools of the forum and no other way to it; one file imports SQLite."""
    with_sql = [
        path.name for path in FORUM.rglob("*.py") if "sqlite3" in path.read_text() or "SELECT" in path.read_text()
    ]
    assert with_sql == ["store.py"]
    tools: dict[str, set[str]] = {}
    for path in (FORUM / "roles").glob("*.md"):
        text = path.read_text()
        assert not {"SELECT", "INSERT", "sqlite", ".db"} & {*text.split()}
        tools[path.stem] = set(read_frontmatter(text)[0]["tools"])
    forum = {
        name: {one.removeprefix("mcp__forum__") for one in listed if "mcp__" in one} for name, listed in tools.items()
    }
    assert forum["observer"] <= READING
    assert forum["observer"] | forum["persona"] == READING | WRITING
    assert "execute_shell" not in tools["observer"] | tools["persona"]


def lead(*more: Turn) -> list[Turn]:
    """The observer's turns until it calls the persona, whose turns follow.

    It reads one thing after the other: of calls in one turn, the first to be answered gets the first source id.
    """
    reading = [
        says("", ("mcp__forum__get_global_policy", {})),
        says("", ("mcp__forum__get_thread_context", {"thread_id": 1})),
        says("", ("mcp__forum__get_recent_interactions", {})),
    ]
    return [*reading, says("", ("call_agent", {"agent_type": "persona", "task_description": TASK})), *more]


READS = says(
    "",
    ("mcp__forum__get_persona_memory", {"persona": "ada"}),
    ("mcp__forum__get_thread_context", {"thread_id": 1}),
)
REPLIES = says(
    "", ("mcp__forum__create_reply", {"persona": "ada", "parent_id": 3, "body": BODY, "idempotency_key": KEY})
)
ENDS = [
    says(
        "",
        ("mcp__forum__cast_vote", {"persona": "ada", "post_id": 2, "value": 1}),
        (
            "mcp__forum__update_short_term_memory",
            {"persona": "ada", "topic": "tomatoes", "note": "Answered as post 7."},
        ),
    ),
    says("ada answered as post 7 and voted for post 2."),
    says("", ("write_file", {"filepath": "report.md", "content": REPORT})),
    says("", ("finish_exploration", {"summary": "One answer, by ada."})),
]


def explored(place: Path, script: Sequence[Turn], *words: str, crash: str = "") -> "subprocess.CompletedProcess[str]":
    """The command line in the example's folder, on a scripted model."""
    with ScriptedServer(script) as model:
        settings = settings_for(model) | ({"EXPLORER_CRASH": crash} if crash else {})
        return explorer(*words, "--trust-folder", cwd=place, settings=settings)


def settings_for(model: ScriptedServer) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": model.url,
        "OPENAI_API_KEY": "sk-0123456789",
        "EXPLORER_MODEL": "openai-chat:scripted",
        "EXPLORER_PRICE": "0/0",
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
    }


def run_of(place: Path) -> Path:
    """The folder of the one run there is."""
    (folder,) = (place / "workspace").glob("2*")
    return folder


def events(place: Path, kind: type[BaseModel], name: str = "") -> list[Any]:
    """The events of a type in the journal, of one tool or all."""
    found = [record.event for record in read_records(run_of(place)) if isinstance(record.event, kind)]
    return [event for event in found if not name or getattr(event, "name", "") == name]


ASK = ("What happened in the forum?", "--approval", "allow mcp__forum__create_reply")


@pytest.mark.slow
def test_an_exploration_answers_and_reports(place: Path) -> None:
    """Everything goes through the tools; the report cites what they returned, and each quote is found in it."""
    done = explored(place, [*lead(READS, REPLIES), *ENDS], *ASK)
    assert done.returncode == 0, done.stderr
    (end,) = events(place, RunFinished)
    assert end.status is Status.COMPLETE
    assert rows(place, "SELECT body FROM posts WHERE author = 'ada'") == [BODY]
    assert rows(place, "SELECT note FROM notes") == ["Answered as post 7."]
    assert "mcp:forum/get_thread_context" in (run_of(place) / "report.md").read_text()
    checked = explorer("verify", "latest", "--output-format", "json", cwd=place)
    facts = json.loads(checked.stdout)
    assert (checked.returncode, len(facts["claims"])) == (0, 2), checked.stdout
    assert {one["verdict"] for one in facts["claims"]} == {"supported"}


@pytest.mark.slow
def test_without_a_terminal_no_reply_is_posted(place: Path) -> None:
    """The example's own rule asks before each reply; where nobody can be asked, the persona is refused."""
    ends = [says("The reply was not approved."), *ENDS[2:]]
    done = explored(place, [*lead(READS, REPLIES), *ends], ASK[0])
    assert "create_reply refused: `ask mcp__forum__create_reply` asks" in done.stderr
    assert len(events(place, ApprovalDecided)) == 1
    assert rows(place, COUNT) == [0]


@pytest.mark.slow
def test_killed_in_the_middle_of_a_reply_it_is_written_once(place: Path, tmp_path: Path) -> None:
    """Killed right after the server's answer, and before the record of the result: the resumed run leaves one reply."""
    whole = Path(copytree(place, tmp_path / "whole"))
    assert explored(whole, [*lead(READS, REPLIES), *ENDS], *ASK).returncode == 0
    started, finished = numbers_of_reply(whole)
    for number in (started + 1, finished):
        here = Path(copytree(place, tmp_path / str(number)))
        killed = explored(here, lead(READS, REPLIES), *ASK, crash=f"before_append:{number}")
        assert killed.returncode == -9, killed.stderr
        assert len(events(here, ToolStarted, REPLY)) == 1
        assert events(here, ToolFinished, REPLY) == []
        assert rows(here, COUNT) == [1]
        resumed = explored(here, ENDS, "resume", "latest", *ASK[1:])
        assert resumed.returncode == 0, resumed.stderr
        assert rows(here, COUNT) == [1]
        (reply,) = events(here, ToolFinished, REPLY)
        assert '"created": false' in reply.content, "the call was made again, and the forum knew its key"


STALLING = """\
import os, pathlib, signal, sys, time
import server, store

committed, reply = pathlib.Path("data", "committed"), store.Forum.reply

def commit_and_never_answer(forum, *arguments):
    written = reply(forum, *arguments)
    if not committed.exists():
        committed.touch()
        os.kill(os.getpid(), signal.SIGKILL) if sys.argv[2] == "server" else time.sleep(20)
    return written

store.Forum.reply = commit_and_never_answer
server.main(sys.argv[1])
"""
"""The example's server, which never answers the first call that writes a reply: it is in the file by then."""


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["explorer", "server"])
def test_killed_between_the_commit_and_the_answer_it_is_written_once(place: Path, victim: str) -> None:
    """Whoever is killed inside `create_reply`: the call is made again with its key, and the forum has one reply."""
    (place / "stalling.py").write_text(STALLING)
    settings = (place / "explorer.toml").read_text()
    assert '"server.py", "data/forum.db"' in settings
    changed = settings.replace('"server.py", "data/forum.db"', f'"stalling.py", "data/forum.db", "{victim}"')
    (place / "explorer.toml").write_text(changed)
    script = lead(READS, REPLIES)
    if victim == "explorer":
        with ScriptedServer(script) as model:
            process = begin_explorer(*ASK, "--trust-folder", cwd=place, **settings_for(model))
            until = time.monotonic() + 60
            while not (place / "data" / "committed").exists():
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.02)
            process.kill()
            process.communicate()
        assert rows(place, COUNT) == [1]
        assert events(place, ToolFinished, REPLY) == []
        done = explored(place, ENDS, "resume", "latest", *ASK[1:])
    else:
        done = explored(place, [*script, *ENDS], *ASK)
    assert done.returncode == 0, done.stderr
    assert (place / "data" / "committed").exists()
    assert rows(place, COUNT) == [1]
    (finished,) = events(place, ToolFinished, REPLY)
    assert finished.success
    assert '"created": false' in finished.content
    assert len(events(place, ToolStarted, REPLY)) == 1


def numbers_of_reply(place: Path) -> tuple[int, int]:
    """The numbers of the records of the reply's start and end."""
    records = [one for one in read_records(run_of(place)) if getattr(one.event, "name", "") == REPLY]
    started, finished = (
        next(one.seq for one in records if isinstance(one.event, kind)) for kind in (ToolStarted, ToolFinished)
    )
    return started, finished


@pytest.mark.slow
def test_a_preset_observes_the_forum(place: Path) -> None:
    """Without its server it is refused with the command; with it, its own roles work, and its rule asks first."""
    question = ("--preset", "forum-observer")
    (place / "explorer.toml").rename(place / "whole.toml")
    bare = explored(place, [], *question)
    assert bare.returncode == 2
    assert "needs the tool mcp__forum__get_recent_interactions, which is not there" in bare.stderr
    assert "explorer mcp add forum --write . -- python server.py forum.db" in bare.stderr
    server = (place / "whole.toml").read_text().partition("[mcp.forum]")
    (place / "explorer.toml").write_text(f'roles_dir = "roles"\n{"".join(server[1:])}')
    done = explored(place, [*lead(READS, REPLIES), says("The reply was not approved."), *ENDS[2:]], *question)
    assert "create_reply refused: `ask mcp__forum__create_reply` asks" in done.stderr
    assert rows(place, COUNT) == [0]
    (folder,) = (place / "workspace").glob("2*")
    loaded = [one.event for one in read_records(folder) if isinstance(one.event, RoleLoaded)]
    assert [one.role for one in loaded] == ["observer", "persona"]
    assert loaded[0].system.startswith("You watch a forum for its owner.")
    done = explored(place, [*lead(READS, REPLIES), *ENDS], *question, *ASK[1:])
    assert done.returncode == 0, done.stderr
    assert rows(place, "SELECT body FROM posts WHERE author = 'ada'") == [BODY]
    checked = explorer("verify", "latest", cwd=place)
    assert checked.returncode == 0, checked.stdout
