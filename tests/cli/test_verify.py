"""`explorer verify`: a run's report against its stored sources, from the terminal."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.stage import Process
from model_servers import OpenAIServer, Reply

FALSE_NUMBER = "918 points", "981 points"
ALTERED_QUOTE = "a drop of 61%.”", "a drop of 61% in a week.”"
Here = Callable[..., Process]


def _planted(run: Path) -> None:
    """Put a false number, an altered quote and a dangling id into a finished report."""
    report = run / "report.md"
    text = report.read_text()
    for there, planted in (FALSE_NUMBER, ALTERED_QUOTE):
        assert there in text
        text = text.replace(there, planted, 1)
    report.write_text(text.replace("\n## Also on", "\nNobody disagreed [source missing].\n\n## Also on", 1))


def test_a_clean_report(kept_day: Path, here: Here) -> None:
    """The demo's report has nothing wrong: exit code 0, the counts on stdout, both files beside the journal."""
    done = here("verify")
    assert done.returncode == 0, done.stdout
    assert "cited sentences" in done.stdout
    assert "not found         0" in done.stdout
    assert "source missing    0" in done.stdout
    claims = [json.loads(line) for line in (kept_day / ".explorer" / "claims.jsonl").read_text().splitlines()]
    assert {claim["verdict"] for claim in claims} <= {"supported", "unchecked"}
    assert sum(claim["verdict"] == "supported" for claim in claims) > 40
    sources = [json.loads(line) for line in (kept_day / ".explorer" / "sources.jsonl").read_text().splitlines()]
    assert len(sources) == len(list((kept_day / ".explorer" / "sources").iterdir()))
    assert all(("report.md" in source["cited_in"]) == source["cited"] for source in sources)
    assert any(source["cited"] for source in sources)


@pytest.mark.slow
def test_three_planted_faults_are_all_found(kept_day: Path, here: Here) -> None:
    """A false number, a quote with words put in and an id that no source has: exit code 1, each with its line."""
    _planted(kept_day)
    done = here("verify", kept_day.name[:15])
    assert done.returncode == 1
    assert "“981 points”, not in S7" in done.stdout
    assert "continues otherwise after" in done.stdout
    assert "Nobody disagreed" in done.stdout
    facts = json.loads(here("verify", "--output-format", "json").stdout)
    assert facts["counts"]["not_found"] == 2
    assert facts["counts"]["source_missing"] == 1
    lines = (kept_day / "report.md").read_text().splitlines()
    wrong = [claim for claim in facts["claims"] if claim["verdict"] in {"not_found", "source_missing"}]
    assert ["981 points" in lines[claim["line"] - 1] for claim in wrong] == [True, False, False]
    faults = [[one["kind"] for one in claim["findings"] if one["verdict"] == "not_found"] for claim in wrong[:2]]
    assert faults == [["number"], ["quote"]]


def test_a_dangling_id_in_a_draft(kept_day: Path, here: Here) -> None:
    """A report as an agent just wrote it, with ids in it, is checked as it is."""
    (kept_day / "report.md").write_text("# T\n\nIt drew 918 points [S7]. It drew 5 comments [S999].\n")
    done = here("verify", "--all")
    assert done.returncode == 1
    assert "S999 is not a source of this run" in done.stdout
    assert "“918 points”, found in S7" in done.stdout


@pytest.mark.slow
def test_a_changed_source_is_told(kept_day: Path, here: Here) -> None:
    """A stored text that was tampered with carries nothing any more."""
    folder = kept_day / ".explorer" / "sources"
    stored = next(path for path in folder.iterdir() if "from 38,400 euros" in path.read_text())
    stored.write_text(stored.read_text().replace("38,400", "39,400"))
    facts = json.loads(here("verify", "--output-format", "json").stdout)
    missing = [claim for claim in facts["claims"] if claim["verdict"] == "source_missing"]
    assert missing
    assert all("sha256" in claim["reason"] and claim["ids"] == [stored.stem] for claim in missing)


def test_no_run_and_no_report(kept_run: Path, here: Here) -> None:
    """What is not there is exit code 5: a run, and a run's report."""
    assert here("verify", "nothing").returncode == 5
    (kept_run / "report.md").unlink()
    (kept_run / ".explorer" / "draft.md").unlink()
    done = here("verify")
    assert done.returncode == 5
    assert "no report" in done.stderr


def test_a_folder_that_cannot_be_written(kept_run: Path, here: Here) -> None:
    """The result is told all the same."""
    (kept_run / ".explorer" / "claims.jsonl").unlink(missing_ok=True)
    (kept_run / ".explorer" / "claims.jsonl").mkdir()
    done = here("verify")
    assert done.returncode == 0
    assert "could not be kept" in done.stderr
    assert "cited sentences" in done.stdout


@pytest.mark.slow
def test_the_judge_is_asked_beside_the_check(kept_run: Path, here: Here) -> None:
    """`--judge` adds opinions and their counts; verdicts and the exit code stay."""
    with OpenAIServer(lambda _asked: Reply(text="NOT_CARRIED")) as server:
        given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "x"}
        done = here("verify", "--judge", "openai:model-a", "--output-format", "json", **given)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["judged"]["not_carried"] == facts["counts"]["total"] == len(server.requests)
    assert {claim["judged"] for claim in facts["claims"]} == {"not_carried"}
    assert facts["counts"]["not_found"] == 0
    kept = json.loads((kept_run / ".explorer" / "claims.jsonl").read_text().splitlines()[0])
    assert kept["judged"] == "not_carried"


@pytest.mark.slow
def test_a_judge_that_fails_is_told_and_the_check_stands(kept_run: Path, here: Here) -> None:
    """A refused key is the problem that is named; a short refusal is waited out, and said."""
    words = ("verify", kept_run.name, "--judge", "openai:model-a", "--output-format", "json")
    with OpenAIServer(lambda _asked: Reply(error="bad_key", status=401)) as server:
        done = here(*words, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="x")
    assert done.returncode == 0, done.stderr
    assert "refused the key" in json.loads(done.stdout)["judged"]["problem"]
    faults = iter([Reply(error="rate_limit", status=429, headers={"retry-after-ms": "1"})])
    with OpenAIServer(lambda _asked: next(faults, Reply(text="carried"))) as server:
        done = here(*words, OPENAI_BASE_URL=server.url)
    assert "the judge did not answer" in done.stderr
    assert json.loads(done.stdout)["judged"]["carried"] > 0


@pytest.mark.usefixtures("kept_run")
def test_no_judge_without_a_model(here: Here) -> None:
    """`offline` is no language model and judges nothing."""
    done = here("verify", "--judge", "offline")
    assert done.returncode == 2
    assert "language model" in done.stderr


@pytest.mark.usefixtures("kept_run")
def test_a_judge_without_a_key_can_be_left_out(here: Here) -> None:
    """The way out is a check without the judge, and not a question without a model."""
    done = here("verify", "--judge", "anthropic:claude-opus-5-5")
    assert done.returncode == 4
    assert "the judge anthropic:claude-opus-5-5 needs a key; ANTHROPIC_API_KEY" in done.stderr
    assert done.stderr.endswith("set the key, or leave out --judge\n")
