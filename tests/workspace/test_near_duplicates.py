import asyncio
import subprocess
import sys

import pytest

from engine_stage import source
from explorer.text.differences import changes_between, compare, pieces_of
from explorer.workspace.source_store import (
    MAX_LIKELY,
    MIN_WORDS,
    SketchIndex,
    Text,
    advice,
    flags_between,
    plain_flags,
    relation_of,
    sketch,
)
from workspace.copied_texts import ARTICLE, ARTICLE_ZH, FRAME, OTHER_ARTICLE, altered


def page(text: str, url: str = "https://courier.example/may", **fields: str) -> Text:
    """A page as it is compared."""
    facts = {"title": "Harbour plant has a good May", "kind": "page", "published": ""} | fields
    return Text(url=url, text=text, **facts)


def flags(earlier: str, later: str, **fields: str) -> tuple[str, ...]:
    """What a copy on another site is flagged with."""
    return flags_between(page(earlier), page(later, **{"url": "https://mirror.example/a", **fields}), "S3")


ALTERED = {
    "percentage": (ARTICLE, [("12 %", "21 %")], ["12 → 21"]),
    "thousands": (ARTICLE, [("4,300", "43,000")], ["4300 → 43000"]),
    "money": (ARTICLE, [("$2.4 million", "$2.4 billion")], ["million → billion"]),
    "date": (ARTICLE, [("3 June 2026", "3 July 2025")], ["2026 → 2025", "June → July"]),
    "name": (ARTICLE, [("Alice Keller", "Carla Brandt")], ["Alice Keller → Carla Brandt"]),
    "company": (ARTICLE, [("Norden Cells", "Sudwerk")], ["Norden Cells → Sudwerk"]),
    "two": (ARTICLE, [("1,400", "14"), ("6,000", "600")], ["1400 → 14", "6000 → 600"]),
    "zh figure": (ARTICLE_ZH, [("4300", "3400")], ["4300 → 3400"]),
    "zh numeral": (ARTICLE_ZH, [("十二个", "二十一个")], ["十二 → 二十一"]),
    "zh date": (ARTICLE_ZH, [("六月三日", "七月三日")], ["六 → 七"]),
    "zh money": (ARTICLE_ZH, [("240万元", "420万元")], ["240 → 420"]),
    "zh name": (ARTICLE_ZH, [("张小明", "李大伟")], ["张小明 → 李大伟"]),
}


@pytest.mark.parametrize("case", ALTERED)
def test_an_altered_copy_is_told_with_what_differs(case: str) -> None:
    """Another number, amount, date or name in an otherwise equal text makes it an altered copy."""
    text, pairs, differs = ALTERED[case]
    assert flags(text, altered(text, *pairs)) == ("altered_copy:S3", *(f"differs:{found}" for found in differs))


@pytest.mark.parametrize("text", [ARTICLE, ARTICLE_ZH])
def test_a_faithful_copy_is_a_near_duplicate(text: str) -> None:
    """Another frame, other counts of readers, other line breaks and signs: nothing of it is an alteration."""
    assert flags(text, text) == ("near_duplicate:S3",)
    framed = f"Mirror News\n1,204 views\n{text}\nPosted 3 hours ago\n57 comments\n"
    assert flags(text, framed) == ("near_duplicate:S3",)
    wrapped = text.replace(" the ", "\nthe ").replace("4,300", "4300").replace("，", ",")
    assert flags(text, wrapped) == ("near_duplicate:S3",)
    assert flags(text, text[: len(text) * 2 // 3]) == ("near_duplicate:S3",)


def test_other_words_are_no_alteration() -> None:
    """A copy may say it in other words, with a number left out or a shorter form of a name."""
    shown = altered(
        ARTICLE, ("wanted to say", "was willing to say"), ("Ms Keller", "Keller"), ("1,400 households", "many")
    )
    assert flags(ARTICLE, shown) == ("near_duplicate:S3",)
    assert flags(ARTICLE_ZH, altered(ARTICLE_ZH, ("值得的冒险", "合理的选择"))) == ("near_duplicate:S3",)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (page(ARTICLE), page(OTHER_ARTICLE, "https://mirror.example/b")),
        (page(FRAME.format(body=ARTICLE)), page(FRAME.format(body=OTHER_ARTICLE), "https://courier.example/library")),
        (page(ARTICLE), page(altered(ARTICLE, ("12 %", "21 %")), "http://www.courier.example/may/#top")),
        (page(ARTICLE), page(altered(ARTICLE, ("12 %", "9 %")), "https://courier.example/m", kind="search_hit")),
        (
            page(ARTICLE, title="Harbour plant: May"),
            page(altered(ARTICLE, ("12 %", "9 %")), "https://courier.example/june", title="Harbour plant: June"),
        ),
        (page(ARTICLE * 3 + OTHER_ARTICLE * 4), page(ARTICLE, "https://mirror.example/b")),
        (page(""), page(ARTICLE, "https://mirror.example/b")),
    ],
    ids=["another text", "one frame", "one address", "its search hit", "one form", "an excerpt", "nothing"],
)
def test_what_is_no_copy_is_left_alone(earlier: Text, later: Text) -> None:
    """Pages of one frame or one form, the same page read again, a passage a search gave of it, an excerpt."""
    assert flags_between(earlier, later, "S1") == ()


def test_reports_made_from_one_form_are_no_copies() -> None:
    """Where every sentence says something else in the same words, each is a text of its own."""
    form = "In {0} the {1} plant made {2} megawatt hours, {3} percent {4} than in {5}, reported {6}. "
    one = "".join(form.format("May", "harbour", 40 + n, n, "more", "April", "Alice Keller") for n in range(8))
    other = "".join(form.format("June", "valley", 90 + n, n + 40, "less", "March", "Bob Marsh") for n in range(8))
    assert flags(one, other) == ()


def test_the_primary_is_the_older_then_the_one_the_other_names() -> None:
    """By the dates the sources give; else by who links to whom; else what was stored first."""
    changed = altered(ARTICLE, ("12 %", "21 %"))
    old, new = {"published": "2026-06-05"}, {"published": "2026-07-01T10:00:00Z"}
    mirror = "https://mirror.example/a"
    assert flags_between(page(ARTICLE, **old), page(changed, mirror, **new), "S3")[0] == "altered_copy:S3"
    assert flags_between(page(ARTICLE, **new), page(changed, mirror, **old), "S3")[0] == "primary_of:S3"
    credited = f"{ARTICLE}\nFirst published at https://mirror.example/a and taken over with thanks.\n"
    assert flags_between(page(credited), page(changed, mirror), "S3")[0] == "primary_of:S3"
    assert flags_between(page(credited, **old), page(changed, mirror, **new), "S3")[0] == "altered_copy:S3"
    assert flags_between(page(ARTICLE, published="of old"), page(ARTICLE, mirror), "S3") == ("near_duplicate:S3",)


def test_what_a_model_is_told_of_a_copy() -> None:
    """Which of the two to cite, without a word from outside."""
    shown = {
        ("altered_copy:S3", "differs:12 → 21"): "S9 is an altered copy of S3: cite S3.",
        ("near_duplicate:S3",): "S9 repeats S3: cite S3; together they are one source, not two.",
        ("primary_of:S3",): "S3 repeats S9: cite S9; together they are one source, not two.",
        ("primary_of:S3", "differs:12 → 21"): "S3 is an altered copy of S9: cite S9.",
        ("paywall",): "",
    }
    assert {flags: advice(source("S9", flags=flags)) for flags in shown} == shown


def test_a_reader_is_told_without_ids() -> None:
    """In a report's references the ids of other sources mean nothing."""
    found = ("sample", "paywall", "http_403", "altered_copy:S3", "differs:12 → 21", "primary_of:S1")
    assert plain_flags(found) == ["sample", "paywall", "http 403", "altered copy of another source"]
    assert plain_flags(("near_duplicate:S3",)) == ["repeats another source"]
    relation = relation_of(found)
    assert relation is not None
    assert (relation.kind, relation.other, relation.differs) == ("altered_copy", "S3", ("12 → 21",))


def test_a_copy_is_found_among_many() -> None:
    """By its sketch, whatever else is there; unlike texts are not even compared."""
    index = SketchIndex()
    for number in range(1, 200):
        index.add(f"S{number}", sketch(" ".join(f"word{number}x{place}" for place in range(120))))
    index.add("S200", sketch(ARTICLE))
    index.add("S201", sketch(ARTICLE_ZH))
    changed = altered(ARTICLE, ("12 %", "21 %"), ("4,300", "3,400"), ("Alice Keller", "Carla Brandt"))
    assert index.likely(sketch(changed)) == ["S200"]
    assert index.likely(sketch(altered(ARTICLE_ZH, ("十二", "二十一")))) == ["S201"]
    assert index.likely(sketch(OTHER_ARTICLE)) == []
    for number in range(300, 320):
        index.add(f"S{number}", sketch(ARTICLE))
    assert index.likely(sketch(ARTICLE)) == ["S200", "S300", "S301"][:MAX_LIKELY]


def test_short_texts_are_never_flagged() -> None:
    """A headline or a comment of a few words is the same in many places by chance."""
    few = " ".join(f"word{number}" for number in range(MIN_WORDS - 1))
    assert sketch(few) == ()
    assert len(sketch(f"{few} more")) == MIN_WORDS - 3
    index = SketchIndex()
    index.add("S1", sketch(few))
    assert index.likely(sketch(few)) == []


@pytest.mark.slow
def test_a_sketch_is_the_same_in_every_process() -> None:
    """A resumed run finds the pairs the first life found: nothing depends on the process's own hashes."""
    code = "import sys; from explorer.workspace.source_store import sketch; print(sketch(sys.stdin.read()))"
    done = subprocess.run(
        [sys.executable, "-c", code], input=ARTICLE_ZH, capture_output=True, text=True, check=True,
        env={"PYTHONHASHSEED": "7", "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.stdout.strip() == str(sketch(ARTICLE_ZH))


def test_numbers_are_told_with_what_they_count() -> None:
    """So that a change of a story's figures can be read."""
    found = changes_between("120 points, 33 comments, by ann", "340 points, 88 comments, by ann")
    assert [change.labelled for change in found] == ["points 120 → 340", "comments 33 → 88"]
    assert changes_between("It costs $5 today.", "It costs €5 today.") != ()
    assert changes_between("It was 1,200 in all.", "It was 1200 in all.") == ()
    assert changes_between("On 3 June 2026 it rained.", "It rained on 2026 June 3.") == ()
    assert changes_between("However, it rained.", "Still, it rained.") == ()


def test_sentences_are_cut_where_they_end() -> None:
    """Not in figures or addresses, not where a line is wrapped; in Chinese without a space."""
    assert pieces_of("It was 3.5 MW. See a.example/x for\nmore!\n- one\n他来了。她走了！好") == [
        "It was 3.5 MW.", "See a.example/x for more!", "- one", "他来了。", "她走了！", "好",
    ]  # fmt: skip


@pytest.mark.slow
def test_long_and_unlike_texts_are_told_apart_quickly() -> None:
    """Nothing is compared sentence by sentence when hardly any sentence is the same."""
    one = ". ".join(f"Sentence {n} says a thing of its own" for n in range(5_000))
    other = ". ".join(f"Line {n} has other words for it all" for n in range(5_000))

    async def timed() -> float:
        async with asyncio.timeout(5):
            return (await asyncio.to_thread(compare, one, other)).covered

    assert asyncio.run(timed()) < 0.1
