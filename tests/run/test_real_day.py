"""A recorded Hacker News day on loopback: without a model, and with scripted models over every wire."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from command import explorer
from explorer.schema.events import AgentStarted, JournalRecord, ToolFinished
from explorer.text.rendering import without_marks
from model_servers import AnthropicServer, Asked, OpenAIResponsesServer, OpenAIServer, Reply
from sources.loopback import replaying
from team_script import body_of, cited_references, only_run, records_of, role_of

QUESTION = "what's notable on HN today"
WIRES = {
    "anthropic": (AnthropicServer, "ANTHROPIC_BASE_URL", ""),
    "chat": (OpenAIServer, "OPENAI_BASE_URL", ""),
    "responses": (OpenAIResponsesServer, "OPENAI_BASE_URL", "openai-responses:model-a"),
}
"""The server, the setting of its address, and the model that is asked for where the address does not choose."""


@pytest.fixture(scope="module")
def services() -> Iterator[dict[str, str]]:
    """Settings that point every outside service at the recorded day."""
    with replaying() as url:
        yield {
            "EXPLORER_HN_API_URL": f"{url}/v0",
            "EXPLORER_HN_SEARCH_URL": f"{url}/api/v1",
            "EXPLORER_READER_URL": f"{url}/reader",
            "EXPLORER_ALLOW_HOSTS": "127.0.0.1",
        }


def _check(folder: Path, records: list[JournalRecord], roles_that_write: set[str]) -> None:
    """Every citation resolves; the roles wrote files; the orchestrator drilled down."""
    report = (folder / "report.md").read_text()
    head = yaml.safe_load(report.split("---\n")[1])
    assert head["status"] == "complete"
    cited = cited_references(report.partition("\n### ")[0])  # What is listed further was read, and is not cited.
    assert cited
    assert head["sources_cited"] == len(cited)
    for source in cited:
        stored = (folder / ".explorer" / "sources" / f"{source}.md").read_text()
        assert yaml.safe_load(stored.split("---\n")[1])["id"] == source
    body, references = body_of(report).rsplit("## References", 1)
    numbers = {int(number) for number in re.findall(r"\[(\d+)\]", body)}
    assert numbers == set(range(1, len(re.findall(r"^\d+\. ", references, re.MULTILINE)) + 1))
    events = [record.event for record in records]
    roles = {event.agent: event.role for event in events if isinstance(event, AgentStarted)}
    finished = [event for event in events if isinstance(event, ToolFinished)]
    wrote = Counter(roles[event.agent] for event in finished if event.files)
    assert roles_that_write <= set(wrote)
    assert any(event.name == "read_file" and event.agent == "orchestrator" and event.success for event in finished)


@pytest.mark.slow
def test_the_real_day_without_a_model(tmp_path: Path, services: dict[str, str]) -> None:
    """The offline client makes a useful, cited report of a real day through the whole team."""
    done = explorer(QUESTION, "--model", "offline", cwd=tmp_path, settings=services)
    assert done.returncode == 0, done.stderr
    folder = only_run(tmp_path / "workspace")
    _check(folder, records_of(folder), {"searcher", "writer"})
    assert "without a language model" in done.stdout
    # The biggest story of that day comes with its figures, though its article cannot be read.
    biggest = r"\n## \d\. \[Muse Glimmer.*\n\n.*1205 points and \[639 comments\]\(.*\), 2026-08-10 \[\d+\]"
    assert re.search(biggest, done.stdout)


def _day(asked: Asked) -> Reply:
    """A small team for the day: an overview, two looks in parallel, an analysis, a report."""
    return {"orchestrator": _lead, "searcher": _search, "analyzer": _analyze, "writer": _write}[role_of(asked)](asked)


def _stories(text: str) -> list[tuple[str, str, str]]:
    """(source id, title, story id) of each story a result or a file lists."""
    return re.findall(r"\[(S\d+)\] (.+?)(?: \([^)]*\))?\n\s+id (\d+) ", text)


def _lead(asked: Asked) -> Reply:
    def help_from(role: str, task: str, *files: str) -> tuple[str, dict[str, object]]:
        return "call_agent", {"agent_type": role, "task_description": task, "context_files": list(files)}

    done = len(asked.results)
    if done == 0:
        return Reply(calls=[help_from("searcher", "Overview of the top stories.")])
    if done == 1:
        return Reply(calls=[("read_file", {"filepath": "overview.md"})])
    if done == 2:
        ids = re.findall(r"story (\d+)", asked.results[1])[:2]
        return Reply(calls=[help_from("searcher", f"Closer look at story {story}.") for story in ids])
    if done == 4:
        files = [json.loads(without_marks(result))["files"][0]["path"] for result in asked.results[2:4]]
        return Reply(calls=[help_from("analyzer", "What matters?", "overview.md", *files)])
    if done == 5:
        return Reply(calls=[help_from("writer", "Write it.", "analysis.md", "overview.md")])
    return Reply(calls=[("finish_exploration", {"summary": "The day is told."})])


def _search(asked: Asked) -> Reply:
    closer = re.search(r"Closer look at story (\d+)", asked.said[0])
    if closer is None:
        if not asked.results:
            return Reply(calls=[("get_hn_stories", {"story_type": "top", "limit": 5})])
        if len(asked.results) == 1:
            lines = [f"- {title}, story {story} [{source}]" for source, title, story in _stories(asked.results[0])]
            content = "# Overview\n\n" + "\n".join(lines)
            return Reply(calls=[("write_file", {"filepath": "overview.md", "content": content})])
        return Reply(text="The overview stands in overview.md.\nNot known: what the articles say.")
    story = closer[1]
    if not asked.results:
        return Reply(calls=[("get_comments", {"post_id": story, "platform": "hackernews"})])
    if len(asked.results) == 1:
        source = re.search(r"\[(S\d+)\]", asked.results[0])
        content = f"# Story {story}\n\nIts thread was looked at" + (f" [{source[1]}]." if source else "; it is empty.")
        return Reply(calls=[("write_file", {"filepath": f"stories/{story}.md", "content": content})])
    return Reply(text=f"Story {story} was looked at.\nNot known: the rest.")


def _analyze(asked: Asked) -> Reply:
    if not asked.results:
        return Reply(calls=[("read_file", {"filepath": "overview.md"})])
    if len(asked.results) == 1:
        first = re.search(r"- (.+), story \d+ \[(S\d+)\]", asked.results[0])
        assert first is not None
        content = f"# Analysis\n\nFirst on the list is {first[1]} [{first[2]}]."
        return Reply(calls=[("write_file", {"filepath": "analysis.md", "content": content})])
    return Reply(text="The analysis stands in analysis.md.\nNot known: why.")


def _write(asked: Asked) -> Reply:
    if not asked.results:
        return Reply(calls=[("read_file", {"filepath": name}) for name in ("analysis.md", "overview.md")])
    if len(asked.results) == 2:
        lines = re.findall(r"- (.+), story \d+ (\[S\d+\])", asked.results[1])
        listed = "\n".join(f"{number}. {title} {source}" for number, (title, source) in enumerate(lines, 1))
        content = f"# What was notable on Hacker News\n\nThese stood at the top of the list that day:\n\n{listed}\n"
        return Reply(calls=[("write_file", {"filepath": "report.md", "content": content})])
    return Reply(text="The report names the top five.\nNot known: the rest of the list.")


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
def test_the_same_question_over_each_wire(wire: str, tmp_path: Path, services: dict[str, str]) -> None:
    """Scripted models, the vendors' SDKs and the real day make a cited report, driven by base URL and model."""
    server_class, variable, model = WIRES[wire]
    with server_class(_day) as server:
        settings = {**services, "EXPLORER_MODEL": model, variable: server.url}
        done = explorer(QUESTION, cwd=tmp_path, settings=settings)
    assert done.returncode == 0, done.stderr
    folder = only_run(tmp_path / "workspace")
    _check(folder, records_of(folder), {"searcher", "analyzer", "writer"})


@pytest.mark.slow
def test_two_real_days_are_compared_by_story(tmp_path: Path, services: dict[str, str]) -> None:
    """No story of one day is paired with another one of the next; what only one day has is said once."""
    for day in ("2026-08-10", "2026-08-11"):
        done = explorer(f"Hacker News on {day}", "--model", "offline", cwd=tmp_path, settings=services)
        assert done.returncode == 0, done.stderr
    first, second = (folder.name for folder in sorted((tmp_path / "workspace").glob("2*")))
    shown = json.loads(explorer("diff", first, second, "--output-format", "json", cwd=tmp_path).stdout)
    assert len(shown["stories"]) == 60
    for one in shown["stories"]:
        pages = [one[side]["url"] for side in ("before", "after") if one[side] is not None]
        assert len(set(pages)) == 1
    assert shown["changed_claims"] == []
