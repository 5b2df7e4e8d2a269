import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import SecretStr

from command import explorer_here
from compatible_servers import model_of, speaking
from explorer.llm.openai.chat import OpenAIClient
from explorer.llm.openai.compatible import CutPrompts
from explorer.llm.options import ClientOptions
from explorer.schema.messages import (
    CallResult,
    Message,
    Request,
    Results,
    StopKind,
    ToolCall,
    ToolSchema,
    Turn,
    Usage,
    UserText,
)
from model_servers import Asked, Reply
from team_script import NOTES
from vendor_rules import compatible

READ = ToolSchema(name="read_file", description="Read a file.", parameters={"type": "object", "properties": {}})
PROSE = "The plant fed the grid on that day, and its log says when and how much it was. "
CALL = Turn(
    provider="openai-chat", model="m", blocks=(), calls=(ToolCall(id="c", name="read_file"),), stop=StopKind.END
)


def request_for(history: Sequence[Message], agent: str = "searcher-1") -> Request:
    return Request(
        agent=agent, role="searcher", model="qwen3:8b", system="You search.", tools=(READ,),
        history=tuple(history), max_output_tokens=512,
    )  # fmt: skip


def result(chars: int) -> Results:
    return Results(results=(CallResult(id="c", name="read_file", content=(PROSE * chars)[:chars]),))


@pytest.mark.parametrize(("num_ctx", "cut_at"), [(4_096, 5), (2_048, 3), (0, None), (64_000, None)])
async def test_a_server_that_cuts_is_found_out(num_ctx: int, cut_at: int | None) -> None:
    """Soon after the window is full the turns say so, and never where all was read."""
    cut: list[int] = []
    with speaking(compatible.OLLAMA, lambda _asked: Reply(calls=[("read_file", {})]), num_ctx=num_ctx) as server:
        async with OpenAIClient(ClientOptions(base_url=server.url, key=SecretStr("local"))) as client:
            history: list[Message] = [UserText(text="Read the log.")]
            for step in range(8):
                turn = await client.generate(request_for(history))
                words = PROSE * (2 if step % 2 else 75)
                answers = tuple(CallResult(id=one.id, name=one.name, content=words) for one in turn.calls)
                history += [turn, Results(results=answers)]
                cut += [step] if turn.cut_from_tokens else []
    if cut_at is None:
        assert cut == []
    else:
        assert cut == list(range(cut[0], 8))
        assert cut[0] == cut_at


def counted(counts: Sequence[int], history: Sequence[Message], *, edits_at: int = -1) -> list[bool]:
    """What is said of turns that were counted so, each with one message more."""
    prompts = CutPrompts()
    found: list[bool] = []
    for place, count in enumerate(counts):
        seen = (
            history[: place + 1]
            if place != edits_at
            else [UserText(text="Shortened."), *history[2 : place + 1]][:place]
        )
        turn = CALL.model_copy(update={"usage": Usage(input_tokens=count)})
        found.append(bool(prompts.marked(request_for(seen), turn).cut_from_tokens))
    return found


LONG = [UserText(text="Go."), result(40_000), CALL, result(400), CALL, result(400)]


@pytest.mark.parametrize(
    ("why", "counts", "edits_at"),
    [
        ("all is counted", [20, 10_000, 10_030, 10_130, 10_150, 10_250], -1),
        ("only what the cache did not hold is counted", [20, 10_000, 12, 100, 12, 100], -1),
        ("a template leaves earlier reasoning out", [20, 14_000, 13_000, 10_130, 10_150, 10_250], -1),
        ("nothing is counted", [0, 0, 0, 0, 0, 0], -1),
        ("the same is counted whatever was sent", [100, 100, 100, 100, 100, 100], -1),
        ("the conversation was shortened", [20, 10_000, 10_030, 40, 60, 160], 3),
    ],
)
def test_nothing_else_is_taken_for_a_cut(why: str, counts: list[int], edits_at: int) -> None:
    """Servers count in several ways, and a conversation that is shortened has fewer tokens."""
    assert counted(counts, LONG, edits_at=edits_at) == [False] * 6, why


def test_a_conversation_that_is_cut_from_its_beginning_is_found() -> None:
    """Its count never changes, however much is added; no count of additions alone is the same for two sizes."""
    assert counted([2_050] * 6, LONG) == [False, *[True] * 5]


def test_agents_are_told_apart() -> None:
    """A short conversation beside a long one is no cut of it."""
    prompts = CutPrompts()
    long = CALL.model_copy(update={"usage": Usage(input_tokens=10_000)})
    short = CALL.model_copy(update={"usage": Usage(input_tokens=30)})
    assert not prompts.marked(request_for(LONG[:2]), long).cut_from_tokens
    assert not prompts.marked(request_for(LONG[:1], agent="searcher-2"), short).cut_from_tokens


@pytest.mark.slow
def test_the_user_is_told_once_how_to_raise_it(tmp_path: Path) -> None:
    """One line for each model on the screen, with figures and the command; the journal has it at every turn."""
    (tmp_path / "notes.md").write_text(NOTES + f"{PROSE}\n" * 600)

    def reader(asked: Asked) -> Reply:
        if len(asked.results) < 6:
            first = len(asked.results) * 80 + 1
            piece = {"filepath": "inputs/notes.md", "start_line": first, "end_line": first + 79}
            return Reply(calls=[("read_file", piece)])
        return Reply(
            calls=[
                ("write_file", {"filepath": "report.md", "content": "May was good [S1].\n"}),
                ("finish_exploration", {"summary": "Done."}),
            ]
        )

    with speaking(compatible.OLLAMA, reader, num_ctx=10_240) as server:
        words = ("How was May?", "--file", "notes.md", "--model", f"openai:{model_of(compatible.OLLAMA)}")
        done = explorer_here(*words, cwd=tmp_path, settings={"OPENAI_BASE_URL": server.url})
    lines = [line for line in done.stderr.splitlines() if "its server cuts long prompts" in line]
    assert len(lines) == 1, done.stderr
    assert re.search(r"was given only 5.\dk of about 1\d.\dk tokens", lines[0])
    assert lines[0].endswith("for Ollama: OLLAMA_CONTEXT_LENGTH=64000 ollama serve")
    (journal,) = (tmp_path / "workspace").glob("*/.explorer/journal.jsonl")
    turns = [json.loads(line)["turn"] for line in journal.read_text().splitlines() if '"type":"turn"' in line]
    assert [bool(turn.get("cut_from_tokens")) for turn in turns].count(True) >= 2
