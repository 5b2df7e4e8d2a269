"""YAML frontmatter: the fields at the top of a markdown file, between two lines of dashes."""

from collections.abc import Mapping
from typing import Any

import yaml


def with_frontmatter(fields: Mapping[str, Any], body: str) -> str:
    """The report file: YAML frontmatter, then the body."""
    head = yaml.safe_dump(dict(fields), allow_unicode=True, sort_keys=False, width=1000)
    return f"---\n{head}---\n\n{body}"


def without_frontmatter(text: str) -> str:
    """The body below a YAML frontmatter, or the whole text: a line of dashes may as well be a rule."""
    head, ends, body = text[4:].partition("\n---\n")
    if not text.startswith("---\n") or not ends:
        return text
    try:
        is_fields = isinstance(yaml.safe_load(head), dict)
    except yaml.YAMLError:
        is_fields = False
    return body.lstrip("\n") if is_fields else text
