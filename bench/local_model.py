"""How a small local model answers ten small questions over files: right, cited, ended, seconds, tokens.

    OPENAI_BASE_URL=http://127.0.0.1:8080/v1 uv run python bench/local_model.py [--out DIR] [--team] [--only ID ...]

Each question is a process of `explorer`, as a user starts it, in lean mode, or with `--team` without it. The questions
and their files are in `local_model.jsonl`. To one of them the files have no answer: right is to say so. In an answer to
a comparison, the right one of the two has to be named first. Times depend on what else the machine does, so its load is
printed beside them; tokens do not. Runs that are there already are measured and not made again.
Intervals are Wilson's, 95 %.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from explorer.evaluation.questions import EvalQuestion, read_questions
from explorer.evaluation.scoring import Score, answer_part, medians, score_run, share_of
from explorer.journal.listing import is_run
from explorer.schema.events import Status
from explorer.text.frontmatter import without_frontmatter

REFERENCE = re.compile(r"\s*\[\d+\]")
SAYS_NOT = re.compile(r"^[^\d]*\b(not|no)\b[^\d]*$")
"""An answer without a figure that denies something: that the sources say it."""
QUESTIONS = Path(__file__).with_name("local_model.jsonl")
MOST_S = 1_200
"""Seconds after which a question is given up."""


def main(words: Sequence[str]) -> int:
    """Ask all questions, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("eval/local_model"), help="folder of the runs")
    parser.add_argument("--team", action="store_true", help="the whole team instead of lean mode")
    parser.add_argument("--max-time", default="10m", help="limit of each question")
    parser.add_argument("--only", nargs="*", default=[], metavar="ID", help="only these questions")
    parser.add_argument("--json", action="store_true", help="print the scores as JSON")
    asked = parser.parse_args(words)
    chosen = [one for one in read_questions(str(QUESTIONS)) if not asked.only or one.id in asked.only]
    scores: list[Score] = []
    for question in chosen:
        run = asked.out / ("team" if asked.team else "lean") / question.id
        if not runs_in(run):
            ask(question, run, ["--no-lean" if asked.team else "--lean", "--max-time", asked.max_time])
        score = measured(question, run)
        scores.append(score)
        line = f"{question.id:<12} {score.status or score.error:<14} {'right' if score.right else 'wrong':<6}"
        load = os.getloadavg()[0]
        print(f"{line} {score.seconds:>6.0f} s {score.tokens:>7,} tokens, load {load:.1f}", file=sys.stderr, flush=True)
    print(json.dumps([one.model_dump() for one in scores], indent=1) if asked.json else table(scores))
    return 0


def ask(question: EvalQuestion, folder: Path, flags: Sequence[str]) -> None:
    """Ask a question in a process of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    files: list[str] = []
    for document in question.documents:
        path = folder / f"{document.title}.md"
        path.write_text(document.text, encoding="utf-8")
        files += ["--file", str(path)]
    command = [sys.executable, "-m", "explorer", question.question, *files, *flags]
    command += ["--workspace", str(folder / "runs"), "--output-format", "json"]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=MOST_S, check=False)


def runs_in(folder: Path) -> list[Path]:
    """Return the runs that a question has."""
    return [one for one in sorted((folder / "runs").glob("*")) if is_run(one)]


def measured(question: EvalQuestion, folder: Path) -> Score:
    """Return the score of a question's run; right where there is no answer is to say so."""
    runs = runs_in(folder)
    if not runs:
        return Score(id=question.id, status="", error="no run", right=False, cited=False)
    score = score_run(question, runs[-1])
    if question.answers:
        return score.model_copy(update={"right": bool(score.right) and names_first(question, answer_in(runs[-1]))})
    says_so = SAYS_NOT.search(answer_in(runs[-1])) is not None
    is_cited = score.has_report and score.citations > 0
    is_right = score.status == Status.NOTHING_FOUND or (score.has_report and says_so)
    return score.model_copy(update={"right": is_right, "cited": is_cited})


def answer_in(run: Path) -> str:
    """Return the first paragraph of a run's report, without its references; empty without a report."""
    path = run / "report.md"
    if not path.exists():
        return ""
    return REFERENCE.sub("", answer_part(without_frontmatter(path.read_text())).partition("\n\n")[0])


def names_first(question: EvalQuestion, answer: str) -> bool:
    """Return whether an answer to a comparison names the right one of the two first, as the subject."""
    lines = (json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines())
    rejected: list[str] = next(line.get("rejected", []) for line in lines if line["id"] == question.id)
    places = {name: answer.casefold().find(name.casefold()) for name in (*question.answers, *rejected)}
    first = min((place, name) for name, place in places.items() if place >= 0) if max(places.values()) >= 0 else (0, "")
    return not rejected or first[1] in question.answers


def table(scores: Sequence[Score]) -> str:
    """Return the shares with their intervals, and the medians."""
    rows = {
        "ended with a cited report": [one.ended_by_itself and one.has_report and one.citations > 0 for one in scores],
        "ended by itself": [one.ended_by_itself for one in scores],
        "right": [bool(one.right) for one in scores],
        "cited": [bool(one.cited) for one in scores],
        "complete": [one.status in {Status.COMPLETE, Status.NOTHING_FOUND} for one in scores],
    }
    lines = [f"n = {len(scores)}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"]
    for name, values in rows.items():
        share = share_of(sum(values), len(values))
        lines.append(
            f"{name:<26} {share.count:>3} of {share.n:<3} {share.share:>5.0%}  {share.low:.0%}-{share.high:.0%}"
        )
    middle = medians(scores)
    lines += [f"median {name:<19} {value:,.0f}" for name in ("seconds", "tokens", "steps") if (value := middle[name])]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
