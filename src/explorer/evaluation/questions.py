"""Sets of questions: a file with one JSON object a line, the folder of a public benchmark, or recorded days.

DeepResearch Bench (github.com/Ayanami0730/deep_research_bench): weighted criteria, and a reference report to compare
with. DeepResearch Bench II (github.com/imlrz/DeepResearch-Bench-II): criteria that a report meets or not. A recorded
day is an answer of Hacker News' search service with all stories of that day, as a file `2026-08-11.json`.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, cast

from explorer.documents.parsing.comment_html import plain_text
from explorer.schema.errors import ConfigError, NotFoundError
from explorer.schema.messages import Frozen, JsonObject
from explorer.text.frontmatter import without_frontmatter
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
QUERIES = Path("data", "prompt_data", "query.jsonl")
CRITERIA = Path("data", "criteria_data", "criteria.jsonl")
REFERENCES = Path("data", "test_data", "cleaned_data", "reference.jsonl")
RACE_FILE = Path("results", "race")
FACT_FILE = Path("results", "fact")
RUBRICS = "tasks_and_rubrics.jsonl"
REPORTS_FILE = "reports.jsonl"
AS_PUBLISHED = "take the file as the benchmark's authors publish it"
REPORT_FORM = 'a line is, for example: {"id": "q1", "article": "# The report ..."}'
DAY_FILE = re.compile(r"(\d{4}-\d{2}-\d{2})\.json")
DAY_FORM = 'a day is {"hits": [...]}, as https://hn.algolia.com/api/v1/search?tags=story&numericFilters=... answers it'


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


def read_questions(name: str, limit: int = 0) -> tuple[EvalQuestion, ...]:
    """Read a set of questions, or those of a benchmark's folder.

    In a file, our own form, HotpotQA's (`context`, `supporting_facts`) and DeepResearch Bench's (`prompt`) are known by
    their keys.

    Args:
        name: `sample`, a file with one JSON object a line, or the folder of a benchmark.
        limit: The number of questions to take from the beginning; 0: all.

    Returns:
        At least one question, in the file's order.

    Raises:
        NotFoundError: There is no such file, or the folder is of no known benchmark.
        ConfigError: A line is not as it should be, or two questions have the same id.
    """
    path = Path(name).expanduser()
    found = tuple(_in_folder(path) if path.is_dir() else _in_file(path, name))
    seen: set[str] = set()
    for one in found:
        if one.id in seen:
            raise ConfigError(f"{path}: two questions have the id {one.id!r}", hint="give each its own")
        seen.add(one.id)
    if not found:
        raise ConfigError(f"{path} has no questions", hint=FORM)
    return found[:limit] if limit else found


def _in_folder(folder: Path) -> Iterable[EvalQuestion]:
    if (folder / QUERIES).is_file():
        return _compared(folder)
    if (folder / RUBRICS).is_file():
        return _read_lines(folder / RUBRICS, _with_rubrics, form=AS_PUBLISHED)
    days = sorted(path for path in folder.iterdir() if DAY_FILE.fullmatch(path.name))
    if days:
        return map(_day, days)
    hint = f"DeepResearch Bench has {QUERIES}, DeepResearch Bench II has {RUBRICS}, recorded days are YYYY-MM-DD.json"
    raise NotFoundError(f"{folder} is not the folder of a known benchmark", hint=hint)


def _in_file(path: Path, name: str) -> Iterable[EvalQuestion]:
    path = Path(__file__).with_name("sample.jsonl") if name == SAMPLE else path
    if not path.is_file():
        raise NotFoundError(f"there is no set of questions {name!r}", hint=f"give a file, or `{SAMPLE}`")
    _check_size(path, "divide the set")
    return _read_lines(path, _question)


def _check_size(path: Path, hint: str) -> None:
    if path.stat().st_size > MAX_SET_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_SET_BYTES // 1_000_000} MB", hint=hint)


def _read_lines(
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


def _day(path: Path) -> EvalQuestion:
    _check_size(path, DAY_FORM)
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        texts: dict[str, str] = content.get("articles", {})
        stories = [_story(hit, texts) for hit in content["hits"] if "story" in hit.get("_tags", ["story"])]
        date = datetime.strptime(path.stem, "%Y-%m-%d").replace(tzinfo=UTC)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"{path} is not a recorded day: {str(error)[:160]}", hint=DAY_FORM) from error
    if not stories:
        raise ConfigError(f"{path} has no stories", hint=DAY_FORM)
    words = f"What was notable on Hacker News on {date.day} {date:%B %Y}?"
    return EvalQuestion(id=f"day-{path.stem}", question=words, day=NewsDay(date=path.stem, stories=tuple(stories)))


def _story(hit: Mapping[str, Any], texts: Mapping[str, str]) -> NewsStory:
    identifier = int(hit["objectID"])
    return NewsStory(
        id=identifier,
        title=str(hit["title"]),
        url=str(hit.get("url") or ""),
        points=int(hit.get("points") or 0),
        comments=int(hit.get("num_comments") or 0),
        by=str(hit.get("author") or ""),
        time=datetime.fromtimestamp(int(hit["created_at_i"]), UTC),
        text=plain_text(str(hit.get("story_text") or "")),
        article=str(texts.get(str(identifier), "")),
    )


def _compared(folder: Path) -> Iterator[EvalQuestion]:
    """Yield the questions of DeepResearch Bench; one without criteria or reference has no rubric."""
    criteria = _by_prompt(folder / CRITERIA, _weighted, "the criteria of a question")
    references = _by_prompt(folder / REFERENCES, _article, "a report")
    for one in _read_lines(folder / QUERIES, _plain, form=AS_PUBLISHED):
        found, reference = criteria.get(one.question, ()), references.get(one.question, "")
        rubric = Rubric(criteria=found, reference=reference) if found and reference else None
        yield one.model_copy(update={"rubric": rubric})


def _by_prompt(path: Path, read: Callable[[Mapping[str, Any]], T], kind: str) -> dict[str, T]:
    if not path.is_file():
        return {}
    return dict(_read_lines(path, lambda line, _number: (str(line["prompt"]).strip(), read(line)), kind, AS_PUBLISHED))


def _plain(line: Mapping[str, Any], _number: int) -> EvalQuestion:
    return EvalQuestion(id=str(int(line["id"])), question=str(line["prompt"]).strip())


def _article(line: Mapping[str, Any]) -> str:
    return str(line["article"]).strip()


def _weighted(line: Mapping[str, Any]) -> tuple[Criterion, ...]:
    """Return criteria whose weights are their shares of the whole grade."""
    found: list[Criterion] = []
    for part, share in line["dimension_weight"].items():
        some = line["criterions"][part]
        total = sum(float(one["weight"]) for one in some)
        for one in some:
            text, weight = f"{one['criterion']}: {one['explanation']}", float(share) * float(one["weight"]) / total
            found.append(Criterion(part=str(part), text=text, weight=weight))
    return tuple(found)


def _with_rubrics(line: Mapping[str, Any], _number: int) -> EvalQuestion:
    content = line["content"]
    criteria = tuple(
        Criterion(part=str(part), text=str(text)) for part, texts in content["rubric"].items() for text in texts
    )
    blocked = json.dumps(content["blocked"], ensure_ascii=False) if content.get("blocked") else ""
    return EvalQuestion(
        id=str(int(line["idx"])),
        question=str(line["prompt"]).strip(),
        rubric=Rubric(criteria=criteria, blocked=blocked) if criteria else None,
    )


def read_reports(path: Path, questions: Sequence[EvalQuestion]) -> dict[str, str]:
    """Read reports of another system: a folder with one `ID.md` a question, or a file of lines with `id` and `article`.

    Returns:
        The reports by question; empty texts where there is none.

    Raises:
        NotFoundError: None of the questions has a report there.
        ConfigError: A line is not a report.
    """
    if path.is_file():
        found = dict(
            _read_lines(path, lambda line, _number: (str(line["id"]), _article(line)), "a report", REPORT_FORM)
        )
    else:
        files = {question.id: path / f"{question.id}.md" for question in questions}
        found = {
            name: file.read_text(encoding="utf-8", errors="replace") for name, file in files.items() if file.is_file()
        }
    if not any(question.id in found for question in questions):
        raise NotFoundError(f"{path} has no report", hint=f"name each by its question: {questions[0].id}.md")
    return {question.id: found.get(question.id, "") for question in questions}


def published(folder: Path, system: str) -> str:
    """Return what a benchmark's folder says of a system itself: one line for people; empty where it says nothing."""
    files = [folder / RACE_FILE / system / "race_result.txt", folder / FACT_FILE / system / "fact_result.txt"]
    return "; ".join(
        ", ".join(line.strip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line)
        for path in files
        if path.is_file()
    )


def write_reports(folder: Path, questions: Sequence[EvalQuestion]) -> Path | None:
    """Write the reports of a set's runs as one file, in the form that DeepResearch Bench's own scripts read.

    Args:
        folder: The folder of the evaluation.
        questions: The set.

    Returns:
        The file; None when there is no report yet.
    """
    rows: list[JsonObject] = []
    for one in questions:
        path = folder / "runs" / one.id / "report.md"
        if path.is_file():
            article = without_frontmatter(path.read_text(encoding="utf-8", errors="replace"))
            rows.append({"id": int(one.id) if one.id.isdigit() else one.id, "prompt": one.question, "article": article})
    if not rows:
        return None
    target = folder / REPORTS_FILE
    target.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return target
