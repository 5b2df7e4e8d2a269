"""Sets of roles are run over the same questions and compared: what differs is what the model was sent."""

import json
from pathlib import Path
from typing import Any

import pytest

from command import explorer_here
from model_servers import Asked, OpenAIServer, Reply

QUESTIONS = [
    {
        "id": f"q{number}",
        "question": f"How tall is the bridge at Arvik {number}?",
        "answer": "412 metres",
        "documents": [{"title": "Bridge", "text": "The bridge at Arvik is 412 metres tall. It opened in 1998."}],
    }
    for number in (1, 2)
]
CAREFUL = "Name the height."
RIGHT = "# Bridge\n\nThe bridge at Arvik is 412 metres tall [S1].\n"
WRONG = "# Bridge\n\nThe bridge at Arvik opened in 1998 [S1], and it has 77 lamps.\n"


def model(asked: Asked) -> Reply:
    """A model that makes every kind of mistake in its calls, and answers better where its prompt says so."""
    if "lead an exploration" not in asked.system:
        return _helper(asked)
    report = {"filepath": "report.md", "content": RIGHT if CAREFUL in asked.system else WRONG}
    steps = (
        Reply(calls=[("call_agent", {"agent_type": "searcher", "task_description": "Look for the bridge."})]),
        Reply(calls=[("write_file", '{"filepath": "report.md", "con')]),
        Reply(calls=[("write_file", {"path": "report.md"}), ("write_report", report)]),
        Reply(text=f"<tool_call>{json.dumps({'name': 'write_file', 'arguments': report})}</tool_call>"),
        Reply(calls=[("finish_exploration", {"summary": "A bridge."})]),
    )
    return steps[min(len(asked.results) - (len(asked.results) > 2), 4)]


def _helper(asked: Asked) -> Reply:
    if "find things out" not in asked.system:
        sentence = asked.said[-1].partition("From ")[0]
        return Reply(text="CARRIED" if "412" in sentence else "NOT_CARRIED")
    return Reply(text="Found [S1].") if asked.results else Reply(calls=[("search_corpus", {"query": "bridge Arvik"})])


def prepared(folder: Path) -> None:
    """A set of questions, and a set of roles whose orchestrator has a word more for this model."""
    (folder / "set.jsonl").write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    (folder / "careful").mkdir()
    built_in = (Path(__file__).parents[2] / "prompts" / "orchestrator.md").read_text()
    own = built_in.replace("guidance:\n", f'guidance:\n  "other-*, *:Model-A": {CAREFUL}\n', 1)
    (folder / "careful" / "orchestrator.md").write_text(own)


@pytest.mark.slow
def test_two_sets_of_roles_are_compared_question_by_question(tmp_path: Path) -> None:
    """Each has its own runs; the table and the JSON have its calls, the judge's opinion, and the paired comparison."""
    prepared(tmp_path)
    words = ("eval", "set.jsonl", "--model", "openai:model-a", "--judge", "openai:model-a", "--roles", "careful")
    words = (*words, "--roles", "built-in")
    with OpenAIServer(model) as server:
        settings = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-x", "EXPLORER_PRICE": "0/0"}
        done = explorer_here(*words, "--output-format", "json", cwd=tmp_path, settings=settings)
        page = explorer_here(*words, cwd=tmp_path, settings=settings)
    assert (done.returncode, page.returncode) == (0, 0), done.stderr + page.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    (other,) = facts["compared"]
    assert (facts["roles"], other["name"]) == ("careful", "built-in")
    assert {path.parent.name for path in (tmp_path / "eval" / "set").glob("*/runs")} == {"careful", "built-in"}
    assert other["pairs"]["right"] == {"better": 2, "worse": 0, "chance": 0.5}
    shares = {name: (share["count"], share["n"]) for name, share in facts["measures"].items()}
    assert shares["right"] == shares["without a loop"] == shares["report cites sources"] == (2, 2)
    assert shares["citations supported, by the judge"] == (2, 2)
    theirs = {name: (share["count"], share["n"]) for name, share in other["measures"].items()}
    assert theirs["right"] == theirs["citations supported, by the judge"] == (0, 2)
    (first, _) = facts["questions"]
    counts = [first[f"{kind}_calls"] for kind in ("malformed", "invalid", "repaired", "repeated")]
    assert counts == [1, 2, 1, 0]
    assert shares["calls valid"] == (2 * (first["calls"] - 3), 2 * first["calls"])
    assert f"{2 * first['calls']} calls: 2 malformed, 4 invalid, 2 repaired, 0 refused as repeated" in page.stdout
    assert "BETTER IN CAREFUL" in page.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("eval", "sample", "--roles", "a/set", "--roles", "b/set"), "two sets of roles are called set"),
        (("agents", "--roles", "a/set", "--roles", "b/set"), "--roles is given twice"),
    ],
)
def test_sets_that_cannot_be_compared_are_refused(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    """Before anything is asked; commands that run one set say so."""
    for name in ("a", "b"):
        (tmp_path / name / "set").mkdir(parents=True)
    done = explorer_here(*words, "--model", "offline", cwd=tmp_path) if words[0] == "eval" else None
    done = done or explorer_here(*words, cwd=tmp_path)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert not list(tmp_path.rglob("journal.jsonl"))
