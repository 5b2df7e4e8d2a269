"""The rules of the check, one by one."""

import asyncio
import gc
import threading

import pytest

from explorer.reports.verify.check import CitationCheck, check
from explorer.reports.verify.claims import Claim, Verdict, Verification, words_for_writer
from explorer.reports.verify.indexed_source import IndexedSource
from explorer.workspace.threads import StopWorkError
from reports.verify.shelf import source

TEXT = "The mill ground 4,200 tons in 2024.\n\n“Flour is patience,” says Ida Brand, who runs it with 12 people."


def _check(draft: str, text: str = TEXT, **facts: str) -> Verification:
    return check(draft, {"S1": source("S1", text, **facts)}, {"S1": text}.get)


def _one(draft: str, text: str = TEXT, **facts: str) -> Claim:
    (claim,) = _check(draft, text, **facts).claims
    return claim


def _prepared() -> set[int]:
    gc.collect()
    return {id(one) for one in gc.get_objects() if type(one) is IndexedSource}


@pytest.mark.slow
def test_a_source_is_prepared_once_for_all_checks_of_a_run() -> None:
    """A draft is checked several times; with the run, what was prepared is gone from the process."""
    before = _prepared()
    run = CitationCheck({"S1": source("S1", TEXT)}, lambda _id: str(TEXT.encode(), "utf-8"))
    run.check("It has 12 people [S1].")
    first = _prepared() - before
    assert len(first) == 1
    run.check("It ground 4,200 tons [S1].")
    assert _prepared() - before == first
    del run
    assert _prepared() - before == set()


async def test_a_check_in_a_thread_leaves_the_loop_to_others() -> None:
    """The stored text comes once the loop has worked; a source that was stored meanwhile is none of this draft's."""
    has_worked, sources = threading.Event(), {"S1": source("S1", TEXT)}

    def text_of(_identifier: str) -> str | None:
        return TEXT if has_worked.wait(30) else None

    def store() -> None:
        sources["S2"] = source("S2", TEXT)
        has_worked.set()

    async with asyncio.TaskGroup() as tasks:
        checked = tasks.create_task(
            CitationCheck(sources, text_of).check_in_thread("It ground 4,200 tons [S1]. So? [S2]")
        )
        tasks.create_task(asyncio.to_thread(asyncio.get_running_loop().call_soon_threadsafe, store))
    assert [str(claim.verdict) for claim in checked.result().claims] == ["supported", "source_missing"]


async def test_a_cancelled_check_reads_no_further_and_another_one_may_follow() -> None:
    """It stops before the next sentence; what is ready by then serves the next check."""
    loop, is_read, is_cancelled = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    read: list[str] = []

    def text_of(identifier: str) -> str:
        read.append(identifier)
        loop.call_soon_threadsafe(is_read.set)
        assert is_cancelled.wait(30)
        return TEXT

    citations = CitationCheck({name: source(name, TEXT) for name in ("S1", "S2")}, text_of)
    draft = "It has 12 people [S1]. It ground 4,200 tons [S2]."
    checked = asyncio.ensure_future(citations.check_in_thread(draft))
    await is_read.wait()
    checked.cancel()
    loop.call_soon(is_cancelled.set)
    with pytest.raises(asyncio.CancelledError):
        await checked
    assert read == ["S1"]
    assert (await citations.check_in_thread(draft)).verdicts[Verdict.SUPPORTED] == 2


@pytest.mark.parametrize(
    "line", ["The mill ground {0} tons.\n", "It opened on {0} May 2024.\n", "It runs a K{0} press.\n"]
)
def test_a_long_page_is_left_while_it_is_read(line: str) -> None:
    """A page of figures takes seconds: a check that is stopped does not read it to its end."""
    asked: list[int] = []

    def stop_later() -> None:
        asked.append(len(asked))
        if len(asked) > 10:
            raise StopWorkError

    text = "".join(line.format(day) for day in range(1, 30))
    with pytest.raises(StopWorkError):
        assert IndexedSource(source("S1", text), text, stop_later).quantities
    assert len(asked) == 11


def test_only_the_cited_sentence_is_a_claim() -> None:
    """A citation covers its own sentence, wherever it stands; others with figures are listed as uncited."""
    found = _check("It ground 4,200 tons. It has 12 people [S1]. Nobody knows why. It cost $5.")
    assert [(claim.sentence, claim.verdict) for claim in found.claims] == [("It has 12 people [S1].", "supported")]
    assert [claim.sentence for claim in found.uncited] == ["It ground 4,200 tons.", "It cost $5."]
    assert {claim.verdict for claim in found.uncited} == {Verdict.UNCHECKED}


@pytest.mark.parametrize(
    "draft",
    [
        "It ground 4,200 tons. [S1] More follows.",
        "It ground 4,200 tons [S1]. More follows.",
        "It ground 4,200 tons.[S1] More follows.",
        "[S1] says that it ground 4,200 tons. More follows.",
        "- It ground 4,200 tons [S1]\n- More follows",
        "| 4,200 tons | [S1] |\n| more | |",
        "1. It ground\n   4,200 tons [S1]",
    ],
)
def test_where_a_citation_may_stand(draft: str) -> None:
    """Behind the full stop, before it, first, in an item, in a row, over a line's end."""
    assert [claim.verdict for claim in _check(draft).claims] == [Verdict.SUPPORTED]
    wrong = draft.replace("4,200", "4,300")
    assert [claim.verdict for claim in _check(wrong).claims] == [Verdict.NOT_FOUND]


@pytest.mark.parametrize(
    "draft",
    [
        "# It ground 99 tons",
        "```\nIt ground 99 tons [S1]\n```",
        "The variable `row[S1]` is not cited",
        "---\ntitle: 99 tons [S1]\n---\n",
        "## References\n\n1. 99 tons [S1]\n",
        "## 参考来源\n\n- 99 吨 [S1]\n",
        "## Sources\n\n- The mill, with 99 tons of flour a year [S1]\n",
        "## Sources\n\n- Why the mill was sold for 99 dollars [S1]\n",
        "## Sources\n\n- The mill was sold (Mill News, 4 May 1999) [S1]\n",
        "## Sources\n\n- The mill was sold \u2013 Mill News, 4 May 1999 [S1]\n",
        "## Sources\n\n- Holm, I.: The mill is 99 years old [S1]\n",
        "## Sources\n\n- The mill is sold, accessed 4 May 1999 [S1]\n",
        "## Sources\n\n- *The mill is 99 years old*, Mill News [S1]\n",
        "## Sources\n\n- The mill was sold in 1999, https://mill.example/ [S1]\n",
        "Title with 99 tons\n=====\n",
        '[mill]: https://mill.example "99 tons"\n',
        "[^1]: The 99 tons of the mill\n",
    ],
)
def test_what_claims_nothing(draft: str) -> None:
    """Headings without a citation, code, frontmatter, definitions and lists of references are passed over."""
    assert _check(draft).claims == ()


@pytest.mark.parametrize(
    "draft",
    [
        "``` x ```\nIt ground 99 tons [S1].\n",
        "```a`b\nIt ground 99 tons [S1].\n",
        "A `<!--` b.\n\nIt ground 99 tons [S1].\n\nAnd `-->` c.",
        "A \\<!-- b.\n\nIt ground 99 tons [S1].\n\n--> c.",
        "# It ground 99 tons [S1]\nMore follows.",
        "It ground 99 tons [S1]\n-----\n",
        "[a]: It ground 99 tons [S1]",
        "[^1]: It ground 99 tons [S1]",
        "## Sources\n\n- [S1] Mill. 99 rooms.\n- The mill, https://mill.example/99. [S1]\n\nIt ground 99 tons [S1].",
        "## 参考来源\n\n- 磨坊磨了 99 吨 [S1]。\n",
        "## Sources\n\n- The mill has ground 99 tons [S1]\n",
        "## References\n\n1. About 99 tons were ground at the mill [S1]\n",
        "## Quellen\n\n- In der Mühle wurden 99 Tonnen gemahlen [S1]\n",
    ],
)
def test_what_a_reader_sees_is_checked(draft: str) -> None:
    """What only looks like code, a comment or a definition is shown, and a heading with a citation claims something."""
    assert [(claim.verdict, claim.ids) for claim in _check(draft).claims] == [(Verdict.NOT_FOUND, ("S1",))]


@pytest.mark.parametrize(
    "quote",
    ["Ida … accept … gifts", "Nobody … accept gifts from the town", "We [never] accept gifts", "人 … 我 … 你们都好"],
)
def test_a_quote_that_its_writer_put_together_is_not_found(quote: str) -> None:
    """Single words with ellipses and a negation in brackets make what the source does not say."""
    text = "Nobody came. Ida said: we accept gifts from the town. Bread is sold. 人们都说我和你们都好。"
    assert _one(f"It says “{quote}” [S1].", text).verdict is not Verdict.SUPPORTED
    whole = "Ida said … accept gifts from [the] town", "we [all] accept gifts", "We accept … Bread is sold"
    assert all(_one(f"It says “{one}” [S1].", text).verdict is Verdict.SUPPORTED for one in whole)


def test_lines_are_those_of_the_draft() -> None:
    """A claim's line is where its sentence begins, with frontmatter, code and tables before it."""
    head = "---\na: 1\n---\n\n# T\n\n```\nx\n```\n"
    draft = head + "First line\nof two. It ground 4,200 tons\nin 2024 [S1].\n\n> “Flour\n> is patience” [S1]\n"
    assert [claim.line for claim in _check(draft).claims] == [11, 14]


def test_sentences_do_not_end_in_quotes_and_abbreviations() -> None:
    """Neither `e.g.`, `U.S.` and decimals nor the full stops of a quote end a sentence."""
    text = "He said: “It broke. We mended it.” The U.S. mill, e.g. its 3.5 wheels, cost 5 dollars at Acme Inc. in Rye."
    assert _one("“It broke. We mended it.” [S1]", text).verdict is Verdict.SUPPORTED
    found = _check("The U.S. mill, e.g. its 3.5 wheels, cost 5 dollars at Acme Inc. in Rye [S1].", text)
    assert len(found.claims) == 1
    assert len(found.claims[0].findings) == 2


def test_any_of_the_cited_sources_will_do() -> None:
    """Of several ids, each finding names the one that has it."""
    texts = {"S1": "It weighs 40 kg.", "S2": "It cost $9."}
    sources = {name: source(name, text) for name, text in texts.items()}
    (claim,) = check("It weighs 40 kg and cost $9 [S1, S2].", sources, texts.get).claims
    assert claim.verdict is Verdict.SUPPORTED
    assert [finding.source for finding in claim.findings] == ["S1", "S2"]


def test_missing_and_damaged_texts() -> None:
    """An id without a source, a text that is gone and one that was changed are three reasons, and one verdict."""
    sources = {name: source(name, "It weighs 40 kg.") for name in ("S1", "S2", "S3")}
    texts = {"S1": "It weighs 40 kg.", "S3": "It weighs 50 kg."}
    draft = "It weighs 40 kg [S2].\n\nIt weighs 50 kg [S3].\n\nIt weighs 40 kg [S9].\n\nIt weighs 40 kg [S1][S9]."
    claims = check(draft, sources, texts.get).claims
    assert [claim.verdict for claim in claims[:3]] == [Verdict.SOURCE_MISSING] * 3
    assert "missing" in claims[0].reason
    assert "sha256" in claims[1].reason
    assert "not a source" in claims[2].reason
    assert claims[3].verdict is Verdict.SUPPORTED
    assert "S9" in claims[3].reason


def test_a_missing_source_may_have_what_the_others_lack() -> None:
    """What is not in the texts that are there could be in the one that is not: that is no `not found`."""
    sources = {"S1": source("S1", "It weighs 40 kg.")}
    (claim,) = check("It weighs 77 kg [S1][S9].", sources, {"S1": "It weighs 40 kg."}.get).claims
    assert claim.verdict is Verdict.SOURCE_MISSING
    assert "77 kg" in claim.reason


def test_the_ledger_speaks_too() -> None:
    """Title, author and date of publication are the source's own words."""
    facts = {"title": "Mill 21 reopens", "author": "Ida Brand", "published": "2024-05-06"}
    assert (
        _one("“Mill 21 reopens”, wrote Ida Brand on 6 May 2024 [S1].", "Nothing more.", **facts).verdict == "supported"
    )


def test_the_same_address_speaks_too() -> None:
    """What another stored text of the same address has is found, and the reason says where."""
    texts = {"S1": "A thread.\n- ida: fine", "S2": "A thread\n52 points, 31 comments, by ida"}
    sources = {name: source(name, text, url="https://news.example/item?id=7") for name, text in texts.items()}
    (claim,) = check("The thread has 31 comments [S1].", sources, texts.get).claims
    assert claim.verdict is Verdict.SUPPORTED
    assert claim.findings[0].source == "S2"
    assert "same address" in claim.findings[0].reason


def test_a_clause_behind_a_cited_clause_is_not_covered() -> None:
    """After `[S1];` a part of its own begins: what it says is not held against the citation."""
    claim = _one("It ground 4,200 tons [S1]; rivals ground 9,999 tons.")
    assert claim.verdict is Verdict.SUPPORTED
    assert [finding.verdict for finding in claim.findings] == [Verdict.SUPPORTED, Verdict.UNCHECKED]
    assert _one("It ground 4,200 tons [S1], rivals 9,999 tons.").verdict is Verdict.NOT_FOUND


def test_a_blockquote_is_a_quote() -> None:
    """Announced with a citation or ending with one, its words are looked up; a remark in one is not a quote."""
    text = "The wheel turns when the river wants it to and not before."
    assert _one("> The wheel turns when the river wants it to\n> and not before. [S1]", text).verdict == "supported"
    assert _one("> The wheel turns when the miller wants it to. [S1]", text).verdict == "not_found"
    found = _check("Ida writes [S1]:\n\n> The wheel turns when the miller wants it to.", text)
    assert [claim.verdict for claim in found.claims] == ["unchecked", "not_found"]
    assert _one("> **Note:** nothing here is quoted at all [S1]", text).verdict == "unchecked"


@pytest.mark.parametrize(
    ("quote", "verdict"),
    [
        ("“The wheel turns … and not before”", "supported"),
        ("“[The] wheel turns [...] not before.”", "supported"),
        ("'the wheel turns when the river wants it to'", "supported"),
        ("\u2018the wheel turns when the river wants it to\u2019", "supported"),
        ("«the wheel turns when the river»", "supported"),
        ("„the wheel turns when the river“", "supported"),
        ("“and not before … the wheel turns”", "not_found"),
        ("“The wheel never turns when the river wants it to”", "not_found"),
        ("“wheel turner” and so on", "unchecked"),
    ],
)
def test_quotes(quote: str, verdict: str) -> None:
    """Every kind of marks, with parts left out; words in another order or put in are found out."""
    assert (
        _one(f"It says {quote} [S1].", "The wheel turns when the river wants it to, and not before.").verdict == verdict
    )


def test_broken_lines_and_notes_do_not_break_quotes() -> None:
    """Hyphens at a line's end, footnote marks and links in a source are no part of its words."""
    text = "The old mill[3] was re-\nbuilt by the [river guild](https://guild.example/a) in open-\nsided style."
    assert _one("“the old mill was rebuilt by the river guild in open-sided style” [S1]", text).verdict == "supported"


def test_words_for_the_writer() -> None:
    """The writer is told line, sentence, what was not found where, and what the source has instead."""
    found = _check(
        "Fine.\n\nIt ground 4,200 kg in 2024 [S1].\n\nIda says “Flour is patience and more” [S1].\n\nGone [S7]."
    )
    shown = words_for_writer(found)
    assert "- line 3: It ground 4,200 kg in 2024 [S1]." in shown
    assert "“4,200 kg” is not in S1; S1 has “4,200 tons”" in shown
    assert "continues otherwise after “flour is patience”" in shown
    assert "S7 is not a source of this run" in shown
    assert words_for_writer(_check("It ground 4,200 tons [S1].")) == ""


def test_rates_and_ages_of_posts() -> None:
    """Points an hour and ages are worked out when a post is read: they must fit, and are never called supported."""
    text = "A story\n500 points, 40 comments, by ida, 2026-08-10T10:00:00Z"
    facts = {"kind": "story", "published": "2026-08-10T10:00:00Z", "retrieved": "2026-08-10T20:00:00Z"}
    good = _one("It has 500 points, 50.0 an hour, 10.0 hours after posting [S1].", text, **facts)
    assert [str(finding.verdict) for finding in good.findings] == ["supported", "unchecked", "unchecked"]
    assert good.verdict == "supported"
    assert (
        _one("It has 500 points, 90.0 points an hour, 10.0 hours after posting [S1].", text, **facts).verdict
        == "not_found"
    )
    assert _one("It was posted 30 hours ago [S1].", text, **facts).verdict == "not_found"
    assert _one("It gains 20.0 points an hour [S1].", text, **facts).verdict == "not_found"
