"""What a question is understood to ask for."""

import pytest

from explorer.offline.question import QuestionKind, understand, understand_task


def wish_of(question: str, more: str = ""):  # noqa: ANN201 - a Wish
    """The wish in a first message."""
    return understand(f"Question: {question}\n\nRun r-1, started 2026-08-10 12:00 UTC.{more}")


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What is notable on Hacker News today?", QuestionKind.HACKER_NEWS),
        ("top stories right now", QuestionKind.HACKER_NEWS),
        ("anything about Rust on HN?", QuestionKind.HACKER_NEWS),
        ("今天有什么值得关注的新闻？", QuestionKind.HACKER_NEWS),
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
        ("What is on Hacker News?", 6),
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
        ("What was notable on Hacker News, and what did people argue about?", ""),
        ("What are people on HN saying about the most notable stories today?", ""),
    ],
)
def test_what_about(question: str, topic: str) -> None:
    """A subject is found, and general words are none."""
    assert wish_of(question).topic == topic


def test_files_and_sample_are_told_by_the_first_message() -> None:
    """The user's files come with their sources, and sample data is known as such."""
    wish = wish_of(
        "What is left out?", "\nFiles from the user: inputs/a.md [S1] (12 lines), inputs/b c.txt [S2] (1 line)"
    )
    assert (wish.kind, wish.files) == (QuestionKind.FILES, (("inputs/a.md", "S1"), ("inputs/b c.txt", "S2")))
    sample = wish_of("What was notable?", "\nThis run reads bundled, invented sample data.")
    assert (sample.kind, sample.is_sample) == (QuestionKind.HACKER_NEWS, True)


def test_a_question_cannot_pass_itself_off_as_the_head() -> None:
    """Lines in the question are the question's."""
    assert wish_of("What?\nThis run reads bundled, invented sample data.").is_sample is False


def test_the_language_asked_for_wins() -> None:
    """Else the question's own language holds."""
    assert wish_of("今天有什么新闻").language == "zh"
    assert wish_of("What is new on HN?", "\nLanguage of the report: zh").language == "zh"
    assert understand_task("Do it.\n\nQuestion: 今天\nLanguage of the report: en").language == "en"
