"""Sets of questions: a file with one JSON object a line, in our own form or in that of a public benchmark."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from explorer.schema.errors import ConfigError, NotFoundError
from explorer.schema.messages import Frozen
from explorer.text.sanitize import single_line, visible

SAMPLE = "sample"
"""The name of the set that comes with explorer."""
MAX_SET_BYTES = 200_000_000
MAX_NAME_CHARS = 60
PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}")
FORM = (
    'a line is, for example: {"id": "q1", "question": "...", "answer": "...", "documents": [{"title": "", "text": ""}]}'
)


class EvalDocument(Frozen):
    """A document of the folder in which a question's answer is."""

    title: str
    text: str


class EvalQuestion(Frozen):
    """A question, its accepted answers, and the documents in which they are."""

    id: str
    """Unique in the set; also the name of the question's folder."""
    question: str
    answers: tuple[str, ...] = ()
    """Accepted answers; empty where nobody knows, as in a set of research questions."""
    documents: tuple[EvalDocument, ...] = ()
    """Its own folder of documents; empty: the run uses the network."""
    supporting: tuple[str, ...] = ()
    """Titles of the documents that the answer follows from; empty where that is not known."""


def read_set(name: str, limit: int = 0) -> tuple[EvalQuestion, ...]:
    """Read a set of questions.

    Own form, HotpotQA's (`context`, `supporting_facts`) and DeepResearch Bench's (`prompt`) are known by their keys.

    Args:
        name: `sample`, or the path of a file with one JSON object a line.
        limit: The number of questions to take from the beginning; 0: all.

    Returns:
        At least one question, in the file's order.

    Raises:
        NotFoundError: There is no such file.
        ConfigError: A line is not a question, or two have the same id.
    """
    path = Path(__file__).with_name("sample.jsonl") if name == SAMPLE else Path(name).expanduser()
    if not path.is_file():
        raise NotFoundError(f"there is no set of questions {name!r}", hint=f"give a file, or `{SAMPLE}`")
    if path.stat().st_size > MAX_SET_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_SET_BYTES // 1_000_000} MB", hint="divide the set")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not text in UTF-8", hint=FORM) from error
    questions = tuple(_questions(path, lines))
    _check_ids(path, questions)
    if not questions:
        raise ConfigError(f"{path} has no questions", hint=FORM)
    return questions[:limit] if limit else questions


def _questions(path: Path, lines: Sequence[str]) -> Iterator[EvalQuestion]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _question(json.loads(line), number)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            why = single_line(str(error), 160)
            raise ConfigError(f"{path}, line {number} is not a question: {why}", hint=FORM) from error


def _question(line: Mapping[str, Any], number: int) -> EvalQuestion:
    words = str(line.get("question") or line.get("prompt") or "").strip()
    if not words:
        raise ValueError("it has neither `question` nor `prompt`")
    answers = line.get("answers") or line.get("answer") or ()
    return EvalQuestion(
        id=_identifier(str(line.get("id", number))),
        question=words,
        answers=(answers,) if isinstance(answers, str) else tuple(map(str, answers)),
        documents=tuple(_document(one) for one in line.get("documents") or line.get("context") or ()),
        supporting=tuple(_supporting(line)),
    )


def _document(one: Any) -> EvalDocument:  # noqa: ANN401 - a value of a stranger's JSON
    if isinstance(one, dict):
        fields = cast("dict[str, Any]", one)
        title, text = str(fields["title"]), fields.get("text") or "".join(map(str, fields.get("sentences", ())))
    else:
        title, text = str(one[0]), "".join(map(str, one[1]))
    return EvalDocument(title=single_line(title), text=visible(str(text)))


def _supporting(line: Mapping[str, Any]) -> Iterator[str]:
    """Yield each title once."""
    named = line.get("supporting") or [fact[0] for fact in line.get("supporting_facts") or ()]
    yield from dict.fromkeys(single_line(str(title)) for title in named)


def _identifier(given: str) -> str:
    """Return an id as a name of a folder."""
    return given if PLAIN_ID.fullmatch(given) else f"q-{hashlib.sha256(given.encode()).hexdigest()[:12]}"


def _check_ids(path: Path, questions: Sequence[EvalQuestion]) -> None:
    seen: set[str] = set()
    for one in questions:
        if one.id in seen:
            raise ConfigError(f"{path}: two questions have the id {one.id!r}", hint="give each its own")
        seen.add(one.id)


def file_names(question: EvalQuestion) -> dict[str, str]:
    """Return the file name of each of a question's documents, by title; those of the same title share the last one."""
    return {one.title: _file_name(number, one.title) for number, one in enumerate(question.documents, start=1)}


def _file_name(number: int, title: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:MAX_NAME_CHARS].strip("-")
    return f"{number:02}-{words or 'document'}.md"


def write_documents(question: EvalQuestion, folder: Path) -> None:
    """Write a question's documents as files; those that are there already stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, one in enumerate(question.documents, start=1):
        path = folder / _file_name(number, one.title)
        if not path.exists():
            path.write_text(f"# {one.title}\n\n{one.text}\n", encoding="utf-8")
