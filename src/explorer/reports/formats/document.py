"""A finished report, apart from the format in which it is written."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from explorer.reports.evidence import Evidence
from explorer.schema.messages import JsonObject
from explorer.text.citations import HEADING_REFERENCES
from explorer.text.frontmatter import read_frontmatter

TITLE = re.compile(r"^# +(.+?)[ #]*$", re.MULTILINE)
MAX_VALUE_CHARS = 1_000
ReadImage = Callable[[str], bytes | None]
"""Returns the content of an image file of the run by its path; None when it is not shown."""


@dataclass(frozen=True)
class ReportDocument:
    """A finished report with all that its formats need."""

    text: str
    """The whole text of `report.md`, or an answer in words."""
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What is said of an answer, which has no frontmatter."""
    claims: Sequence[JsonObject] = ()
    """The rows of `claims.jsonl`: each cited sentence, and what was found of it."""
    sources: Sequence[JsonObject] = ()
    """The rows of `sources.jsonl`."""
    read_image: ReadImage = field(default=lambda _path: None)
    look_up: Callable[[], Evidence] = Evidence
    """Returns the evidence behind the report; called only by formats that show it."""

    @cached_property
    def _parts(self) -> tuple[dict[str, Any], str]:
        return read_frontmatter(self.text)

    @property
    def markdown(self) -> str:
        """The text without its frontmatter."""
        return self._parts[1]

    @property
    def fields(self) -> Mapping[str, Any]:
        """The frontmatter."""
        return self._parts[0] or self.about

    @property
    def title(self) -> str:
        """The first heading; else the question."""
        found = TITLE.search(self.markdown)
        return found[1] if found else str(self.fields.get("question", "") or "Report")[:MAX_VALUE_CHARS]

    @property
    def language(self) -> str:
        """The code of the report's language; empty when it is not known."""
        code = str(self.fields.get("language", ""))
        return code if re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", code) else ""

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What the engine knows of the report, as names and values: status and check of the citations first."""
        first = ("status", "reason", "citations", "uncited")
        names = [*(name for name in first if name in self.fields), *(one for one in self.fields if one not in first)]
        return [(name.replace("_", " "), _words(self.fields[name])[:MAX_VALUE_CHARS]) for name in names]


def is_references(heading: str) -> bool:
    """Return whether a heading is that of the list of references."""
    return heading.strip() in HEADING_REFERENCES.values()


def _words(value: object) -> str:
    """Return a value of the frontmatter on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{str(name).replace('_', ' ')} {_words(one)}" for name, one in value.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return ", ".join(_words(one) for one in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return "unknown" if value is None else " ".join(str(value).split())
