"""Whether a source says a figure, a quote or a statement of the same: who, when, and which way round."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from explorer.reports.verify.check import check
from explorer.reports.verify.claims import (
    Claim,
    Judgements,
    Opinion,
    Verdict,
    with_unsupported_marks,
    without_unsupported_marks,
    words_for_writer,
)
from reports.verify.shelf import source

TEXT = (
    "Asker Ferries carried 2.4 million passengers in 2024, up from 1.9 million in 2023. Brandal Lines carried "
    "3.1 million passengers in 2024.\n\nThe crossing takes 90 minutes. A third of the ships are new. “Cars follow the "
    "bridge,” said Ida Holm of Asker Ferries. Brandal's director, Peter Strand, said the bridge did not reduce traffic."
)


def _bench() -> Any:  # noqa: ANN401 - a script's module, which no package holds
    path = Path(__file__).resolve().parents[3] / "bench" / "citations.py"
    spec = importlib.util.spec_from_file_location("bench_citations", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def _one(sentence: str) -> Claim:
    (claim,) = check(sentence, {"S1": source("S1", TEXT)}, {"S1": TEXT}.get).claims
    return claim


@pytest.mark.parametrize(
    "sentence",
    [
        "Brandal Lines carried 2.4 million passengers [S1].",
        "Asker's passenger numbers fell from 2.4 million to 1.9 million [S1].",
        "“Cars follow the bridge,” said Peter Strand [S1].",
        "Peter Strand said the bridge reduced traffic [S1].",
    ],
)
def test_what_a_source_says_otherwise(sentence: str) -> None:
    """Another company, another direction, another speaker, a negation: elsewhere, with the source's own sentences."""
    claim = _one(sentence)
    assert claim.verdict is Verdict.ELSEWHERE
    (finding,) = [one for one in claim.findings if one.verdict is Verdict.ELSEWHERE][:1]
    assert finding.passages
    assert all(passage in " ".join(TEXT.translate({0x201C: '"', 0x201D: '"'}).split()) for passage in finding.passages)


FILM = (
    "Tern Island\n\nHer first feature film was “The Long Winter” in 1962, and it is often shown. It was made with Vale "
    "Pictures. Nina Aalto had worked as an editor before. “The Long Winter” was sold by Vale Pictures. Harbour law "
    "required that pilots had been born there, which prevented strangers from taking the post. Living well isn't a "
    "fixed goal - living well means resting when it is needed and working when it can be done."
)


@pytest.mark.parametrize(
    "sentence",
    [
        "Nina Aalto's first feature film was “The Long Winter” in 1962 [S1].",
        "Nina Aalto made “The Long Winter” [S1].",
        "Strangers were not allowed to take the post because harbour law required pilots to be born there [S1].",
        "Living well involves resting when it is needed and working when it can be done, without haste [S1].",
    ],
)
def test_other_words_for_the_same_raise_no_alarm(sentence: str) -> None:
    """Pronouns, titles of works, negations of something else and in other words."""
    (claim,) = check(sentence, {"S1": source("S1", FILM)}, {"S1": FILM}.get).claims
    assert claim.verdict is not Verdict.ELSEWHERE, claim.reason


@pytest.mark.parametrize(
    "sentence",
    ["The mill was bought by Kestrel Foods in 1971 [S1].", "Kestrel Foods opened the bakery in 1990 [S1]."],
)
def test_a_name_in_the_place_of_another_raises_one(sentence: str) -> None:
    """Behind the same word, and as the subject."""
    text = (
        "Old mills\n\nThe mill was bought by Vale Grain in 1971. Vale Grain opened the bakery in 1990. Later the owner "
        "of Kestrel Foods came to see it."
    )
    (claim,) = check(sentence, {"S1": source("S1", text)}, {"S1": text}.get).claims
    assert claim.verdict is Verdict.ELSEWHERE, claim.reason


GAME = (
    "Cup final\n\nIn the final, Redcastle beat Alder Town 3-1 on Saturday. Then Redcastle will play in the league, "
    "while Alder Town must go down. It could cost 120 million. Women gained more from it than men. Kate Dunmore "
    "refused to blame him."
)
TRAIN = (
    "地铁2号线全长38.5公里，设26座车站；4号线尚未开工。校长韩雪梅说不难。副校长陆建国主管科研。"
    "远山M3售价19.6万元，星途E5售价23.8万元。"
)
DAMS = (
    "Zwei Talsperren\n\nDie Talsperre Eschbach fasst 46 Millionen Kubikmeter Wasser, die Talsperre Rautal nur 12 "
    "Millionen. Eschbach wurde 1962 gebaut, Rautal schon 1911. Die Mauer von Rautal ist 38 Meter hoch."
)


@pytest.mark.parametrize(
    ("text", "wrong", "right"),
    [
        (GAME, "Alder Town beat Redcastle 3-1", "Alder Town was beaten by Redcastle 3-1"),
        (GAME, "Alder Town will play in the league", "Redcastle will play in the league"),
        (GAME, "Men gained more from it than women", "It is women who gained more from it"),
        (GAME, "It will cost 120 million", "It might cost 120 million"),
        (GAME, "Kate Dunmore blamed him", "Kate Dunmore did not blame him"),
        (TRAIN, "4号线全长38.5公里", "2号线全长38.5公里"),
        (TRAIN, "4号线已经开工", "4号线还没有开工"),
        (TRAIN, "校长韩雪梅主管科研", "副校长陆建国主管科研"),
        (TRAIN, "远山M3售价23.8万元", "星途E5售价238,000元"),
        (DAMS, "Rautal wurde 1962 gebaut", "Im Jahr 1962 wurde Eschbach gebaut"),
    ],
)
def test_the_same_words_of_another_one(text: str, wrong: str, right: str) -> None:
    """Who beat whom, another subject, the other side of a comparison, `will` for `could`: in three languages."""
    sources = {"S1": source("S1", text, language="")}
    verdicts = [check(f"{one} [S1].", sources, {"S1": text}.get).claims[0].verdict for one in (wrong, right)]
    assert verdicts[0] is Verdict.ELSEWHERE
    assert verdicts[1] is not Verdict.ELSEWHERE


POST = "Tell HN: My registrar let a stranger take an expired domain"


@pytest.mark.parametrize(("title", "verdict"), [(POST, Verdict.SUPPORTED), ("The expired domain of mine", None)])
def test_a_line_with_the_title_is_about_the_source(title: str, verdict: Verdict | None) -> None:
    """The words of a title do not say which of a source's dates is meant; other words do."""
    text = f"{POST}\n\n402 points, 119 comments, 2026-03-14\n\nA domain of mine expired on 2 March because of a card."
    sources = {"S1": source("S1", text, title=POST)}
    (claim,) = check(f"{title}: 402 points, 2026-03-14 [S1]", sources, {"S1": text}.get).claims
    assert claim.verdict is (verdict or Verdict.ELSEWHERE), claim.reason


def test_the_bench_reads_sentences_of_real_systems(tmp_path: Path) -> None:
    """A file of AttributionBench: own marks are taken away, and each sentence cites every reference."""
    path = tmp_path / "set.jsonl"
    line = {"references": ["The bridge is 412 metres tall.", " "], "webpage_references": [], "src_dataset": "Real"}
    claims = [("The bridge is 412 metres tall [1, 2]. Nobody counts [3].", "attributable")]
    claims += [("The bridge is 500 metres tall [1].", "not attributable")]
    rows = [{**line, "claim": claim, "attribution_label": label} for claim, label in claims]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = _bench().attributions(path)
    assert [(one.case.kind, one.case.is_true, one.has_alarm) for one in found] == [
        ("Real", True, False),
        ("Real", False, True),
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "Asker Ferries carried 2.4 million passengers [S1].",
        "The crossing takes an hour and a half, or 1.5 hours [S1].",
        "About 33 percent of the ships are new [S1].",
        "Two and a half years ago nobody knew this; 2.4 million passengers came in 2024 [S1].",
        "阿斯克渡轮 2024 年运送乘客 240 万人次 [S1]。",
        "“Cars follow the bridge,” Ida Holm said [S1].",
    ],
)
def test_what_a_source_says_in_other_words(sentence: str) -> None:
    """Other units, parts, languages and word order raise no alarm."""
    assert _one(sentence).verdict is not Verdict.ELSEWHERE


def test_the_writer_sees_both_passages() -> None:
    """What the source says there, and of the sentence's own subject, fenced as an outsider's."""
    found = check("Brandal Lines carried 2.4 million passengers [S1].", {"S1": source("S1", TEXT)}, {"S1": TEXT}.get)
    words = words_for_writer(found)
    assert "<<untrusted " in words
    assert "Asker Ferries carried 2.4 million" in words
    assert "Brandal Lines carried 3.1 million" in words


def test_unsupported_sentences_carry_a_mark() -> None:
    """The mark is at the end of the line, in a row before its last bar; a check of the marked text finds the same."""
    wrong = "Asker carried 9.9 million passengers [S1].\n\n| Asker | 8.8 million [S1] |"
    draft = f"{wrong}\n\nThe crossing takes 90 minutes [S1]."
    shelf = {"S1": source("S1", TEXT)}
    found = check(draft, shelf, {"S1": TEXT}.get)
    marked = with_unsupported_marks(draft, found)
    assert marked.split("\n")[0].endswith("[S1]. ⚠")
    assert marked.split("\n")[2].endswith("[S1] ⚠ |")
    assert marked.count("⚠") == 2
    assert check(marked, shelf, {"S1": TEXT}.get) == found
    assert with_unsupported_marks(marked, found) == marked
    assert without_unsupported_marks(marked) == draft


REPORTED = (
    "Fees are too low to keep the pool open, said Ida Holm, who runs it.\n\nPeter Strand said the pool should close in "
    'March. He wants a library there.\n\nWidth: 30 1/8 "\nDepth: 15 3/8 "\n\nLamp Alder - NEW\n\nFrom $599 a piece\n\n'
    "Lamp Birk - NEW\n\nFrom $1,099 a piece\n\nThe town paid one and a half million euros. Ostrow pool had 410 guests "
    "on Monday, Brandal pool had 620. Halden Line fell from 133rd to 168th, and Corvel Line rose from 40th to 21st."
)


@pytest.mark.parametrize(
    ("sentence", "verdict"),
    [
        ("Ida Holm said that fees are too low to keep the pool open [S1].", "unchecked"),
        ("Peter Strand said that fees are too low to keep the pool open [S1].", "elsewhere"),
        ("The pool should close in April, Peter Strand said [S1].", "elsewhere"),
        ("The shelf is 30 1/8 inches wide, or about 76.5 cm [S1].", "supported"),
        ("The shelf is 15 3/8 inches wide [S1].", "elsewhere"),
        ("Lamp Birk costs $1,099 [S1].", "supported"),
        ("Lamp Birk costs $599 [S1].", "elsewhere"),
        ("Lamp Birk is $500 dearer than Lamp Alder [S1].", "unchecked"),
        ("The town paid €1.5 million [S1].", "supported"),
        ("Brandal pool had 210 guests more than Ostrow pool [S1].", "unchecked"),
        ("Halden Line fell from 133rd to 168th [S1].", "supported"),
        ("Corvel Line fell from 133rd to 168th [S1].", "elsewhere"),
    ],
)
def test_reported_speech_lists_and_what_is_worked_out(sentence: str, verdict: str) -> None:
    """Who said it without a quote, a line of a list under its name, a label, a rank, a number that two others give."""
    (claim,) = check(sentence, {"S1": source("S1", REPORTED)}, {"S1": REPORTED}.get).claims
    assert claim.verdict == verdict, claim.reason


def test_a_line_below_a_title_is_about_what_it_names() -> None:
    """The line of a story with its points names only who posted it, and is about the story of the title."""
    title = "The Harbour Is Counting Night Trains and Ferry Accounts"
    text = f"{title}\nhttps://news.example/a\n133 points, 85 comments, by Jim414, 2026-08-15T22:40:20Z\n"
    story = source("S1", text).model_copy(update={"title": title, "author": "Jim414", "kind": "story"})
    draft = f"- [{title}](https://news.example/a): 133 points and [85 comments](https://x.example/1), 2026-08-15 [S1]"
    (claim,) = check(draft, {"S1": story}, {"S1": text}.get).claims
    assert claim.verdict is Verdict.SUPPORTED, claim.reason


def test_agreement_counts_what_both_decide() -> None:
    """What a judge leaves open, and what the rules leave open, is not compared."""
    verdicts = [Verdict.SUPPORTED, Verdict.ELSEWHERE, Verdict.SUPPORTED, Verdict.UNCHECKED, Verdict.SUPPORTED]
    claims = [Claim(sentence="x", line=1, ids=("S1",), verdict=verdict) for verdict in verdicts]
    answers = (Opinion.CARRIED, Opinion.NOT_CARRIED, Opinion.NOT_CARRIED, Opinion.CARRIED, None)
    assert Judgements(model="m", answers=answers).agreement(claims) == {"compared": 3, "agreed": 2}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["real", "realdev", "unseen", "blind"])
def test_the_sets_about_real_texts_are_whole(name: str) -> None:
    """Every text can be read, every sentence is about one of them, and about half of the sentences are false."""
    bench = _bench()
    if not bench.DATA.is_dir():
        pytest.skip(f"recordings are not here: {bench.DATA}")
    cases = [bench.Case.model_validate_json(line) for line in bench.lines(f"{name}_cases.jsonl")]
    texts = [bench.Text.model_validate_json(line) for line in bench.lines(f"{name}_sources.jsonl")]
    assert all(one.text or bench.recorded(one.recording, bench.DATA).text for one in texts)
    assert {case.source for case in cases} <= {one.id for one in texts}
    assert 0.4 < sum(case.is_true for case in cases) / len(cases) < 0.6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least_found", "most_alarms"),
    [
        ("dev", 0.9, 0.05),
        ("hard", 0.76, 0.05),
        ("heldout", 0.8, 0.1),
        ("realdev", 0.75, 0.04),
        ("real", 0.68, 0.04),
        ("unseen", 0.62, 0.1),
        ("blind", 0.42, 0.22),
    ],
)
def test_the_shares_of_the_sets(name: str, least_found: float, most_alarms: float) -> None:
    """The check does not fall behind the shares that docs/citation_check.md gives."""
    bench = _bench()
    if name in {"realdev", "real", "unseen", "blind"} and not bench.DATA.is_dir():
        pytest.skip(f"recordings are not here: {bench.DATA}")
    *_, false, true = bench.rows(bench.answers(name))
    assert false.alarms >= least_found * false.n
    assert true.alarms <= most_alarms * true.n
