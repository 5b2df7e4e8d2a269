"""Which stories are notable, and which themes a list of stories has."""

import math
import re
from collections.abc import Iterable, Sequence

from explorer.offline.notes import ResearchNote
from explorer.offline.phrases import Phrases
from explorer.offline.reading import ListedStory
from explorer.text.words import words_of

THEME_TITLES = 3
MAX_THEMES = 5
THEME_MIN_STORIES = 2
THEMES: dict[str, str] = {
    "theme_ai": r"\bai\b|\bllms?\b|language models?|\bgpt|neural|agents?\b|machine learning|speech recognition"
    r"|generated code|training|chatbot|inference|open-weights|diffusion|small model|人工智能|大模型|智能体",
    "theme_databases": r"databases?\b|\bsql|storage|\bindex|servers?\b|clusters?\b|distributed|cloud|cache|postgres"
    r"|数据库|服务器",
    "theme_languages": r"compil|programming|regex|pars(?:er|ing)|editor|type[- ]check|\brust\b|python|javascript"
    r"|typescript|\bc\+\+|golang|haskell|\blisp\b|\bide\b|debug|编译|编程",
    "theme_security": r"secur|password|vulnerab|exploit|\bcve|breach|encrypt|privacy|malware|hack(?:ed|ing)\b|\btls\b"
    r"|phishing|surveillance|backdoor|漏洞|安全|隐私",
    "theme_hardware": r"hardware|\bchips?\b|\bcpu|\bgpu|laptop|processor|firmware|\bphones?\b|minicomputer|battery"
    r"|\brobot|芯片|硬件",
    "theme_science": r"\bspace(?:craft|x)?\b|lunar|\bmoon|planet|telescope|physics|biolog|bacteri|\bgen(?:e|es|ome)\b"
    r"|\bdna\b|protein|chemi|climate|solar|energy|whale|quantum|\bmath|medic|brain|perovskite|航天|物理|生物|能源",
    "theme_open_source": r"open[- ]source|maintainer|licen[cs]e|github|linux|\bfork|changelog|community|开源",
    "theme_business": r"acqui|\bbuys?\b|\bipo\b|\bbillion|\bmillion|layoff|startup|\bcourt\b|lawsuit|\blaw\b"
    r"|regulat|antitrust|\bhiring|\bjobs?\b|salary|\bcosts?\b|invoice|公司|收购|法院",
}


def notability(story: ListedStory | None) -> float:
    """Points, comments and speed, each on a log scale, so that no one of them decides alone."""
    if story is None:
        return 0.0
    return math.log1p(story.points) + 0.7 * math.log1p(story.comments) + 0.5 * math.log1p(story.velocity)


def most_notable(stories: Iterable[ListedStory]) -> list[ListedStory]:
    """Stories by notability; of two with one title or one address the better stays."""
    seen: set[str] = set()
    kept: list[ListedStory] = []
    for story in sorted(stories, key=lambda story: (-notability(story), story.id)):
        marks = {" ".join(words_of(story.title)), story.url or str(story.id)}
        if not marks & seen:
            kept.append(story)
        seen |= marks
    return kept


def about(stories: Sequence[ListedStory], words: Iterable[str]) -> list[ListedStory]:
    """The stories whose title, address or text share words with a topic: those with most of them."""
    wanted = set(words)
    shared = {story.id: len(wanted & set(words_of(f"{story.title} {story.url}"))) for story in stories}
    most = max(shared.values(), default=0)
    enough = max(1, min(most, (len(wanted) + 1) // 2))
    return [story for story in stories if shared[story.id] >= enough] if most else []


def theme_lines(stories: Sequence[ListedStory], phrases: Phrases, notes: Sequence[ResearchNote] = ()) -> list[str]:
    """The themes of a list, largest first, each with its most notable stories; titles decide."""
    shown = {note.story.id for note in notes if note.story}
    groups: list[tuple[str, list[ListedStory]]] = []
    for key, pattern in THEMES.items():
        members = [story for story in stories if re.search(pattern, story.title, re.IGNORECASE)]
        if len(members) >= THEME_MIN_STORIES:
            members.sort(key=lambda story: (story.id not in shown, -notability(story)))
            groups.append((key, members))
    groups.sort(key=lambda group: (-len(group[1]), -sum(story.points for story in group[1])))
    return [f"- {_theme(key, members, len(stories), phrases)}" for key, members in groups[:MAX_THEMES]]


def _theme(key: str, members: Sequence[ListedStory], total: int, phrases: Phrases) -> str:
    named = phrases("separator").join(f"{story.title} [{story.source}]" for story in members[:THEME_TITLES])
    return phrases("theme_line", theme=phrases(key), count=len(members), all=total, titles=named)
