"""YAML frontmatter: the fields at the top of a markdown file, between two lines of dashes."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import yaml

FRONTMATTER = re.compile(r"\A---\r?\n(?P<head>.*?)^---\r?(?:\n|\Z)", re.DOTALL | re.MULTILINE)
MAX_HEAD_CHARS = 100_000
"""Limit of frontmatter: a longer one is read as text."""
MAX_DEPTH = 40
"""Levels of lists and mappings in each other; many C loaders have no limit of their own."""
# The C loader where it exists: every run begins with reading the roles.
_LOADER = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))


class Split(NamedTuple):
    """The two parts of a file, unchanged."""

    head: str | None
    """The YAML; None without frontmatter."""
    body: str


def split_frontmatter(text: str) -> Split:
    """Return the text between the lines of dashes, and the exact text below."""
    found = FRONTMATTER.match(text[:MAX_HEAD_CHARS]) if text.startswith("---") else None
    return Split(None, text) if found is None else Split(found["head"], text[found.end() :])


def fields_in(head: str) -> dict[str, Any]:
    """Read a frontmatter's YAML.

    Raises:
        ValueError: It is not YAML, not a mapping, has aliases, with which a few lines could make gigabytes, or is
            nested so deeply that the C loader would end the process.
    """
    try:
        _check_events(head)
        found: object = yaml.load(head, _LOADER)  # noqa: S506 - one of the two safe ones
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"it is not YAML: {error}") from error
    if not isinstance(found, dict):
        raise ValueError("it is not a list of fields")  # noqa: TRY004 - a file's content, not a caller's mistake
    return cast("dict[str, Any]", found)


def _check_events(head: str) -> None:
    depth = 0
    for event in yaml.parse(head, _LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("it has YAML aliases, which are not read")  # noqa: TRY004 - a file's content
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError(f"its YAML is nested in more than {MAX_DEPTH} levels")


def read_frontmatter(text: str) -> tuple[dict[str, Any], str]:
    """Return the fields and the body; no fields and the whole text without readable frontmatter.

    A text without frontmatter may also begin with a line of dashes.
    """
    head, body = split_frontmatter(text)
    if head is None:
        return {}, text
    try:
        return fields_in(head), body.lstrip("\r\n")
    except ValueError:
        return {}, text


def without_frontmatter(text: str) -> str:
    """Return the body under the frontmatter, or the whole text without one."""
    return read_frontmatter(text)[1]


def with_frontmatter(fields: Mapping[str, Any], body: str) -> str:
    """Return the text of a file with these fields as frontmatter."""
    head = yaml.safe_dump(dict(fields), allow_unicode=True, sort_keys=False, width=1000)
    return f"---\n{head}---\n\n{body}"
