"""From a draft to the report: citations become numbered references, and a frontmatter tells how it was made."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import yaml

from explorer.events import Source
from explorer.near_duplicates import plain_flags

IDS = r"\[S\d+(?:\s*[,;]\s*S\d+)*\]"
CITATION = re.compile(
    rf"^(?P<fence>```+|~~~+).*?^(?P=fence)|`(?!{IDS}`)[^`\n]+`|(?P<tick>`?)(?P<ids>{IDS})(?P=tick)",
    re.MULTILINE | re.DOTALL,
)
"""`[S12]` and `[S12, S13]`; code is found too, so that it is passed over: `row[S1]` in code cites nothing."""
MIN_REPORT_WORDS = 12
PLACEHOLDER = re.compile(
    r"^\W*(todo|tbd|placeholder|lorem ipsum|to be written|coming soon|report goes here)\b", re.IGNORECASE
)
HEADING_REFERENCES = {"en": "References", "zh": "参考来源"}
MISSING = "[source missing]"
KIND_WORDS = {"comments": "discussion", "search_hit": "search result"}
SAMPLE_FLAG = "sample"
"""Of sources that are bundled and invented: said once, above the references, not behind each."""
SAMPLE_WORDS = {"en": "All sources are invented sample data.", "zh": "全部来源均为虚构的示例数据。"}
CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True)
class Rendered:
    """A report's body with numbered references."""

    text: str
    cited: tuple[str, ...]
    """Ids of the cited sources, in the order of their numbers."""
    citations: int
    """Citation marks in the prose, one for each source named."""
    dangling: tuple[str, ...]
    """Ids cited that no source has."""


def cited_ids(text: str) -> list[str]:
    """All ids cited in a text, in order, with repetitions."""
    return [identifier for found in CITATION.finditer(text) for identifier in re.findall(r"S\d+", found["ids"] or "")]


def problem_of(text: str, sources: Mapping[str, Source]) -> str:
    """Why a draft cannot be handed over, in words for the model; empty when it can."""
    body = without_frontmatter(text)
    if count_words(body) < MIN_REPORT_WORDS or PLACEHOLDER.match(body):
        return "report.md is empty or a placeholder; have the report written first"
    dangling = sorted({identifier for identifier in cited_ids(body) if identifier not in sources})
    if dangling:
        return (
            f"report.md cites {', '.join(dangling)}, which no stored source has; "
            "correct or remove these citations (only ids that a tool showed exist)"
        )
    return ""


def count_words(text: str) -> int:
    """Words; a Chinese, Japanese or Korean character counts as one."""
    return len(re.findall(r"[^\W\u3400-\u9fff\uf900-\ufaff]+", text)) + len(CJK.findall(text))


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


def language_of(text: str) -> str:
    """`zh` for mostly Chinese text, `en` otherwise: enough for the few fixed words the engine itself adds."""
    return "zh" if len(CJK.findall(text)) * 3 > len(re.findall(r"\w", text)) else "en"


def render(draft: str, sources: Mapping[str, Source], language: str) -> Rendered:
    """Number the citations in order of first use and append the references."""
    body = without_frontmatter(draft).strip()
    cited = list(dict.fromkeys(identifier for identifier in cited_ids(body) if identifier in sources))
    numbers = {identifier: number for number, identifier in enumerate(cited, 1)}
    dangling = sorted({identifier for identifier in cited_ids(body) if identifier not in sources})

    def numbered(found: "re.Match[str]") -> str:
        if found["ids"] is None:
            return found[0]
        ids = re.findall(r"S\d+", found["ids"])
        return "".join(f"[{numbers[name]}]" if name in numbers else MISSING for name in ids)

    text = CITATION.sub(numbered, body)
    if cited:
        heading = HEADING_REFERENCES.get(language, HEADING_REFERENCES["en"])
        lines = [f"{numbers[name]}. {reference(sources[name])}" for name in cited]
        is_sample = all(SAMPLE_FLAG in sources[name].flags for name in cited)
        said = [SAMPLE_WORDS.get(language, SAMPLE_WORDS["en"]), ""] if is_sample else []
        text = f"{text}\n\n## {heading}\n\n" + "\n".join([*said, *lines])
    return Rendered(text + "\n", tuple(cited), len(cited_ids(body)), tuple(dangling))


def reference(source: Source) -> str:
    """One source as a reader wants it: title, what it is, site, date, address, honest flags."""
    title = re.sub(r"([\[\]\\`*_<>])", r"\\\1", source.title)
    kind = KIND_WORDS.get(source.kind, "")
    site = _site(source.url)
    address = source.url if "://" in source.url else source.url.removeprefix("file:")
    head = f"{title} ({kind})" if kind else title
    end = "" if head.endswith(("?", "!", ".")) else "."
    flags = [flag for flag in plain_flags(source.flags) if flag != SAMPLE_FLAG]
    marks = f" ({', '.join(flags)})" if flags else ""
    parts = [part for part in (site, source.published[:10], address) if part]
    return f"{head}{end} {', '.join(parts)}{marks} `{source.id}`"


def _site(url: str) -> str:
    try:
        return urlsplit(url).netloc.removeprefix("www.")
    except ValueError:  # an address from outside may be none
        return ""


def with_frontmatter(fields: Mapping[str, Any], body: str) -> str:
    """The report file: YAML frontmatter, then the body."""
    head = yaml.safe_dump(dict(fields), allow_unicode=True, sort_keys=False, width=1000)
    return f"---\n{head}---\n\n{body}"
