"""What a question asks for, as far as patterns can tell."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from explorer.offline.asked_time import A_DAY, time_asked
from explorer.offline.phrases import SAMPLE_LINE, language_in_task, language_of
from explorer.schema.messages import TaskData
from explorer.text.words import GERMAN_WORDS, HAN, HIRAGANA_LETTER, KATAKANA, words_of

DEFAULT_STORIES = 9
MAX_STORIES = 12
TOPIC_STORIES = 6
MAX_TOPIC_CHARS = 60
PLACE_LINE = re.compile(r"^Place: (?:Hacker News|r/(\w+))$", re.MULTILINE)
TOPIC_LINE = re.compile(r"^Topic: (.+)$", re.MULTILINE)
TASK_QUESTION = re.compile(r"^Question: (.+)$", re.MULTILINE)
SAYS_HACKER_NEWS = re.compile(r"hacker\s*news|(?<![A-Za-z0-9_])hn(?![A-Za-z0-9_])|黑客新闻", re.IGNORECASE)
HACKER_NEWS = re.compile(
    rf"{SAYS_HACKER_NEWS.pattern}|\bfront\s?page\b|\btop stories\b|热帖"
    r"|\b(?:today|today's|latest|this week's) (?:tech |technology )?(?:news|stories)\b|\b(?:tech )?news (?:of )?today\b"
    r"|(?:今天|今日|最新)的?.{0,12}(?:新闻|热点|帖子)|科技新闻",
    re.IGNORECASE,
)
NUMBER_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "twelve": 12, "一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10,
}  # fmt: skip
NUMBER = r"(\d{1,2}|" + "|".join(NUMBER_WORDS) + r")"
STORY_NOUN = r"(?:stor(?:y|ies)|posts?|threads?|items?|submissions?|articles?|discussions?|things)"
COUNTS = (
    re.compile(rf"\b(?:top|first|best|hottest|biggest)\s+{NUMBER}\b", re.IGNORECASE),
    re.compile(rf"\b{NUMBER}\s+(?:[\w-]+\s+){{0,3}}?{STORY_NOUN}\b", re.IGNORECASE),
    re.compile(rf"(?:前|最\w{{0,4}}的?){NUMBER}\s*(?:条|个|篇|则|大)?"),
    re.compile(rf"{NUMBER}\s*(?:条|个|篇|则)\S{{0,6}}(?:帖|新闻|故事|文章|热点)"),
)
LISTS = (
    ("show", re.compile(r"\bshow hn\b", re.IGNORECASE)),
    ("ask", re.compile(r"\bask hn\b", re.IGNORECASE)),
    ("job", re.compile(r"\b(?:jobs?|hiring)\b|招聘", re.IGNORECASE)),
    ("new", re.compile(r"\b(?:newest|brand[- ]new) (?:stories|posts|submissions)\b|最新提交", re.IGNORECASE)),
    ("best", re.compile(r"\bbest stories\b", re.IGNORECASE)),
)
QUOTED = re.compile(r"[\"“「]([^\"”」]{2,60})[\"”」]")
TOPIC_PATTERNS = (
    re.compile(
        r"\b(?:about|regarding|concerning|related to|mention(?:s|ing)?|discuss(?:es|ing)?|opinions? (?:on|of)"
        r"|think(?:s|ing)? (?:about|of)|cover(?:s|ing)?)\s+"
        r"(.+?)(?=\s+(?:on|in|at|from|over)\s+(?:hacker|hn\b|the)|[?.,;!\n]|$)",
        re.IGNORECASE,
    ),
    re.compile(r"(?:关于|有关|提到|怎么看待?|如何看待?|看待)\s*(.{1,20}?)(?:的|在|？|\?|，|。|$)"),
    re.compile(r"(?:上|里|中|对)\s*([\w+#.-]{1,20}?)\s*(?:有什么|有哪些)?的?(?:讨论|看法|评价)"),
    re.compile(rf"\b(?:which|what|any|the|all)\s+([\w+#.-]+(?:\s[\w+#.-]+)?)\s+{STORY_NOUN}\b", re.IGNORECASE),
    re.compile(
        r"\banything\s+(?:new\s+)?(?:on|in|for)\s+(?!hacker|hn\b)(.+?)(?=\s+(?:on|at)\s|[?.,;!\n]|$)", re.IGNORECASE
    ),
)
GENERAL_WORDS = frozenset(
    words_of(
        """hn hacker news story stories post posts thread threads item items article articles front page site list today
        todays yesterday week day sample now current currently latest recent top best hot hottest biggest popular
        trending
        notable interesting important worth reading noteworthy significant happening new newest summary summarize
        summarise report digest overview brief briefing discussion discussions discussed discuss discussing comment
        comments people argue argued arguing arguments debate debated community users readers tech technology write find
        tell show give explore look read explain list please anything something everything topic topics theme themes
        main major points upvoted matter matters english chinese question each ask tell say says said think thinks
        thought opinion opinions view views vs versus compare reddit anybody someone 今天 今日 新闻
        热门 最新 值得 关注 帖子 讨论 评论 总结 报告 科技 黑客 有什 什么 哪些 大家 争论"""
    )
)
FACT = re.compile(
    r"\s*(?:why|whose?|when|where|how|which|is|are|did|does|do|was|were|has|have|what (?:is|are|was|were|did|does))\b",
    re.IGNORECASE,
)
"""How a question begins that wants one thing, not a day."""
WHOLE_DAY = re.compile(
    r"\b(?:notable|noteworthy|important|interesting|happening|happened|trending|popular|hot|hottest|top|best|today|news"
    r"|stories|posts|threads|discussions?|overview|digest|summar\w+"
    r"|bemerkenswert\w*|wichtig\w*|interessant\w*|beliebt\w*|los|neues|neuigkeiten|nachrichten|überblick|übersicht)\b"
    r"|話題は|注目|人気|ニュース",
    re.IGNORECASE,
)
TOPICS_BY_LANGUAGE = {
    "de": re.compile(r"\b(?:über|zum|zur|zu|von|rund um)\s+(.+?)(?=\s+(?:auf|bei|in|im)\s|[?.,;!\n]|$)", re.IGNORECASE),
    "ja": re.compile(rf"([A-Za-z0-9+#.{KATAKANA}{HAN}-]{{1,20}}?)(?:について|に関する|をめぐる|の話題)"),
}
MAX_LEFT_WORDS = 5
"""More words than this in a question that names no topic are a sentence, not a topic."""
CHINESE_ENDING = re.compile(r"(?<=.)(?:新闻|帖子|讨论|话题|消息|文章|热点)$")
SUBREDDIT = re.compile(r"(?<![\w/])/?r/([A-Za-z0-9_]{2,21})\b|\bsubreddits?\s+([A-Za-z0-9_]{2,21})\b", re.IGNORECASE)
SAYS_REDDIT = re.compile(r"\breddit\b", re.IGNORECASE)
SORTS = (
    ("new", re.compile(r"\bnew(?:est)?\b|\blatest\b|最新", re.IGNORECASE)),
    ("top", re.compile(r"\b(?:top|best|biggest|most)\b|热门|最热", re.IGNORECASE)),
)
URL = re.compile(r"https?://[^\s<>\"'`)\]]+[^\s<>\"'`)\].,;:!?]")
ADDRESS = re.compile(rf"(?:\baccording to\s+)?{URL.pattern}", re.IGNORECASE)
TEXT_WORDS = frozenset(
    words_of(
        "webpage website web link url text content contents key takeaways gist file document note pdf folder directory"
        " dokument dokumente dokumenten datei dateien ordner ordners text texte inhalt"
        " 文件夹 文件 文档 这个 个文"
    )
)
"""What a page or a file is called in a question that asks for all of it, besides the general words."""


class QuestionKind(StrEnum):
    """Where an answer is looked for."""

    HACKER_NEWS = "hacker_news"
    REDDIT = "reddit"
    WEB = "web"
    FILES = "files"
    FOLDER = "folder"

    @property
    def lists_stories(self) -> bool:
        """Whether an answer is a list of stories."""
        return self in {QuestionKind.HACKER_NEWS, QuestionKind.REDDIT}


@dataclass(frozen=True)
class Wish:
    """A question, understood as far as patterns go."""

    question: str
    kind: QuestionKind
    language: str
    is_sample: bool = False
    story_list: str = "top"
    """Which list of Hacker News: `top`, `ask`, ..."""
    topic: str = ""
    """What the stories should be about; empty for any."""
    count: int = DEFAULT_STORIES
    is_counted: bool = False
    """Whether the question says how many."""
    since: str = ""
    """The time that the question names, as tools read it."""
    until: str = ""
    days: int = 0
    """About how many days that time has; 0: none is named."""
    subreddit: str = "all"
    sort: str = "hot"
    files: tuple[tuple[str, str], ...] = ()
    """Paths of the user's files, with their source ids."""
    has_folder: bool = False
    """Whether there is a folder of the user's to search."""

    @property
    def topic_words(self) -> frozenset[str]:
        """The words of the topic that a title could share."""
        return frozenset(words_of(self.topic)) - GENERAL_WORDS

    @property
    def subject(self) -> str:
        """The question without the addresses in it: an answer need not repeat their words."""
        return " ".join(ADDRESS.sub(" ", self.question).split())

    @property
    def has_subject(self) -> bool:
        """Whether the question says what to look for; `Summarize https://...` and `What is in this file?` do not."""
        empty = GERMAN_WORDS if self.language == "de" else frozenset[str]()
        return bool(set(words_of(self.subject)) - GENERAL_WORDS - TEXT_WORDS - empty)

    @property
    def place(self) -> str:
        """The name of the site."""
        return f"r/{self.subreddit}" if self.kind is QuestionKind.REDDIT else "Hacker News"


def understand(task: TaskData) -> Wish:
    """Understand what a run is started with."""
    question, settings = task.words.strip(), task.settings
    language = str(settings.get("language") or "") or language_of(question)
    wish = Wish(
        question,
        QuestionKind.WEB,
        language,
        is_sample=bool(settings.get("is_sample")),
        files=task.files,
        has_folder=bool(settings.get("corpus")),
    )
    return _detailed(replace(wish, kind=_kind(wish)))


def understand_task(task: TaskData) -> Wish:
    """Understand a helper's task, whoever's words it has."""
    words = task.words
    match = TASK_QUESTION.search(words)
    question = match[1] if match else words
    language = language_in_task(words) or language_of(question)
    wish = Wish(question, QuestionKind.WEB, language, is_sample=SAMPLE_LINE in words)
    place, topic = PLACE_LINE.search(words), TOPIC_LINE.search(words)
    if place is None:
        return _detailed(replace(wish, kind=_kind(wish)))
    kind = QuestionKind.REDDIT if place[1] else QuestionKind.HACKER_NEWS
    found = _detailed(replace(wish, kind=kind))
    return replace(found, topic=topic[1] if topic else "", subreddit=place[1] or "all")


def understand_follow_up(message: str, wish: Wish) -> Wish:
    """Understand a further question of a run: where nothing else is said, it is about the same place."""
    further = replace(wish, question=message, kind=QuestionKind.WEB, language=language_of(message))
    kind = _kind(further)
    kind = wish.kind if kind is QuestionKind.WEB else kind
    found = _detailed(replace(further, kind=kind))
    if kind is wish.kind and not SUBREDDIT.search(message):
        found = replace(found, subreddit=wish.subreddit)
    if not kind.lists_stories or found.topic or WHOLE_DAY.search(message):
        return found
    return replace(found, topic=" ".join(_telling(message, found.language))[:MAX_TOPIC_CHARS])


def _kind(wish: Wish) -> QuestionKind:
    """Return where an answer is looked for: in files first, then where the question says, then in the user's folder."""
    if wish.files:
        return QuestionKind.FILES
    if wish.is_sample or SAYS_HACKER_NEWS.search(wish.question):
        return QuestionKind.HACKER_NEWS
    if SUBREDDIT.search(wish.question) or SAYS_REDDIT.search(wish.question):
        return QuestionKind.REDDIT
    if wish.has_folder:
        return QuestionKind.FOLDER
    return QuestionKind.HACKER_NEWS if HACKER_NEWS.search(wish.question) else QuestionKind.WEB


def _detailed(wish: Wish) -> Wish:
    """Add what a question about stories says of them."""
    if not wish.kind.lists_stories:
        return wish
    question = wish.question
    subreddit = next((name for found in SUBREDDIT.finditer(question) for name in found.groups() if name), "all")
    asked = time_asked(question)
    topic = topic_of(SUBREDDIT.sub(" ", asked.rest))
    counted = count_of(asked.rest)
    if asked.since == A_DAY and not topic:
        asked = asked._replace(since="", until="", days=0)  # the page as it is
    return replace(
        wish,
        story_list=next((name for name, pattern in LISTS if pattern.search(question)), "top"),
        topic=topic,
        count=min(counted or (TOPIC_STORIES if topic else DEFAULT_STORIES), MAX_STORIES),
        is_counted=counted > 0,
        since=asked.since,
        until=asked.until,
        days=asked.days,
        subreddit=subreddit,
        sort=next((name for name, pattern in SORTS if pattern.search(question)), "hot"),
    )


def count_of(question: str) -> int:
    """Return how many stories are asked for; 0 when it is not said."""
    for pattern in COUNTS:
        if match := pattern.search(question):
            word = match[1].lower()
            return max(1, int(word)) if word.isdigit() else NUMBER_WORDS[word]
    return 0


def topic_of(question: str) -> str:
    """Return what the stories should be about; empty when the question is about the day as a whole."""
    language = "ja" if HIRAGANA_LETTER.search(question) else language_of(question)
    for candidate in _candidates(question, language):
        words = _telling(candidate, language)
        topic = CHINESE_ENDING.sub("", " ".join(words)[:MAX_TOPIC_CHARS].strip(" ."))
        if topic and not topic.isdigit():
            return topic
    return ""


def _telling(text: str, language: str) -> list[str]:
    """Return the words that a title could share."""
    words = re.findall(r"[\w+#.'-]+", text)
    empty = GERMAN_WORDS if language == "de" else frozenset[str]()
    return [word for word in words if set(words_of(word)) - GENERAL_WORDS and word.lower() not in empty]


def _candidates(question: str, language: str) -> Iterator[str]:
    """Yield what a question could be about, the plainest first."""
    if quoted := QUOTED.search(question):
        yield quoted[1]
    without_site = SAYS_HACKER_NEWS.sub(" ", question).strip()
    if pattern := TOPICS_BY_LANGUAGE.get(language):
        yield from (match[1] for match in pattern.finditer(without_site))
    yield from (match[1] for pattern in TOPIC_PATTERNS for match in pattern.finditer(question))
    is_day = WHOLE_DAY.search(without_site)
    if (fact := FACT.match(question)) and not is_day:
        yield question[fact.end() :]
    if language in {"zh", "ja"}:
        yield " ".join(re.findall(r"[A-Za-z][\w+#.-]*", without_site))
    elif not is_day:
        yield _left_over(without_site, language)


def _left_over(question: str, language: str) -> str:
    """Return the names in a question of any language; where it has none, its few words: `hacker news rust`."""
    words = _telling(question, language)
    names = [word for word in words if word[:1].isupper() and not question.startswith(word)]
    return " ".join(names or (words if len(words) <= MAX_LEFT_WORDS else ()))
