"""A set is run by the command: measured, continued after a kill, and never more expensive than allowed."""

import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from command import begin, explorer, explorer_here
from explorer.schema.messages import JsonObject
from model_servers import Asked, OpenAIServer, Reply
from sources.loopback import closed_port

OFFLINE = ("--model", "offline")


def measured(cwd: Path, *words: str, settings: dict[str, str] | None = None, code: int = 0) -> JsonObject:
    """The object that the command prints."""
    done = explorer_here("eval", *words, "--output-format", "json", cwd=cwd, settings=settings)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def a_set(folder: Path, *questions: JsonObject) -> str:
    """A set as a file."""
    path = folder / "set.jsonl"
    path.write_text("".join(json.dumps(question) + "\n" for question in questions))
    return str(path)


@pytest.mark.slow
def test_the_sample_is_measured_and_only_measured_again(tmp_path: Path) -> None:
    """Offline, every question has a cited report; the second time no run is made, and the figures are the same."""
    first = measured(tmp_path, "sample", *OFFLINE)
    shares: dict[str, Any] = first["measures"]
    assert (shares["report present"]["count"], shares["report present"]["n"]) == (8, 8)
    assert shares["ended by itself"]["count"] == 8
    assert shares["found"]["count"] >= 6
    assert shares["documents cited"]["count"] == 10
    assert shares["citations supported"]["share"] == 1.0
    runs = sorted((tmp_path / "eval" / "sample" / "runs").glob("*/.explorer/journal.jsonl"))
    before = [path.read_bytes() for path in runs]
    assert len(runs) == 8
    assert measured(tmp_path, "sample", *OFFLINE) == first
    assert [path.read_bytes() for path in runs] == before


@pytest.mark.slow
def test_a_set_that_was_killed_is_continued(tmp_path: Path) -> None:
    """What had ended is not asked again; what was cut off is resumed; the rest is asked."""
    words = ("eval", "sample", *OFFLINE, "--parallel", "1")
    process = begin(*words, cwd=tmp_path)
    runs = tmp_path / "eval" / "sample" / "runs"
    deadline = time.monotonic() + 100
    while len(list(runs.glob("*/report.md"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    ended = {path.parent.name: path.read_bytes() for path in runs.glob("*/report.md")}
    assert 2 <= len(ended) < 8
    facts = measured(tmp_path, "sample", *OFFLINE)
    assert [question["status"] for question in facts["questions"]] == ["complete"] * 8
    first = min(ended)
    assert (runs / first / "report.md").read_bytes() == ended[first]


def answers(_asked: Asked) -> Reply:
    """A model that costs ten cents a turn and never ends."""
    return Reply(calls=[("list_files", {})], usage={"input": 20_000, "output": 10})


@pytest.mark.slow
def test_the_limit_of_all_questions_holds_by_the_bill(tmp_path: Path) -> None:
    """Three at once, at a dollar each and $1.20 for all: the bill stays below, and who was not asked is named."""
    name = a_set(tmp_path, *({"id": f"q{number}", "question": f"What is {number}?"} for number in range(5)))
    with OpenAIServer(answers) as server:
        settings = {"OPENAI_BASE_URL": server.url, "EXPLORER_PRICE": "5/5"}
        words = (name, "--model", "openai:any", "--max-cost", "1", "--parallel", "3", "--max-total-cost", "1.2")
        facts = measured(tmp_path, *words, settings=settings, code=3)
        billed = (0.1 + 10 * 5e-6) * len(server.requests)
    costs = [question["cost_usd"] or 0.0 for question in facts["questions"]]
    assert sum(costs) <= billed + 1e-6 <= 1.2 + 1e-6
    errors = [question["error"] for question in facts["questions"]]
    assert any("limit of money" in error for error in errors)
    assert sum(not error for error in errors) >= 2, "what one question leaves is for the next"


@pytest.mark.slow
def test_limits_hold_over_a_killed_command_and_the_next(tmp_path: Path) -> None:
    """Both bills together stay below the limit of all, each question below its own, and the words name the limit."""
    name = a_set(tmp_path, *({"id": f"q{number}", "question": f"What is {number}?"} for number in range(4)))
    words = (name, "--model", "openai:any", "--max-cost", "1", "--parallel", "2", "--max-total-cost", "1.2")
    with OpenAIServer(answers) as server:
        settings = {"OPENAI_BASE_URL": server.url, "EXPLORER_PRICE": "5/5"}
        process = begin("eval", *words, cwd=tmp_path, settings=settings)
        while len(server.requests) < 6 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        facts = measured(tmp_path, *words, settings=settings, code=3)
        again = explorer_here("eval", *words, cwd=tmp_path, settings=settings)
        billed = (0.1 + 10 * 5e-6) * len(server.requests)
    costs = [question["cost_usd"] or 0.0 for question in facts["questions"]]
    assert billed <= 1.2 + 1e-6
    assert max(costs) <= 1 + 1e-6
    assert "not ended; a higher --max-total-cost continues" in again.stderr


def test_two_commands_at_once_on_one_set(tmp_path: Path) -> None:
    """The second is refused: neither could count what the other spends."""
    folder = tmp_path / "eval" / "sample"
    folder.mkdir(parents=True)
    with FileLock(folder / "lock"):
        done = explorer_here("eval", "sample", *OFFLINE, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "another process works on" in done.stderr


def test_a_run_that_another_process_works_on_is_left_to_it(tmp_path: Path) -> None:
    """Its question is named as not ended; the others are asked."""
    name = a_set(tmp_path, *({"id": f"q{number}", "question": "What is here?"} for number in range(2)))
    records = tmp_path / "eval" / "set" / "runs" / "q0" / ".explorer"
    measured(tmp_path, name, *OFFLINE)
    journal = records / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:3]))
    shutil.rmtree(records.parents[1] / "q1")
    with FileLock(records / "lock"):
        facts = measured(tmp_path, name, *OFFLINE, code=3)
    first, second = facts["questions"]
    assert "working on this run" in first["error"]
    assert (second["error"], second["has_report"]) == ("", True)


@pytest.mark.slow
def test_a_model_that_is_gone_leaves_the_questions_to_be_continued(tmp_path: Path) -> None:
    """The command says so and exits with 3; a key that is refused ends it at once with 4."""
    name = a_set(tmp_path, {"id": "q", "question": "What?"}, {"id": "r", "question": "Who?"})
    words = ("eval", name, "--model", "openai:any", "--max-outage", "1s")
    settings = {"OPENAI_BASE_URL": f"http://127.0.0.1:{closed_port()}/v1", "OPENAI_API_KEY": "sk-x"}
    gone = explorer_here(*words, cwd=tmp_path, settings=settings)
    assert gone.returncode == 3, gone.stderr
    assert "2 questions not ended; the same command continues" in gone.stderr
    with OpenAIServer(lambda _asked: Reply(error="bad_key", status=401)) as server:
        refused = explorer_here(*words, cwd=tmp_path, settings=settings | {"OPENAI_BASE_URL": server.url})
    assert (refused.returncode, refused.stdout) == (4, ""), refused.stderr
    assert len(server.requests) <= 2


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("nowhere.jsonl",), 5, "explorer: there is no set of questions 'nowhere.jsonl'"),
        (("sample", "--parallel", "0"), 2, "--parallel 0 is not allowed"),
        (("sample", "--max-total-cost", "much"), 2, "--max-total-cost 'much' is not allowed"),
        (("sample", "--max-total-cost", "5"), 2, "needs one for each question"),
        (("sample", "-o", "x.md"), 2, "no single report"),
        (("sample", "--against", "."), 5, ". has no report"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_asked(
    tmp_path: Path, words: tuple[str, ...], code: int, says: str
) -> None:
    """With an exit code of its own, and no run."""
    done = explorer_here("eval", *words, *OFFLINE, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert says in done.stderr
    assert not list(tmp_path.rglob("journal.jsonl"))


@pytest.mark.slow
def test_reports_of_another_system_are_measured_by_the_same_rules(tmp_path: Path) -> None:
    """Next to ours, in a column with their folder's name; another question of the same id is refused."""
    question = {"id": "q", "question": "How tall is the bridge?", "answer": "412 metres"}
    documents = [{"title": "Bridge", "text": "The bridge is 412 metres tall."}]
    name = a_set(tmp_path, {**question, "documents": documents})
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "q.md").write_text("# Bridge\n\nIt is 400 metres tall.\n")
    done = explorer("eval", name, *OFFLINE, "--against", "theirs", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "[1/1] q: complete, " in done.stderr
    line, pair = [line for line in done.stdout.splitlines() if line.startswith("found")]
    assert line.split()[-2:] == ["0", "%"]
    assert pair.split() == ["found", "1", "0", "1"]
    assert "BETTER IN THEIRS" in done.stdout
    again = explorer("eval", name, *OFFLINE, "--out", "second", "--against", "eval/set", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    line, pair = [line for line in again.stdout.splitlines() if line.startswith("citations supported")]
    assert line.split()[-2:] == ["100", "%"]
    assert pair.split() == ["citations", "supported", "0", "0", "1"]
    other = a_set(tmp_path, {"id": "q", "question": "How old is the bridge?", "answer": "9"})
    refused = explorer("eval", other, *OFFLINE, cwd=tmp_path)
    assert (refused.returncode, "another question with the id 'q'" in refused.stderr) == (2, True), refused.stderr
