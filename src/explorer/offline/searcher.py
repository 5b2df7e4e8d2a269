"""The rule-driven searcher: lists stories, reads them with their articles and comments, searches folder and web."""

import re
from collections.abc import Sequence

from explorer.offline.asked_time import A_DAY
from explorer.offline.documents import folder_in, read_pages, search_web
from explorer.offline.folder import SEARCH, search_in_folder
from explorer.offline.phrases import Phrases
from explorer.offline.question import URL, QuestionKind, Wish, understand_task
from explorer.offline.reading import (
    ListedStory,
    ReadThread,
    harmless,
    listed_stories,
    page_read,
    stories_in,
    story_entry,
    thread_read,
)
from explorer.offline.script_state import Ask, Script, ScriptState, Step, ToolAnswer, writing
from explorer.offline.sections import NoteQuote, quote, short_reason, slug, story_section, unknown
from explorer.offline.text import TOO_ALIKE, best_sentences, is_quotable, opening, overlap
from explorer.text.words import words_of

IN_FOLDER = "Search the user's own folder"
"""How a task says where to look."""
LIST_LIMIT = 30
COMMENTS = "get_comments"
COMMENT_LIMIT = 40
MAX_LISTED_DAYS = 14
"""Lists of more days are not to be had; the stories of a longer time are found by a search without words."""
REDDIT_SPANS = (("day", 1), ("week", 7), ("month", 31), ("year", 366))
SEARCH_SPAN = "365d"
"""How far back a search goes for a question that names no time."""
ARTICLE_SENTENCES = 3
POST_SENTENCES = 2
REMARK_CHARS = 220
MIN_REPLY_CHARS = 40
MAX_REMARKS = 3
DISAGREES = re.compile(
    r"\bdisagree\b|\bnot (?:really|quite|true|the|what|an?|stable)\b|\bbut\b|\bhowever\b|\bon the other hand\b"
    r"|\bwrong\b|\bwith respect\b|\bno[,.]|\bunless\b|\bactually\b|\bskeptical\b|不同意|但是|不过|并非|然而",
    re.IGNORECASE,
)


def search(state: ScriptState) -> Script:
    """Do one task: look closely at the stories it lists, or list stories, or search the folder or the web."""
    wish, words = understand_task(state.task), state.task.words
    if stories := stories_in(words.splitlines()):
        return (yield from _look_closely(state, stories, wish))
    if IN_FOLDER not in words and wish.kind.lists_stories:
        return (yield from _overview(state, wish))
    folder = folder_in(state.task) or "notes/"
    if urls := [url for url in URL.findall(words) if IN_FOLDER not in words]:
        return (yield from read_pages(wish, urls, folder))
    # A user who names a folder has not asked for the question to be sent elsewhere.
    return (yield from (search_in_folder if SEARCH in state.tools else search_web)(state, wish, folder))


def _overview(state: ScriptState, wish: Wish) -> Script:
    phrases = Phrases(wish.language)
    answers = yield Step(calls=_list_calls(wish))
    gaps: list[str] = []
    found: dict[str, ListedStory] = {}
    for answer in answers:
        if answer.is_error:
            key = "search_failed" if wish.topic else "list_failed"
            gaps.append(phrases(key, words=harmless(wish.topic), why=short_reason(answer.text)))
        for story in listed_stories(answer):
            found.setdefault(story.page, story)
    path = f"{folder_in(state.task)}overview.md"
    entries = [story_entry(number, story) for number, story in enumerate(found.values(), 1)]
    content = "\n".join([f"# {wish.place}", "", *entries, "", *unknown(gaps, phrases)]) + "\n"
    yield Step(calls=(writing(path, content),))
    by_points = sorted(found.values(), key=lambda story: -story.points)
    leading = "; ".join(f"{story.title} ({story.points} points, [{story.source}])" for story in by_points[:5])
    listed = "1 story is" if len(found) == 1 else f"{len(found)} stories are"
    summary = f"{listed} listed in {path}. Highest by points: {leading or 'none'}."
    return _with_gaps(summary, gaps)


def _list_calls(wish: Wish) -> tuple[Ask, ...]:
    """Return the calls that list what a question about stories asks for: a list, a day's stories, or a search."""
    if wish.kind is QuestionKind.REDDIT:
        query = {"query": wish.topic} if wish.topic else {}
        # A listing has a time only with the best posts of it.
        span = {"sort": "top", "time": _reddit_span(wish)} if wish.days and wish.sort != "new" else {"sort": wish.sort}
        return (Ask("get_reddit_posts", {"subreddit": wish.subreddit, "limit": LIST_LIMIT} | query | span),)
    listing: dict[str, object] = {"story_type": wish.story_list, "limit": LIST_LIMIT}
    span = {"since": wish.since or SEARCH_SPAN} | ({"until": wish.until} if wish.until else {})
    if not wish.topic and wish.days <= MAX_LISTED_DAYS:
        is_range = wish.until not in {"", "today", wish.since}
        date = f"{wish.since}..{wish.until}" if is_range else wish.since
        return (Ask("get_hn_stories", listing | ({"date": date} if date else {})),)
    found = Ask("search_hn", {"query": wish.topic} | span)
    # Without a time, and for today, what is on the page just now counts, too: its titles are compared with the topic.
    return (found,) if wish.since not in {"", A_DAY} else (Ask("get_hn_stories", listing), found)


def _reddit_span(wish: Wish) -> str:
    """Return the shortest of the site's spans that reaches back to the time asked for."""
    reach = wish.days if wish.until == "today" else wish.days * 2
    known = wish.until == "today" or not wish.since[:1].isdigit()
    return next((name for name, days in REDDIT_SPANS if known and reach <= days), "all")


def _with_gaps(summary: str, gaps: Sequence[str]) -> str:
    return f"{summary}\nNot known: {'; '.join(gaps[:6])[:700]}" if gaps else summary


def _look_closely(state: ScriptState, stories: Sequence[ListedStory], wish: Wish) -> Script:
    """Read each story's article and thread side by side; write its section while the next is read."""
    phrases, folder = Phrases(wish.language), folder_in(state.task)
    read, gaps = list[str](), list[str]()
    unwritten: tuple[Ask, ...] = ()
    for story in stories:
        if state.is_hurried:
            gaps.append(phrases("stopped"))
            break
        calls = _reading_calls(story)
        answers = yield Step(calls=(*unwritten, *calls))
        section, is_read = _section(story, dict(zip((call.tool for call in calls), answers[len(unwritten) :])), phrases)  # noqa: B905 - a hurried run has none
        read += [story.title] if is_read else []
        path = f"{folder}{'-'.join(part for part in (story.id, slug(story.title)) if part)}.md"
        unwritten = (writing(path, section),)
    if unwritten:
        yield Step(calls=unwritten)
    summary = f"Of {len(stories)} stories, text to quote was found for {len(read)}: {'; '.join(read) or 'none'}."
    return _with_gaps(summary[:1200], gaps)


def _reading_calls(story: ListedStory) -> tuple[Ask, ...]:
    thread = Ask(COMMENTS, {"post_id": story.id, "platform": story.platform, "limit": COMMENT_LIMIT})
    return (Ask("read_webpage", {"url": story.url}), thread) if story.url else (thread,)


def _section(story: ListedStory, answers: dict[str, ToolAnswer], phrases: Phrases) -> tuple[str, bool]:
    """Return the section on a story, and whether there is anything to quote."""
    missing: list[str] = []
    parts: dict[str, Sequence[NoteQuote]] = {}
    page = page_read(answers["read_webpage"]) if "read_webpage" in answers else None
    if page is not None:
        found = best_sentences(page.text, story.title, ARTICLE_SENTENCES)
        parts["article"] = [one for sentence in found if (one := quote(sentence, page.source))]
    if story.url and not parts.get("article"):
        missing.append(phrases("the_article"))
    thread = thread_read(answers[COMMENTS])
    if thread is not None:
        words = best_sentences(thread.text, story.title, POST_SENTENCES) if thread.text else []
        post = [one for sentence in words if (one := quote(sentence, thread.source))]
        parts["post"] = _unlike(parts.get("article", ()), post)
        parts["discussion"] = choose_remarks(thread)
    if story.comments and not parts.get("discussion"):
        missing.append(phrases("the_comments"))
    return story_section(story, parts, missing, phrases), any(parts.values())


def _unlike(known: Sequence[NoteQuote], quotes: Sequence[NoteQuote]) -> list[NoteQuote]:
    """Return the quotes that repeat none of the known ones: a post often repeats its article."""
    bags = [set(words_of(one.text)) for one in known]
    return [one for one in quotes if all(overlap(set(words_of(one.text)), bag) < TOO_ALIKE for bag in bags)]


def choose_remarks(thread: ReadThread) -> list[NoteQuote]:
    """Return the best comment with the reply that contradicts it best, and the next best comment of another branch."""
    scored = sorted(((_remark_score(thread, index), -index) for index in range(len(thread.remarks))), reverse=True)
    tops = [-index for score, index in scored if score > 0 and thread.remarks[-index].depth == 0]
    tops = tops or [-index for score, index in scored if score > 0]
    return [one for top in tops[:2] for one in _with_reply(thread, top)][:MAX_REMARKS]


def _with_reply(thread: ReadThread, index: int) -> list[NoteQuote]:
    remark = thread.remarks[index]
    quoted = quote(opening(remark.text, REMARK_CHARS), thread.source, remark.author)
    if quoted is None:
        return []
    others = [other for other in thread.remarks if other.parent == index and other.author != remark.author]
    # Who contradicts comes first; then whoever says most.
    others.sort(key=lambda other: (not DISAGREES.search(other.text), -min(len(other.text), 2 * REMARK_CHARS)))
    answers = [quote(opening(other.text, REMARK_CHARS), thread.source, other.author, is_reply=True) for other in others]
    return [quoted, *[answer for answer in answers if answer and len(answer.text) >= MIN_REPLY_CHARS][:1]]


def _remark_score(thread: ReadThread, index: int) -> float:
    """Return a score of substance: length up to a point, replies, rank, a number; 0 without a sentence to quote."""
    remark = thread.remarks[index]
    first = opening(remark.text, REMARK_CHARS)
    if not first or not is_quotable(first[:320]):
        return 0.0
    replies = sum(1 for other in thread.remarks if other.parent == index)
    substance = min(len(set(words_of(remark.text))), 50) / 50
    return substance + 0.25 * min(replies, 3) + 0.6 / (1 + index / 4) + (0.15 if re.search(r"\d", first) else 0.0)
