"""What the rule-driven client does with a folder, apart from whole runs."""

from explorer.offline.client import next_turn
from explorer.offline.question import QuestionKind, understand
from explorer.offline.text import sentences_of, unwrapped
from explorer.schema.messages import JsonObject, TaskData, UserText
from offline import simulated

FOLDER: JsonObject = {"corpus": "notes"}


def test_the_tool_alone_is_enough() -> None:
    """A searcher that has the tool searches the folder first; one that has not searches the web, whatever the task."""
    task = UserText(text="Search the web for the answer to the question.\n\nQuestion: What do the ropes cost?")
    tools = ("search_corpus", "read_document", "web_search", "write_file")
    calls = next_turn(simulated.request("searcher", [task], tools)).calls
    assert [(call.name, call.arguments) for call in calls] == [
        ("search_corpus", {"query": "What do the ropes cost?", "max_results": 8})
    ]
    calls = next_turn(simulated.request("searcher", [task], tools[2:])).calls
    assert [call.name for call in calls] == ["web_search"]


def test_the_settings_decide_where_an_answer_is_looked_for() -> None:
    """With a folder, only a question that names Hacker News goes there."""

    def kind(question: str, settings: JsonObject) -> QuestionKind:
        return understand(TaskData(words=question, settings=settings)).kind

    assert kind("What do the ropes cost?", FOLDER) is QuestionKind.FOLDER
    assert kind("What is the latest news today?", FOLDER) is QuestionKind.FOLDER
    assert kind("What is the latest news today?", {}) is QuestionKind.HACKER_NEWS
    assert kind("What is on Hacker News?", FOLDER) is QuestionKind.HACKER_NEWS
    assert kind("What do the ropes cost?", {"corpus": ""}) is QuestionKind.WEB


def test_wrapped_lines_become_sentences() -> None:
    """Lines broken at a width, as a PDF has them, give whole sentences; headings, lists and tables stay apart."""
    text = (
        "Introduction\nThe ropes of the harbour were measured by hand\nand by eye at high tide.\n"
        "- a first point that is long enough to be broken\n  and goes on\n- second\n| a | b |\n"
        "数据库的维护成本在五月下降了百分之六十一，这是\n两年来的最低值。"
    )
    assert sentences_of(unwrapped(text)) == [
        "Introduction",
        "The ropes of the harbour were measured by hand and by eye at high tide.",
        "a first point that is long enough to be broken and goes on",
        "second",
        "数据库的维护成本在五月下降了百分之六十一，这是两年来的最低值。",
    ]
