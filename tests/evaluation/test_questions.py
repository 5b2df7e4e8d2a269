"""Sets of questions are read in the forms in which they are published, and a bad line is named."""

import json
from pathlib import Path

import pytest

from explorer.evaluation.questions import SAMPLE, file_names, read_questions, write_documents
from explorer.schema.errors import ConfigError, NotFoundError


def written(folder: Path, *lines: object) -> str:
    """A set as a file."""
    path = folder / "set.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_each_published_form_is_read(tmp_path: Path) -> None:
    """Our own, HotpotQA's in both of its shapes, and that of research prompts without answers."""
    own = {"id": "a", "question": "Q?", "answers": ["1", "one"], "documents": [{"title": "T", "text": "1."}]}
    hotpot: dict[str, object] = {"id": "b", "question": "Q?", "answer": "x", "context": [["T", ["A. ", "B."]]]}
    hotpot["supporting_facts"] = [["T", 0], ["T", 1]]
    objects = {"id": "c", "question": "Q?", "answer": "x", "context": [{"title": "T", "sentences": ["A.", " B."]}]}
    first, second, third, fourth = read_questions(written(tmp_path, own, hotpot, objects, {"id": 4, "prompt": "Look."}))
    assert (first.answers, first.documents[0].text) == (("1", "one"), "1.")
    assert (second.answers, second.documents[0].text, second.supporting) == (("x",), "A. B.", ("T",))
    assert third.documents[0].text == "A. B."
    assert (fourth.id, fourth.question, fourth.answers, fourth.documents) == ("4", "Look.", (), ())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "has no questions"),
        (b"{}\n", "line 1 is not a question: it has neither"),
        (b'{"question": "Q?"}\nnot json\n', "line 2 is not a question"),
        (b'{"question": "Q?", "documents": [{"text": "x"}]}\n', "line 1 is not a question: 'title'"),
        (b'{"question": "Q?", "context": [5]}\n', "line 1 is not a question"),
        (b"[1]\n", "line 1 is not a question"),
        (b'{"id": 1, "question": "Q?"}\n{"id": "1", "question": "R?"}\n', "two questions have the id '1'"),
        (b"\xff\xfe", "is not text in UTF-8"),
    ],
)
def test_a_set_that_is_none_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    """With the file, the line, and an example of a line."""
    path = tmp_path / "set.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"set\.jsonl") as raised:
        read_questions(str(path))
    assert words in raised.value.message


def test_a_set_that_is_not_there_is_named() -> None:
    """And the one that always is."""
    with pytest.raises(NotFoundError) as raised:
        read_questions("nowhere.jsonl")
    assert SAMPLE in raised.value.hint


def test_ids_and_titles_lead_nowhere(tmp_path: Path) -> None:
    """A set is a stranger's file: its ids and titles become names inside the folder."""
    titles = ["../../etc/passwd", "..", "a/b\x00c", "\u202egnp.exe", "T" * 400]
    documents = [{"title": title, "text": "x"} for title in titles]
    (question,) = read_questions(written(tmp_path, {"id": "../../x", "question": "Q?", "documents": documents}))
    assert question.id.startswith("q-")
    assert "/" not in question.id
    folder = tmp_path / "documents"
    write_documents(question, folder)
    assert {path.parent for path in folder.rglob("*")} == {folder}
    assert sorted(path.name for path in folder.iterdir()) == sorted(file_names(question).values())
    assert len(list(folder.iterdir())) == len(titles)


def test_the_sample_is_answered_by_its_documents() -> None:
    """Each supporting title is there; each answer that is no yes or no is in one of them."""
    for question in read_questions(SAMPLE):
        texts = {one.title: one.text for one in question.documents}
        assert set(question.supporting) <= set(texts)
        assert question.answers == ("no",) or any(
            answer in texts[title] for answer in question.answers for title in texts
        )
