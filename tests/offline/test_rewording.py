"""Programs read codes and data: every phrase of the engine can be reworded, and nothing behaves otherwise."""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from explorer.agents.decisions import WORDS
from explorer.journal.codec import encode_all
from explorer.journal.listing import read_records
from explorer.journal.run_state import RunState
from explorer.observe.command_result import exit_code
from explorer.observe.run_view import RunView
from explorer.offline.client import OfflineClient
from explorer.run.hooks import RunHooks
from explorer.run.outcome import helper_results, resume_command
from explorer.run.run import RunResult, resume, start
from explorer.schema.events import (
    AgentContinued,
    AgentFinished,
    AgentStarted,
    AnyEvent,
    JournalRecord,
    NoteAdded,
    RunFinished,
    ToolFinished,
    TurnTaken,
)
from explorer.schema.limits import Limits
from explorer.schema.messages import CallResult, LLMClient, Message, Request, Results, Turn, UserText
from explorer.schema.reasons import EndCause, NoteReason
from explorer.schema.settings import Settings
from explorer.text.rendering import FENCE_START, fenced_lines

NOTHING: Mapping[str, object] = {}
QUESTION = "top 3 stories on Hacker News"
FOLLOW_UP = "What does the court ruling say about consent?"
EVIDENCE = re.compile(r" *\d+\t.*")
"""A line of a file, as `read_file` numbers it."""
LISTS = frozenset({"get_hn_stories", "search_hn"})
"""Tools whose fenced lines are the engine's, too: all that is in them is in their data."""


def reworded(text: str) -> str:
    """Every word read backwards in the other case, and every figure another one."""
    words = re.sub(r"[^\W\d_]+", lambda word: word[0][::-1].swapcase(), text)
    return re.sub(r"\d", lambda digit: str(9 - int(digit[0])), words)


def reworded_result(name: str, content: str) -> str:
    """A result with all of the engine's phrases reworded; what the fence encloses, and lines of files, are evidence."""
    kept: set[str] = set() if name in LISTS else set(fenced_lines(content))
    return "\n".join(
        line
        if line in kept or EVIDENCE.fullmatch(line) or FENCE_START.match(line) or line.startswith("<<end ")
        else reworded(line)
        for line in content.split("\n")
    )


class Rewording:
    """Hands a client what the engine says in other words; the user's words and evidence stay."""

    def __init__(self, client: LLMClient) -> None:
        self._client = client
        self.said: set[str] = set()
        """The reasons that were heard."""

    async def generate(self, request: Request) -> Turn:
        """Ask with a reworded history."""
        self.said |= {one.reason for one in request.history if isinstance(one, UserText)}
        return await self._client.generate(replace(request, history=tuple(map(self._heard, request.history))))

    def _heard(self, message: Message) -> Message:
        match message:
            case UserText() if message.reason or message.task is not None:
                return message.model_copy(update={"text": reworded(message.text)})
            case Results():
                return Results(results=tuple(_result(one) for one in message.results))
            case _:
                return message


def _result(one: CallResult) -> CallResult:
    return one.model_copy(update={"content": reworded_result(one.name, one.content)})


def reworded_event(event: AnyEvent) -> AnyEvent:
    """A record with all of its words reworded that nobody outside of the engine said."""
    changes: dict[str, Any] = {}
    match event:
        case NoteAdded():
            changes = {"text": reworded(event.text)}
        case AgentStarted():
            changes = {"task": reworded(event.task)}
        case AgentContinued() if event.reason or event.parent_call:
            changes = {"task": reworded(event.task)}
        case ToolFinished():
            changes = {"content": reworded_result(event.name, event.content)}
        case AgentFinished() | RunFinished():
            changes = {"reason": reworded(event.reason)}
        case _:
            pass
    return event.model_copy(update=changes)


def reword_journal(folder: Path) -> None:
    """Put other words into every record of a run."""
    records = [one.model_copy(update={"event": reworded_event(one.event)}) for one in read_records(folder)]
    (folder / ".explorer" / "journal.jsonl").write_bytes(encode_all(records))


@dataclass
class Scene:
    """One way to put the engine's words: as they are, or reworded for the client and on disk."""

    settings: Settings
    client: LLMClient
    between: Callable[[Path], None]
    """Done to a run's folder between two sessions."""

    def start(self, question: str, changes: Mapping[str, object] = NOTHING) -> RunResult:
        """A new run."""
        settings = self.settings.model_copy(update=dict(changes))
        return asyncio.run(start(question, settings, RunHooks(client=self.client)))

    def resume(self, run: RunResult, message: str = "", limits: Limits | None = None) -> RunResult:
        """The run's next session."""
        self.between(run.folder)
        where = self.settings.workspace
        settings = Settings(workspace=where) if limits is None else Settings(workspace=where, limits=limits)
        return asyncio.run(resume(run.folder, settings, message, RunHooks(client=self.client)))


def scenes(folder: Path, limits: Limits | None = None) -> tuple[Scene, Scene, Rewording]:
    """The same twice: once as it is, once reworded."""
    rewording = Rewording(OfflineClient())
    plain, other = (
        Settings(workspace=folder / name, is_sample=True, shell="off", limits=limits or Limits())
        for name in ("plain", "reworded")
    )
    return Scene(plain, OfflineClient(), leave_alone), Scene(other, rewording, reword_journal), rewording


def leave_alone(_folder: Path) -> None:
    """Keep the words of a run's records."""


def without_ids(text: str) -> str:
    """Helpers work side by side, so the numbers of their sources come in any order."""
    return re.sub(r"\bS\d+\b", "S", text)


def calls_of(records: list[JournalRecord]) -> list[str]:
    """Every call of every agent, with its arguments."""
    return sorted(
        without_ids(f"{record.event.agent} {call.name} {call.arguments}")
        for record in records
        if isinstance(record.event, TurnTaken)
        for call in record.event.turn.calls
    )


def behaviour(run: RunResult) -> dict[str, object]:
    """All that a program or a user can tell of a run, words of the engine left out."""
    records = read_records(run.folder)
    run_state, view = RunState.of_records(records), RunView()
    for record in records:
        view.apply(record)
    return {
        "status": (run.status, run.cause, run.steps, run.citations, run.verdicts, run.uncited),
        "exit": exit_code(view.status, view.cause),
        "next": resume_command(run_state, "RUN", run.cause),
        "sources": sorted((source.url, source.title, source.kind) for source in run_state.sources.values()),
        "links": sorted(link.url for link in run.further_links),
        "files": sorted(run_state.files),
        "helpers": [
            (one.agent, one.role, one.status, one.steps, one.output_files) for one in helper_results(run_state)
        ],
        "lookups": sorted(str(one.outcome) for one in run_state.lookups.values()),
        "calls": calls_of(list(records)),
    }


def body_of(run: RunResult) -> str:
    """The report without its frontmatter."""
    return without_ids(run.report_text.partition("\n---\n")[2])


def assert_same(plain: RunResult, other: RunResult) -> None:
    """Both runs did and found the same."""
    assert behaviour(other) == behaviour(plain)


def test_every_note_has_its_words_in_one_place() -> None:
    """One for each reason, and rewording changes each of them."""
    assert set(WORDS) == set(NoteReason)
    assert all(reworded(words) != words for words in WORDS.values())
    said = reworded_result(
        "read_webpage", "[S1] A page\n<<untrusted 0123456789abcdef>>\nIts text.\n<<end 0123456789abcdef>>"
    )
    assert said == "[s8] a EGAP\n<<untrusted 0123456789abcdef>>\nIts text.\n<<end 0123456789abcdef>>"


@pytest.mark.slow
def test_a_run_and_its_follow_up_do_not_depend_on_words(tmp_path: Path) -> None:
    """The sample day, then a follow-up from a journal whose words are others: same calls, sources and report."""
    plain, other, _ = scenes(tmp_path)
    first, second = plain.start(QUESTION), other.start(QUESTION)
    assert (first.status, first.cause) == ("complete", EndCause.OTHER)
    assert_same(first, second)
    assert body_of(first) == body_of(second)
    first, second = plain.resume(first, FOLLOW_UP), other.resume(second, FOLLOW_UP)
    assert_same(first, second)
    assert "## Follow-up: " in body_of(first)
    assert body_of(first) == body_of(second)


@pytest.mark.slow
@pytest.mark.parametrize(
    "question", ["What was notable on Hacker News?", "anything about radar on HN?", "今天有什么新闻"]
)
def test_questions_do_not_depend_on_words(question: str, tmp_path: Path) -> None:
    """The whole day, a topic, and a question in Chinese."""
    plain, other, _ = scenes(tmp_path)
    first, second = plain.start(question), other.start(question)
    assert_same(first, second)
    assert body_of(first) == body_of(second)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["files", "corpus"])
def test_a_question_about_own_files_does_not_depend_on_words(where: str, tmp_path: Path) -> None:
    """Files that come with the question, and a folder that is searched."""
    folder = tmp_path / "notes"
    folder.mkdir()
    path = folder / "bridges.md"
    path.write_text(
        "# Bridges\n\nThe Kortrijk bridge was opened in 1967 by the mayor.\n\nBananas are berries.\n", "utf-8"
    )
    given = {"is_sample": False, where: (path,) if where == "files" else folder}
    plain, other, _ = scenes(tmp_path)
    runs = [scene.start("When was the Kortrijk bridge opened?", given) for scene in (plain, other)]
    assert_same(*runs)
    assert "“The Kortrijk bridge was opened in 1967 by the mayor.”" in runs[1].report_text
    assert body_of(runs[0]) == body_of(runs[1])


@pytest.mark.slow
def test_a_limit_and_what_comes_after_it_do_not_depend_on_words(tmp_path: Path) -> None:
    """A run out of steps ends by its code, names the flag, and is completed from a journal with other words."""
    plain, other, rewording = scenes(tmp_path, limits=Limits(max_steps=10))
    first, second = plain.start(QUESTION), other.start(QUESTION)
    assert (first.status, first.cause) == ("partial", EndCause.STEP_LIMIT)
    assert_same(first, second)
    assert str(behaviour(second)["next"]).endswith(" --max-steps 20")
    more = Limits(max_steps=200)
    first, second = plain.resume(first, limits=more), other.resume(second, limits=more)
    assert (first.status, first.cause) == ("complete", EndCause.OTHER)
    assert_same(first, second)
    assert {NoteReason.WINDING_DOWN, NoteReason.CONTINUE} <= rewording.said
