"""The benchmark of reading pages, over a slice of the gold pages and, slowly, over all of them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT.parent / "shared" / "data" / "pages"


def measured(*arguments: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the benchmark says of trafilatura as it comes, and of explorer."""
    if not PAGES.exists():
        pytest.skip(f"gold pages are not here: {PAGES}")
    command = [sys.executable, str(ROOT / "bench" / "extraction.py"), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    plain, ours = json.loads(done.stdout)["ways"]
    return plain, ours


@pytest.mark.slow
def test_a_slice_of_the_pages() -> None:
    """A few pages are measured both ways, none is empty, and most words are right."""
    plain, ours = measured("--pages", "8")
    assert (plain["name"], ours["name"], ours["empty"]) == ("trafilatura", "explorer", 0)
    assert ours["f1"] > 0.8
    assert ours["cpu_ms"] > 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_all_pages() -> None:
    """Over all pages explorer's way is better than trafilatura as it comes, and no page is empty."""
    plain, ours = measured()
    assert ours["f1"] > plain["f1"]
    assert ours["empty"] == 0


@pytest.mark.slow
def test_without_pages(tmp_path: Path) -> None:
    """A folder without pages is said to be one."""
    command = [sys.executable, str(ROOT / "bench" / "extraction.py"), "--data", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "no pages in" in done.stderr) == (2, True)
