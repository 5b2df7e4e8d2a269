"""Real pages and a real day: what a text says of itself is never `not found`, and changed figures mostly are."""

import gzip
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import explorer
from explorer.reports.verify.check import check
from explorer.text.sanitize import visible
from reports.verify.shelf import source
from sources.loopback import DATA, replaying
from team_script import only_run

FIGURE = re.compile(r"(?<![A-Za-z\d.])\d{2,}(?:[.,]\d+)*")
CHANGED_FOUND = 0.75
"""Of changed figures; the others stand elsewhere in the same text, and no look-up of figures can tell."""


def _texts() -> Iterator[str]:
    pages = sorted((DATA / "pages" / "gold").glob("*.json"))
    articles = DATA / "hn_snapshot" / "articles.jsonl.gz"
    if not pages or not articles.is_file():
        pytest.skip("the recorded pages are not beside the checkout")
    for path in pages:
        shown = json.loads(path.read_text(encoding="utf-8"))
        yield visible(shown.get("ground_truth", shown).get("main_content") or "")
    with gzip.open(articles, "rt", encoding="utf-8") as lines:
        for line, _ in zip(lines, range(100), strict=False):
            yield visible(json.loads(line).get("text") or "")


def _lines(text: str) -> list[str]:
    """Lines that are prose."""
    bare = [re.sub(r"\[S\d+\]", "", line).strip() for line in text.split("\n")]
    return [line for line in bare if line and not line.startswith(("#", "|", "<!--")) and not set("`~") & set(line)]


@pytest.mark.slow
def test_a_text_carries_itself() -> None:
    """Each line of some two hundred real texts, cited with that very text: no alarm."""
    claims = figures = 0
    for text in filter(None, _texts()):
        draft = "\n\n".join(f"x: {line} [S1]" for line in _lines(text))
        found = check(draft, {"S1": source("S1", text)}, {"S1": text}.get)
        assert [claim for claim in found.claims if claim.verdict not in {"supported", "unchecked"}] == []
        claims += len(found.claims)
        figures += sum(len(claim.findings) for claim in found.claims)
    print(f"{claims} sentences, {figures} quotes and figures, no alarm")  # noqa: T201 - the figure is the point of the test
    assert figures > 2_000


@pytest.mark.slow
def test_a_changed_figure_is_found() -> None:
    """One figure of a line changed, and most of these lines are told as not found."""
    chance = random.Random(7)  # noqa: S311 - the same lines each time
    changed = shown = 0
    for text in filter(None, _texts()):
        for line in [line for line in _lines(text) if FIGURE.search(line) and not set("“\"«\u2018'") & set(line)][:8]:
            place = chance.choice(list(FIGURE.finditer(line))).start()
            wrong = f"{line[:place]}{int(line[place]) % 9 + 1}{line[place + 1 :]}"
            draft = " ".join(f"{part} [S1]." for part in re.split(r"(?<=[a-z])\.\s", wrong))
            changed += 1
            found = check(draft, {"S1": source("S1", text)}, {"S1": text}.get)
            shown += bool(found.faults)
    print(f"{shown} of {changed} changed figures found")  # noqa: T201 - the same
    assert shown >= CHANGED_FOUND * changed


@pytest.mark.slow
@pytest.mark.parametrize("question", ["what's notable on HN today", "今天 Hacker News 上有什么值得关注的？"])
def test_the_real_day(question: str, tmp_path: Path) -> None:
    """Nothing is wrong in the report that is extracted from a recorded day."""
    with replaying() as url:
        services = {
            "EXPLORER_HN_API_URL": f"{url}/v0",
            "EXPLORER_HN_SEARCH_URL": f"{url}/api/v1",
            "EXPLORER_READER_URL": f"{url}/reader",
            "EXPLORER_ALLOW_HOSTS": "127.0.0.1",
        }
        assert explorer(question, "--model", "offline", cwd=tmp_path, settings=services).returncode == 0
    done = explorer("verify", "--output-format", "json", cwd=tmp_path, settings={})
    assert done.returncode == 0, done.stdout
    facts = json.loads(done.stdout)
    print(facts["counts"], "uncited:", len(facts["uncited"]))  # noqa: T201 - the same
    assert facts["counts"]["supported"] > 20
    assert (only_run(tmp_path / "workspace") / ".explorer" / "claims.jsonl").is_file()
