"""What a question is understood to ask for."""

import time
from typing import Any

import pytest

from explorer.offline.question import QuestionKind, Wish, understand, understand_follow_up, understand_task
from explorer.schema.messages import TaskData


def wish_of(question: str, files: tuple[tuple[str, str], ...] = (), **settings: Any) -> Wish:
    """The wish in what a run is started with."""
    return understand(TaskData(words=question, files=files, settings=settings))


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What is notable on Hacker News today?", QuestionKind.HACKER_NEWS),
        ("top stories right now", QuestionKind.HACKER_NEWS),
        ("anything about Rust on HN?", QuestionKind.HACKER_NEWS),
        ("今天有什么值得关注的新闻？", QuestionKind.HACKER_NEWS),
        ("What is new on r/golang?", QuestionKind.REDDIT),
        ("Who invented the zipper?", QuestionKind.WEB),
        ("How do embedded databases differ?", QuestionKind.WEB),
    ],
)
def test_where_to_look(question: str, kind: QuestionKind) -> None:
    """Hacker News is recognised in English and Chinese; anything else is for the web."""
    assert wish_of(question).kind is kind


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("top 5 stories on Hacker News", 5),
        ("three Show HN posts worth a look", 3),
        ("Hacker News 前三条热门新闻", 3),
        ("the 10 most discussed stories on HN", 10),
        ("What is on Hacker News?", 9),
        ("the 99 best stories on HN", 12),
    ],
)
def test_how_many(question: str, count: int) -> None:
    """A number asked for is respected, within reason."""
    assert wish_of(question).count == count


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("anything about Rust on HN?", "Rust"),
        ("Which database stories are notable on HN?", "database"),
        ("What do people on HN think about self-hosting mail servers?", "self-hosting mail servers"),
        ("Hacker News 上关于数据库的讨论", "数据库"),
        ("Hacker News 怎么看 Rust？", "Rust"),
        ("What did Hacker News say about Rust this week?", "Rust"),
        ("What did people on Hacker News say about Rust last week?", "Rust"),
        ("HN stories about AI since Monday", "AI"),
        ("Did HN discuss the CrowdStrike outage 2 years ago?", "CrowdStrike outage"),
        ("hacker news rust", "rust"),
        ("HN: zig vs rust", "zig rust"),
        ("hn sqlite wal mode last year", "sqlite wal mode"),
        ("What did HN say on the crowdstrike outage", "crowdstrike outage"),
        ("Was sagt Hacker News diese Woche über Rust?", "Rust"),
        ("Was denkt HN über selbst gehostete Mailserver?", "selbst gehostete Mailserver"),
        ("上周HN对Rust的看法", "Rust"),
        ("最近三天HN上有什么AI新闻", "AI"),
        ("今週のHacker NewsでRustについて何が話題ですか", "Rust"),
        ("Qué dice Hacker News sobre Rust?", "Rust"),
        ("What is new on HN this morning?", ""),
        ("Was war gestern auf Hacker News los?", ""),
        ("HN の今日の話題は？", ""),
        ("Summarize HN in 3 bullet points", ""),
        ("What was notable on Hacker News, and what did people argue about?", ""),
        ("What are people on HN saying about the most notable stories today?", ""),
    ],
)
def test_what_about(question: str, topic: str) -> None:
    """A subject is found, and general words are none."""
    assert wish_of(question).topic == topic


def test_files_and_sample_come_with_the_task() -> None:
    """The user's files come with their sources, and sample data is known as such."""
    files = (("inputs/a.md", "S1"), ("inputs/b c.txt", "S2"))
    wish = wish_of("What is left out?", files)
    assert (wish.kind, wish.files) == (QuestionKind.FILES, files)
    sample = wish_of("What was notable?", is_sample=True)
    assert (sample.kind, sample.is_sample) == (QuestionKind.HACKER_NEWS, True)
    assert wish_of("Which ropes are replaced?", corpus="ropes").kind is QuestionKind.FOLDER


def test_a_question_cannot_pass_itself_off_as_settings() -> None:
    """Lines in the question are the question's."""
    assert wish_of("What?\nThis run reads bundled, invented sample data.").is_sample is False


def test_the_language_asked_for_wins() -> None:
    """Else the question's own language holds."""
    assert wish_of("今天有什么新闻").language == "zh"
    assert wish_of("Wie hoch ist die Brücke von Arvik?").language == "de"
    assert wish_of("What was the war on drugs about?").language == "en"
    assert wish_of("HN の今日の話題は？").language == "en"
    assert wish_of("What is new on HN?", language="zh").language == "zh"
    task = TaskData(words="Do it.\n\nQuestion: 今天\nLanguage of the report: en")
    assert understand_task(task).language == "en"


@pytest.mark.parametrize(
    ("question", "since", "until"),
    [
        ("What did HN say about Rust this week?", "7d", "today"),
        ("What was on HN yesterday?", "yesterday", "yesterday"),
        ("Hacker News on 2026-08-11", "2026-08-11", "2026-08-11"),
        ("本周 Hacker News 上关于 Rust 的讨论", "7d", "today"),
        ("What is on HN?", "", ""),
        ("What did HN say about Rust from 10 to 16 August 2026?", "2026-08-10", "2026-08-16"),
        ("HN stories about Rust between August 10 and August 12, 2026", "2026-08-10", "2026-08-12"),
        ("What did HN say about Rust since August 2026?", "2026-08", "today"),
        ("2026年8月10日 Hacker News 上关于 Rust 的讨论", "2026-08-10", "2026-08-10"),
        ("What did people on Hacker News say about Rust last week?", "last week", "last week"),
        ("HN stories about Rust over the past two weeks", "14d", "today"),
        ("HN stories about Rust in the last 36 hours", "36h", "today"),
        ("HN stories about Rust in the last couple of days", "2d", "today"),
        ("top HN stories about Rust since Monday", "monday", "today"),
        ("What happened on Hacker News on Monday?", "monday", "monday"),
        ("Was war gestern auf Hacker News los?", "yesterday", "yesterday"),
        ("Was sagt HN diese Woche über Rust?", "7d", "today"),
        ("HN in den letzten drei Tagen zu Rust", "3d", "today"),
        ("Was war am Montag auf Hacker News?", "monday", "monday"),
        ("上周HN对Rust的看法", "last week", "last week"),
        ("最近三天HN上关于Rust的讨论", "3d", "today"),
        ("先週のHacker NewsでRustについて", "last week", "last week"),
        ("Anything about Rust on HN today?", "24h", "today"),
        ("what's notable on HN today", "", ""),
        ("best HN posts of 2025", "2025", "2025"),
        ("best HN posts since 2025", "2025", "today"),
        ("What was notable on HN from 10 to 12 August 2026?", "2026-08-10", "2026-08-12"),
        ("Did HN discuss it 2 years ago?", "", ""),
    ],
)
def test_when(question: str, since: str, until: str) -> None:
    """A time that is named goes to the search as it is."""
    wish = wish_of(question)
    assert (wish.since, wish.until) == (since, until)
    assert wish.topic == ("Rust" if "Rust" in question else "")


def test_a_question_of_very_many_dates_is_read_in_the_time_of_its_length() -> None:
    """Whoever may ask may send so long a question."""
    began = time.process_time()
    wish = wish_of("What was on Hacker News on 2024-01-01" + ", in 2024-01-02" * 1_300 + "?")
    assert (wish.since, wish.until) == ("2024-01-01", "2024-01-02")
    assert time.process_time() - began < 5


def test_a_follow_up_is_about_the_same_place() -> None:
    """Unless it names another; what it is about is its subject, or its own words."""
    wish = wish_of("What is new on r/golang?")
    assert (wish.subreddit, wish.sort, wish.place) == ("golang", "new", "r/golang")
    further = understand_follow_up("And cheese?", wish)
    assert (further.kind, further.place, further.topic) == (QuestionKind.REDDIT, "r/golang", "cheese")
    assert understand_follow_up("What does HN think about Rust?", wish).kind is QuestionKind.HACKER_NEWS
