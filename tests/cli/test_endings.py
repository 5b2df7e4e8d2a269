"""Every ending as a user and a program see it: status, exit code, first line, JSON; all distinct, all true."""

import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.situations import NOTES, NOWHERE, QUESTION, SITUATIONS, Situation, script_of
from cli.stage import Process, begin_explorer
from explorer.observe.command_result import EXIT_CODES
from explorer.text.frontmatter import without_frontmatter
from model_servers import OpenAIServer
from sources.loopback import Site, as_json, serving
from team_script import only_run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "endings.md"
INTRODUCTION = """# Endings

Each way a run can end, as it was seen in a test: the status, the exit code, the exit code of `explorer verify`
afterwards, the first line of what is on stdout (of stderr, where that is empty), and the fields of the JSON that make
the difference. `tests/cli/test_endings.py` runs every row through the command line against a model server on loopback,
and writes this page (`--update-golden`).

- `complete` means: answered, and the answer rests on sources.
- `citations` counts cited sentences; `verdicts` says what a look into their sources found, and sums to it. `uncited`
  counts sentences with a quote or a figure and no citation.
- `cause` is the reason as a code, where a program decides by it: a limit that was reached, named in the reason too.
- `answer` has the text that answers a follow-up, or that a model sent instead of writing a report.

"""
STORY = {
    "objectID": "4711",
    "title": "A bridge of 412 metres",
    "url": "https://bridges.example/412",
    "author": "ada",
    "points": 77,
    "num_comments": 12,
    "created_at_i": 1_786_000_000,
    "_tags": ["story", "author_ada", "story_4711"],
}
Here = Callable[..., Process]


@dataclass(frozen=True)
class Seen:
    """How one situation ended."""

    situation: Situation
    exit_code: int
    told: dict[str, Any]
    verified: int
    first: str

    @property
    def row(self) -> str:
        """Its line of the table."""
        fields = {name: self.told[name] for name in ("reason", "cause", "answer", "citations", "verdicts", "uncited")}
        fields["verdicts"] = {name: number for name, number in fields["verdicts"].items() if number}
        fields["answer"] = fields["answer"].strip().partition("\n")[0]
        told = {name: value for name, value in fields.items() if value and value != "other"}
        shown = json.dumps(told, ensure_ascii=False)
        cells = [
            self.situation.name, f"`{self.told['status']}`", str(self.exit_code), str(self.verified), self.first,
            f"`{shown}`",
        ]  # fmt: skip
        return "| " + " | ".join(_timeless(cell).replace("|", "\\|") for cell in cells) + " |"


def _timeless(text: str) -> str:
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    return re.sub(r"\d{8}-\d{6}-[a-z0-9-]+-[0-9a-f]{4}", "RUN", text)


def _first_line(situation: Situation, message: dict[str, Any], stderr: str) -> str:
    is_answer = situation.follow_up and message["answer"]
    text = message["answer"] if is_answer else without_frontmatter(message["report_text"])
    lines = [line.strip() for line in [*text.splitlines(), *stderr.splitlines()] if line.strip()]
    return lines[0] if lines else ""


def _environment(situation: Situation, server: OpenAIServer, site: Site) -> dict[str, str]:
    lists = site.url if situation.services == "empty" else NOWHERE
    searched = NOWHERE if situation.services == "down" else site.url
    return {
        "OPENAI_BASE_URL": server.url,
        "EXPLORER_HN_API_URL": f"{lists}/v0",
        "EXPLORER_HN_SEARCH_URL": f"{searched}/api/v1",
        "EXPLORER_TAVILY_URL": NOWHERE,
        "EXPLORER_ALLOW_HOSTS": "127.0.0.1",
        **situation.variables,
    }


def _end(situation: Situation, here: Here, folder: Path) -> Seen:
    """Run a situation in a folder of its own, and look at all that it left."""
    hits = [STORY] if situation.services == "live" else []
    found = as_json({"hits": hits, "nbHits": len(hits), "page": 0, "nbPages": len(hits)})
    common = ["--output-format", "json", "-q", "--no-shell"]
    with ExitStack() as stack:
        server = stack.enter_context(OpenAIServer(script_of(situation, folder)))
        site = stack.enter_context(serving({"/api/v1/search": found, "/api/v1/search_by_date": found}))
        variables = _environment(situation, server, site)
        (folder / "notes.md").write_text(NOTES)
        given = ["--file", "notes.md"] if situation.has_file else []
        words = [QUESTION, *given, *situation.words]
        if situation.is_killed:
            _kill(words, server, folder, variables)
            words = ["resume", "latest"]
        done = here(*words, *common, **variables)
        if situation.follow_up:
            assert done.returncode == 0, done.stderr
            done = here("resume", "latest", situation.follow_up, *common, **variables)
    verified = here("verify", "--output-format", "json")
    message = json.loads(done.stdout)
    _check_figures(message, folder, verified)
    in_words = json.loads(verified.stdout)["answer"] if verified.stdout and situation.follow_up else None
    assert (in_words is not None) == bool(situation.follow_up and message["answer"])
    if in_words is not None:
        assert in_words["counts"] == {"total": message["citations"], **message["verdicts"]}
    return Seen(situation, done.returncode, message, verified.returncode, _first_line(situation, message, done.stderr))


def _kill(words: list[str], server: OpenAIServer, folder: Path, variables: dict[str, str]) -> None:
    """Start a run in a process of its own, and kill it once its model is asked."""
    with begin_explorer(*words, "-q", "--no-shell", cwd=folder, **variables) as process:
        while not server.requests:
            assert process.poll() is None
            server.wait_until_closed(0.02)
        process.kill()


def _check_figures(message: dict[str, Any], folder: Path, verified: Process) -> None:
    """The counts of the JSON sum up, and are those of the frontmatter and of `verify`."""
    assert sum(message["verdicts"].values()) == message["citations"]
    if message["report"] is None:
        return
    fields = yaml.safe_load((only_run(folder / "workspace") / "report.md").read_text().split("---\n")[1])
    counts = json.loads(verified.stdout)["counts"]
    assert fields["citations"] == counts
    assert counts["total"] == sum(number for name, number in counts.items() if name != "total")
    if not message["answer"] and message["report_text"]:
        assert (fields["status"], fields.get("reason", "")) == (message["status"], message["reason"])
        assert (message["citations"], message["uncited"]) == (counts["total"], fields["uncited"])


@pytest.fixture
def seen(here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Situation], Seen]:
    """Run situations, each in a folder of its own."""

    def run(situation: Situation) -> Seen:
        folder = tmp_path / re.sub(r"\W+", "-", situation.name)
        folder.mkdir()
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            return _end(situation, here, folder)

    return run


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_all_endings_are_distinct_and_true(seen: Callable[[Situation], Seen], request: pytest.FixtureRequest) -> None:
    """The table of docs/endings.md is what happens, and no two rows look alike."""
    endings = [seen(situation) for situation in SITUATIONS]
    for ending in endings:
        message = ending.told
        assert message["exit_code"] == ending.exit_code, ending.situation.name
        assert (message["status"] == "complete") == (ending.exit_code == 0) == (message["reason"] == "")
        if message["status"] in EXIT_CODES and message["cause"] != "time_limit":
            assert EXIT_CODES[message["status"]] == ending.exit_code
        if message["status"] == "complete":
            assert ending.verified == 0, ending.situation.name
    looks = [(ending.told["status"], ending.exit_code, ending.first) for ending in endings]
    assert len(endings) >= 30
    head = "| Situation | Status | Exit | Verify | First line | JSON |\n|---|---|---|---|---|---|\n"
    page = INTRODUCTION + head + "".join(f"{ending.row}\n" for ending in endings)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page, encoding="utf-8")
    assert page == PAGE.read_text(encoding="utf-8"), "docs/endings.md has changed; look, then --update-golden"
    doubles = {look for look in looks if looks.count(look) > 1}
    assert doubles <= {("complete", 0, SAME_FIRST_LINE)}


SAME_FIRST_LINE = "The bridge is 412 metres tall. [1]"
"""Of complete runs, whose report is what was asked for."""
