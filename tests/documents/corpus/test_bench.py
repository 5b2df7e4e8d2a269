"""The search benchmark, on a slice of its questions."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "bench" / "search.py"


@pytest.mark.slow
async def test_the_gold_documents_are_found(shared_data: Path, tmp_path: Path) -> None:
    """Of twelve questions over their 120 paragraphs, the first ten results hold nearly all gold documents."""
    spec = importlib.util.spec_from_file_location("bench_search", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = bench  # dataclasses look themselves up
    spec.loader.exec_module(bench)
    questions = bench.questions_in(shared_data / "qa" / "hotpot50_distractor.jsonl", 12)
    scores = await bench.measure(questions, tmp_path)
    assert (scores.questions, scores.documents) == (12, 120)
    assert scores.recall[10] > 0.85
    assert "recall@10" in bench.table(scores)
