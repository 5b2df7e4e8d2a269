"""How well pages are read: mean word F1 against gold texts, of trafilatura as it comes and of explorer's way.

    uv run python bench/extraction.py [--data ../shared/data/pages] [--pages 120] [--json]

The folder holds `html/<id>.html[.gz]` and `gold/<id>.json` (`main_content`, `page_type`, `url`, `author`, ...). F1 is
over bags of words, the addresses of links left out; the mean is over pages. CPU time is of this process.
"""

import argparse
import gzip
import json
import logging
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import trafilatura
from pydantic import BaseModel

from explorer.documents.parsing.html_pages import read_html
from explorer.documents.parsing.judgement import without_targets

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "pages"
WORD = re.compile(r"\w+")


class Gold(BaseModel):
    """What a page really says."""

    id: str
    url: str = ""
    page_type: str = ""
    main_content: str = ""


@dataclass(frozen=True)
class Page:
    """A page and its gold text."""

    gold: Gold
    body: bytes


@dataclass
class Result:
    """How one way of reading did."""

    name: str
    f1: float = 0.0
    empty: int = 0
    cpu_ms: float = 0.0
    """A page, in the mean."""
    by_kind: dict[str, float] = field(default_factory=dict[str, float])


def plain_text(page: Page) -> str:
    """Trafilatura as it comes."""
    return trafilatura.extract(page.body, url=page.gold.url or None) or ""


def our_text(page: Page) -> str:
    """As explorer reads it."""
    return read_html(page.body, url=page.gold.url).text


WAYS: dict[str, Callable[[Page], str]] = {"trafilatura": plain_text, "explorer": our_text}


def word_f1(text: str, gold: str) -> float:
    """The harmonic mean of how many of the text's words are meant, and how many of those meant are there."""
    found, wanted = (Counter(WORD.findall(without_targets(one).lower())) for one in (text, gold))
    shared = sum((found & wanted).values())
    return 2 * shared / (sum(found.values()) + sum(wanted.values())) if shared else 0.0


def load(folder: Path, most: int) -> list[Page]:
    """Pages spread evenly over all that are there."""
    files = sorted((folder / "gold").glob("*.json"))
    step = max(len(files) // most, 1)
    return [_page(folder, file) for file in files[::step][:most]]


def _page(folder: Path, gold_file: Path) -> Page:
    gold = Gold.model_validate_json(gold_file.read_bytes())
    file = next((folder / "html").glob(f"{gold.id}.*"))
    body = file.read_bytes()
    return Page(gold, gzip.decompress(body) if file.suffix == ".gz" else body)


def measure(name: str, read: Callable[[Page], str], pages: Sequence[Page]) -> Result:
    """Read all pages in one way; the first one twice, so that nothing is loaded within the measure."""
    read(pages[0])
    began = time.process_time()
    texts = [read(page) for page in pages]
    seconds = time.process_time() - began
    kinds: dict[str, list[float]] = defaultdict(list)
    for text, page in zip(texts, pages, strict=True):
        kinds[page.gold.page_type].append(word_f1(text, page.gold.main_content))
    scores = [score for of_kind in kinds.values() for score in of_kind]
    return Result(
        name,
        f1=round(sum(scores) / len(scores), 4),
        empty=sum(not text.strip() for text in texts),
        cpu_ms=round(1000 * seconds / len(pages), 1),
        by_kind={kind: round(sum(of_kind) / len(of_kind), 3) for kind, of_kind in sorted(kinds.items())},
    )


def main() -> int:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    pages = load(asked.data, asked.pages)
    if not pages:
        print(f"no pages in {asked.data}", file=sys.stderr)
        return 2
    results = [measure(name, read, pages) for name, read in WAYS.items()]
    if asked.json:
        print(json.dumps({"pages": len(pages), "ways": [asdict(result) for result in results]}))
        return 0
    print(f"{len(pages)} pages\n{'':<14}{'word F1':>9}{'empty':>7}{'CPU ms/page':>13}")
    for result in results:
        print(f"{result.name:<14}{result.f1:>9.4f}{result.empty:>7}{result.cpu_ms:>13}")
    print(f"\n{'kind':<16}" + "".join(f"{result.name:>13}" for result in results))
    for kind in results[0].by_kind:
        print(f"{kind:<16}" + "".join(f"{result.by_kind[kind]:>13.3f}" for result in results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
