"""The rule-driven client in the real engine, over the sample day."""

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from explorer.run.run import RunResult, resume, start
from explorer.schema.events import Status
from explorer.schema.settings import Settings

TOP_THREE = "top 3 stories on Hacker News"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The sample day without a model."""
    return Settings(workspace=tmp_path, model="offline", is_sample=True, shell="off")


@pytest.fixture(scope="module")
def top_three(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A run about three stories, made once; tests copy it and leave it alone."""
    settings = Settings(workspace=tmp_path_factory.mktemp("top"), model="offline", is_sample=True, shell="off")
    return asyncio.run(start(TOP_THREE, settings))


@pytest.mark.slow
async def test_a_sample_run_is_complete_and_every_quote_is_verbatim(settings: Settings) -> None:
    """Each sentence between curly marks stands in the stored source it cites."""
    result = await start("What was notable on Hacker News?", settings)
    assert result.status is Status.COMPLETE
    assert "invented sample data" in result.report_text
    assert len(re.findall(r"^## \d\.", result.report_text, re.MULTILINE)) == 9
    quotes = 0
    for note in (result.folder / "stories").glob("*.md"):
        for text, source in re.findall(r"“(.*)” \[(S\d+)\]$", note.read_text("utf-8"), re.MULTILINE):
            stored = (result.folder / ".explorer" / "sources" / f"{source}.md").read_text("utf-8")
            assert text in stored
            quotes += 1
    assert quotes > 30


@pytest.mark.slow
async def test_the_same_question_gives_the_same_report(settings: Settings, top_three: RunResult) -> None:
    """Two runs differ in their ids and nothing else."""
    second = await start(TOP_THREE, settings)
    bodies = [result.report_text.partition("\n---\n")[2] for result in (top_three, second)]
    # Helpers run side by side, so the ids of their sources may come in another order.
    assert re.sub(r"`S\d+`", "", bodies[0]) == re.sub(r"`S\d+`", "", bodies[1])


@pytest.mark.slow
async def test_a_follow_up_adds_a_section(settings: Settings, top_three: RunResult) -> None:
    """The second round answers from what the first one stored."""
    folder = shutil.copytree(top_three.folder, settings.workspace / top_three.run_id)
    again = await resume(folder, settings, "What does the court ruling say about consent?")
    assert again.status is Status.COMPLETE
    assert "## Follow-up: What does the court ruling say about consent?" in again.report_text
    assert "consent of their authors" in again.report_text.partition("## Follow-up")[2]


async def test_a_question_about_a_file_is_answered_from_it(settings: Settings, tmp_path: Path) -> None:
    """The passage that meets the question is quoted with its source."""
    path = tmp_path / "notes.md"
    path.write_text(
        "# Bridges\n\nThe Kortrijk bridge was opened in 1967 by the mayor.\n\nBananas are berries.\n", "utf-8"
    )
    result = await start(
        "When was the Kortrijk bridge opened?", settings.model_copy(update={"files": (path,), "is_sample": False})
    )
    assert result.status is Status.COMPLETE
    assert "“The Kortrijk bridge was opened in 1967 by the mayor.”" in result.report_text
