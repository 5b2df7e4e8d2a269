"""A page of the library: its file name, whether two pages have the same subject, and its markdown with all updates."""

import difflib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cache, cached_property
from typing import Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from explorer.reports.render import SAMPLE_FLAG, reference, without_network
from explorer.reports.verify.claims import Verification, with_unsupported_marks
from explorer.schema.errors import ToolError
from explorer.schema.events import Source
from explorer.text.citations import CITATION, HEADING_REFERENCES, cited_ids
from explorer.text.frontmatter import fields_in, split_frontmatter, with_frontmatter, without_frontmatter
from explorer.text.rendering import codes
from explorer.text.sanitize import single_line, visible
from explorer.text.urls import page_key
from explorer.text.words import CJK, phrase_language

MAX_LINE_CHARS = 400
"""The limit in characters of a title, a verdict or an id in a page's frontmatter."""
SLUG_CHARS = 80
SLUG_BYTES = 180
"""The limit in bytes of a slug: a name on disk can have 255 bytes, and a Chinese character takes three."""
EMOJI_MARK = "\ufe0f"
"""The variation selector of emoji, which is invisible by itself and belongs to Unicode's category of marks."""
UNNAMED = "report"
SAME_TITLE = 0.88
"""The least similarity, from 0 to 1, of two titles that count as the same.

The similarity of titles that differ by one word is above `SAME_TITLE`; that of two headlines of one site is below.
"""


def slug_of(title: str) -> str:
    """Return a file name, without suffix, for a title: letters and digits of any script, joined by hyphens.

    The name contains no other characters, so it is never a path.
    """
    text = unicodedata.normalize("NFKC", visible(title).replace(EMOJI_MARK, "")).casefold()
    kept = "".join(c if unicodedata.category(c)[0] in "LMN" else "-" for c in text)
    slug = re.sub(r"-+", "-", kept).strip("-")[:SLUG_CHARS]
    return slug.encode()[:SLUG_BYTES].decode("utf-8", "ignore").strip("-") or UNNAMED


def is_same_address(one: str, other: str) -> bool:
    """Return whether two addresses lead to the same page; an empty address never does."""
    return bool(one and other) and page_key(one) == page_key(other)


def is_same_title(one: str, other: str) -> bool:
    """Return whether two titles consist of nearly the same words; titles with different figures never do."""
    ours, theirs = _words(one), _words(other)
    if not ours or not theirs or _figures(ours) != _figures(theirs):
        return False
    return difflib.SequenceMatcher(None, " ".join(ours), " ".join(theirs)).ratio() >= SAME_TITLE


@cache
def _word() -> "re.Pattern[str]":
    """Return the pattern of a word; with all of Chinese, it takes milliseconds to compile."""
    return re.compile(rf"[{CJK}]|[^\W_{CJK}]+")


def _words(title: str) -> list[str]:
    text = unicodedata.normalize("NFKC", visible(title)).casefold()
    return _word().findall(re.sub(r"^(show|ask|tell|launch) hn:", "", text))


def _figures(words: list[str]) -> list[str]:
    return sorted(word for word in words if any(c.isdigit() for c in word))


OWN_COMMENT = re.compile(r"<!--(?=\s*(?:call|references)\b)", re.IGNORECASE)
REFERENCES_MARK = "<!-- references -->"
REFERENCE = re.compile(r"(?P<number>\d{1,5})\. (?P<words>.+)")
HEADINGS = frozenset(f"## {heading}" for heading in HEADING_REFERENCES.values())
UPDATE = re.compile(r"^## (?P<title>Update .+)\s*\Z", re.MULTILINE)


class ReportFields(BaseModel):
    """A report's frontmatter; fields that a reader added are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    title: str = Field(min_length=1)
    story_id: str = ""
    url: str = ""
    verdict: str = ""
    created: str = ""
    updated: str = ""
    run: tuple[str, ...] = ()
    """The ids of the runs that wrote in the report, oldest first."""
    citations: dict[str, int] = Field(default={}, exclude_if=lambda counts: not counts)
    """Cited sentences by what a check found when they were written, as in a run's report; empty: none was checked."""
    uncited: int = Field(default=0, exclude_if=lambda count: not count)
    """Sentences with a quote or a figure and without a citation."""

    @field_validator("title", "story_id", "url", "verdict", "created", "updated", mode="before")
    @classmethod
    def _said(cls, value: object) -> object:
        if isinstance(value, date | datetime):
            return value.isoformat()
        return "" if value is None else value

    @field_validator("citations", mode="before")
    @classmethod
    def _counts(cls, value: object) -> object:
        listed = cast("Mapping[object, object]", value if isinstance(value, Mapping) else {})
        return {name: count for name, count in listed.items() if isinstance(name, str) and type(count) is int}

    @field_validator("uncited", mode="before")
    @classmethod
    def _count(cls, value: object) -> object:
        return value if type(value) is int else 0

    def counting(self, checked: Verification) -> Self:
        """Return the fields with what the check of a contribution found added."""
        counts = {name: self.citations.get(name, 0) + found for name, found in checked.counts.items()}
        citations = counts if checked.claims else self.citations
        return self.model_copy(update={"citations": citations, "uncited": self.uncited + len(checked.uncited)})

    @field_validator("run", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value or ()


@dataclass(frozen=True)
class Contribution:
    """The text that one call writes into a report."""

    content: str
    """Markdown in which `[S12]` cites a source of the run."""
    run: str
    call: str = ""
    """The engine's key of the call, by which a repeated call is recognised; empty for a call made by hand."""
    verdict: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict[str, Source])
    """The run's sources, by id."""
    checked: Verification = field(default_factory=lambda: Verification(claims=()))
    """What the citation check finds in its body; nothing where it was not looked up."""

    @cached_property
    def body(self) -> str:
        """The content as it is written, before its citations are numbered."""
        words = visible(without_frontmatter(self.content.replace("\r\n", "\n"))).strip()
        # A report of the library has no other files with it, and nothing is loaded from elsewhere.
        return without_network(words, lambda _path: False)

    @property
    def mark(self) -> str:
        """The comment that marks the call in the report; empty for a call without a key."""
        return f"<!-- call {self.run}/{self.call} -->" if self.call else ""


@dataclass(frozen=True)
class ReportPage:
    """A report as its frontmatter, body and references."""

    fields: ReportFields
    body: str
    references: Mapping[int, str]
    """The text of each reference, by its number."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the report in a file's text.

        Raises:
            ValueError: The text is not a report of the library; the message says why.
        """
        text = text.replace("\r\n", "\n")
        fields = fields_of(text)
        body, _, tail = split_frontmatter(text).body.rpartition(REFERENCES_MARK)
        if not body:
            return cls(fields, tail.strip(), {})
        references, others = _listed(tail)
        return cls(fields, f"{body.strip()}\n\n{others}".strip(), references)

    def text(self) -> str:
        """Return the report as a file's text."""
        parts = [self.body.strip()]
        if self.references:
            heading = HEADING_REFERENCES[phrase_language(self.body)]
            lines = "\n".join(f"{number}. {words}" for number, words in sorted(self.references.items()))
            parts.append(f"{REFERENCES_MARK}\n\n## {heading}\n\n{lines}")
        return with_frontmatter(self.fields.model_dump(mode="json"), "\n\n".join(parts) + "\n")

    def update_of(self, mark: str) -> str:
        """Return the heading of the update that a call made, found by the call's mark; empty when it made none."""
        before, found, _ = self.body.partition(mark)
        heading = UPDATE.search(before) if found else None
        return heading["title"] if heading is not None else ""

    def with_update(self, addition: Contribution, moment: datetime) -> tuple[Self, str]:
        """Return the report with an additional dated section, and the heading of that section.

        Raises:
            ToolError: The text is empty, cites an id that no source of the run has, or is already in the report.
        """
        text, references = numbered(addition, self.references)
        if _squeezed(text) in _squeezed(self.body):
            raise ToolError.of("the report says exactly this already; append only what is new, or nothing")
        title = f"Update {moment:%Y-%m-%d %H:%M} (run {addition.run})"
        section = "\n\n".join(part for part in (f"## {title}", addition.mark, text) if part)
        runs = tuple(dict.fromkeys((*self.fields.run, addition.run)))
        changes = {"updated": moment.isoformat(timespec="seconds"), "run": runs}
        changes |= {"verdict": single_line(addition.verdict, MAX_LINE_CHARS)} if addition.verdict else {}
        fields = self.fields.model_copy(update=changes).counting(addition.checked)
        return replace(self, fields=fields, body=f"{self.body}\n\n{section}", references=references), title


def first_page(fields: ReportFields, content: Contribution) -> ReportPage:
    """Return a new report.

    Raises:
        ToolError: The text is empty, or cites an id that no source of the run has.
    """
    text, references = numbered(content, {})
    heading = "" if text.startswith("# ") else f"# {fields.title}"
    return ReportPage(
        fields.counting(content.checked),
        "\n\n".join(part for part in (heading, content.mark, text) if part),
        references,
    )


def fields_of(text: str) -> ReportFields:
    """Return the frontmatter of a file's text.

    Raises:
        ValueError: The text is not a report of the library; the message says why.
    """
    head, _ = split_frontmatter(text)
    if head is None:
        raise ValueError("it has no frontmatter")
    try:
        return ReportFields.model_validate(fields_in(head))
    except ValidationError as error:
        raise ValueError(f"its frontmatter lacks a usable {_culprit(error)}") from error
    except ValueError as error:
        raise ValueError("its frontmatter is not readable YAML") from error


def _culprit(error: ValidationError) -> str:
    where = error.errors()[0]["loc"]
    return str(where[0]) if where else "title"


def _listed(tail: str) -> tuple[dict[int, str], str]:
    """Return the references by number, and all other text below the references mark."""
    references: dict[int, str] = {}
    others: list[str] = []
    for line in tail.strip().splitlines():
        found = REFERENCE.fullmatch(line)
        if found is not None and int(found["number"]) not in references:
            references[int(found["number"])] = found["words"]
        elif line not in HEADINGS:
            others.append(line)
    return references, "\n".join(others).strip()


def numbered(content: Contribution, known: Mapping[int, str]) -> tuple[str, dict[int, str]]:
    """Return a contribution with numbers in place of its run's ids, and all references of the report by number.

    Args:
        content: The contribution.
        known: The report's references so far, by number; each of them keeps its number.

    Raises:
        ToolError: The contribution is empty, or cites an id that no source of the run has.
    """
    body = with_unsupported_marks(content.body, content.checked)
    if not body:
        raise ToolError.of("nothing was written: the content is empty")
    cited = list(dict.fromkeys(cited_ids(body)))
    dangling = [name for name in cited if name not in content.sources]
    if dangling:
        raise ToolError.of(
            "nothing was written: the text cites {dangling}, which no stored source of this run has; "
            "correct or remove these citations (only ids that a tool showed exist)",
            dangling=codes(dangling),
        )
    references = dict(known)
    numbers = {name: _number(content.sources[name], content.run, references) for name in cited}

    def replaced(found: "re.Match[str]") -> str:
        if found["ids"] is None:
            return found[0]
        return "".join(f"[{numbers[name]}]" for name in re.findall(r"S\d+", found["ids"]))

    return OWN_COMMENT.sub("&lt;!--", CITATION.sub(replaced, body)), references


def _number(source: Source, run: str, references: dict[int, str]) -> int:
    """Return the number of a source among the references; a source that is missing there is added with a new number."""
    words = reference(source).removesuffix(f" `{source.id}`")
    if SAMPLE_FLAG in source.flags:
        words += " (invented sample data)"
    words = OWN_COMMENT.sub("&lt;!--", words)
    for number, line in references.items():
        if re.sub(r" <!-- \S+ -->$", "", line) == words:
            return number
    number = max(references, default=0) + 1
    references[number] = f"{words} <!-- {run}:{source.id} -->"
    return number


def _squeezed(text: str) -> str:
    return " ".join(text.split())
