"""Sets of questions: a file with one JSON object a line, in our own form or in that of a public benchmark."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, cast

from explorer.schema.errors import ConfigError, NotFoundError
from explorer.schema.messages import Frozen
from explorer.text.sanitize import single_line, visible

T = TypeVar("T")
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


class Criterion(Frozen):
    """What a report should do."""

    part: str
    """The quality that it belongs to, such as `insight`."""
    text: str
    weight: float = 1.0
    """Its share of the whole grade, in any unit."""


class Rubric(Frozen):
    """How a grader judges reports on a question."""

    criteria: tuple[Criterion, ...]
    reference: str = ""
    """A report to compare with, criterion by criterion; empty: a criterion is met or not."""
    blocked: str = ""
    """The publication that the criteria come from, which a report must not rest on."""


class NewsStory(Frozen):
    """A story of a recorded day."""

    id: int
    title: str
    url: str
    """Empty for a story that is its own text."""
    points: int
    comments: int
    """Their number; the comments themselves are not recorded."""
    by: str
    time: datetime
    text: str = ""
    article: str = ""
    """The text of its page; empty where that was not recorded."""


class NewsDay(Frozen):
    """A recorded day of Hacker News."""

    date: str
    stories: tuple[NewsStory, ...]


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
    rubric: Rubric | None = None
    """Criteria for a grader; None where there are none."""
    day: NewsDay | None = None
    """The recorded day that the run reads in place of Hacker News; None: the run uses the network."""


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
    return checked_set(path, read_lines(path, _question), limit)


def checked_set(path: Path, questions: Iterable[EvalQuestion], limit: int) -> tuple[EvalQuestion, ...]:
    """Return the first questions of a set.

    Raises:
        ConfigError: There is none, or two have the same id.
    """
    found = tuple(questions)
    _check_ids(path, found)
    if not found:
        raise ConfigError(f"{path} has no questions", hint=FORM)
    return found[:limit] if limit else found


def read_lines(
    path: Path, read: Callable[[Mapping[str, Any], int], T], kind: str = "a question", form: str = FORM
) -> Iterator[T]:
    """Yield what each line of a file is.

    Args:
        path: The file.
        read: Makes a value of a line's JSON object and its number.
        kind: What a line is, for messages.
        form: A line as it should be, for messages.

    Raises:
        ConfigError: The file is no text, or a line is not what it should be.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not text in UTF-8", hint=form) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield read(json.loads(line), number)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            why = single_line(str(error), 160)
            raise ConfigError(f"{path}, line {number} is not {kind}: {why}", hint=form) from error


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
