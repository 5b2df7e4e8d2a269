"""The rule-driven searcher: lists Hacker News, reads stories with their articles and comments, searches the web."""

import re
from collections.abc import Sequence

from explorer.offline.notes import NoteQuote, ResearchNote, quote, short_reason, slug, write_note, write_overview
from explorer.offline.passages import IN_FOLDER, SEARCH, keep_notes, read_pages, search_folder, search_web
from explorer.offline.phrases import Phrases
from explorer.offline.question import URL, QuestionKind, Wish, understand_task
from explorer.offline.reading import (
    ListedStory,
    ReadPage,
    ReadThread,
    Remark,
    harmless,
    listed_stories,
    page_read,
    stories_in,
    thread_read,
)
from explorer.offline.script_state import Ask, Script, ScriptState, Step, ToolAnswer
from explorer.offline.text import TOO_ALIKE, best_sentences, is_quotable, opening, overlap
from explorer.schema.messages import TaskData
from explorer.text.words import words_of

LIST_LIMIT = 30
COMMENTS = "get_comments"
COMMENT_LIMIT = 40
ARTICLE_SENTENCES = 3
POST_SENTENCES = 2
REMARK_CHARS = 220
MIN_REPLY_CHARS = 40
LIST_WORDS = re.compile(r"list of (top|new|best|ask|show|job) stories", re.IGNORECASE)
SEARCH_WORDS = re.compile(r"search Hacker News for “([^”]+)”(?: since (\S+?))?[.,\s]")
DISAGREES = re.compile(
    r"\bdisagree\b|\bnot (?:really|quite|true|the|what|an?|stable)\b|\bbut\b|\bhowever\b|\bon the other hand\b"
    r"|\bwrong\b|\bwith respect\b|\bno[,.]|\bunless\b|\bactually\b|\bskeptical\b|不同意|但是|不过|并非|然而",
    re.IGNORECASE,
)


def search(state: ScriptState) -> Script:
    """Do one task: look closely at the stories it lists, or list stories, or search the web."""
    wish = understand_task(state.task)
    stories = stories_in(state.task.words.splitlines())
    if stories:
        return (yield from _look_closely(state, stories, wish))
    if IN_FOLDER in state.task.words:
        return (yield from _in_folder_first(state, wish))
    urls = [url for url in URL.findall(state.task.words) if "news.ycombinator.com/item" not in url]
    if urls and wish.kind is not QuestionKind.HACKER_NEWS:
        return (yield from read_pages(wish, urls, folder_in(state.task)))
    if (
        wish.kind is QuestionKind.HACKER_NEWS
        or SEARCH_WORDS.search(state.task.words)
        or LIST_WORDS.search(state.task.words)
    ):
        return (yield from _overview(state, wish))
    return (yield from _in_folder_first(state, wish))


def _in_folder_first(state: ScriptState, wish: Wish) -> Script:
    """Search the user's folder, where there is one; search the web where it has nothing."""
    folder, phrases = folder_in(state.task), Phrases(wish.language)
    if SEARCH not in state.tools:
        return (yield from search_web(state, wish, folder))
    found = yield from search_folder(state, wish)
    if not found.notes and not state.is_hurried:
        return (yield from search_web(state, wish, folder, [*found.gaps, phrases("folder_nothing")]))
    return (yield from keep_notes(found.notes, found.gaps, folder, phrases))


def folder_in(task: TaskData) -> str:
    """Return the folder that a task's files belong in, with a slash at its end; empty when it names none."""
    return f"{task.folder}/" if task.folder else ""


def _overview(state: ScriptState, wish: Wish) -> Script:
    phrases = Phrases(wish.language)
    kind = match[1].lower() if (match := LIST_WORDS.search(state.task.words)) else wish.story_list
    searched = SEARCH_WORDS.search(state.task.words)
    words, since = (searched[1], searched[2] or "") if searched else (wish.topic, "")
    calls = [Ask("get_hn_stories", {"story_type": kind, "limit": LIST_LIMIT})]
    if words:
        calls.append(Ask("search_hn", {"query": words} | ({"since": since} if since else {})))
    answers = yield Step(calls=tuple(calls))
    gaps: list[str] = []
    found: dict[int, ListedStory] = {}
    for answer, key in zip(answers, ("list_failed", "search_failed"), strict=False):
        if answer.is_error:
            gaps.append(phrases(key, words=words, why=short_reason(answer.text)))
        for story in listed_stories(answer):
            found.setdefault(story.id, story)
    path = f"{folder_in(state.task)}overview.md"
    title = f"Hacker News, {kind}" + (f", “{harmless(words)}”" if words else "")
    content = write_overview(title, list(found.values()), gaps, phrases)
    yield Step(calls=(Ask("write_file", {"filepath": path, "content": content, "mode": "overwrite"}),))
    by_points = sorted(found.values(), key=lambda story: -story.points)
    leading = "; ".join(f"{story.title} ({story.points} points, [{story.source}])" for story in by_points[:5])
    summary = f"{len(found)} stories are listed in {path}. Highest by points: {leading or 'none'}."
    return _with_gaps(summary, gaps)


def _with_gaps(summary: str, gaps: Sequence[str]) -> str:
    return f"{summary}\nNot known: {'; '.join(gaps[:6])[:700]}" if gaps else summary


def _look_closely(state: ScriptState, stories: Sequence[ListedStory], wish: Wish) -> Script:
    """Read each story's article and thread side by side; write its file while the next is read."""
    phrases, folder = Phrases(wish.language), folder_in(state.task)
    notes: list[ResearchNote] = []
    writing: tuple[Ask, ...] = ()
    for story in stories:
        if state.is_hurried:
            break
        reading = _reading_calls(story)
        answers = yield Step(calls=(*writing, *reading))
        note = _note_on(
            story, dict(zip((call.tool for call in reading), answers[len(writing) :], strict=True)), phrases
        )
        notes.append(note)
        path = f"{folder}{'-'.join(part for part in (str(story.id), slug(story.title)) if part)}.md"
        content = write_note(note, phrases)
        writing = (Ask("write_file", {"filepath": path, "content": content, "mode": "overwrite"}),)
    if writing:
        yield Step(calls=writing)
    read = [note.title for note in notes if note.has_text]
    gaps = [gap for note in notes for gap in note.unknown]
    if len(notes) < len(stories):
        gaps.append(phrases("stopped"))
    summary = f"{len(notes)} stories looked at; text to quote was found for {len(read)}: {'; '.join(read) or 'none'}."
    return _with_gaps(summary[:1200], gaps)


def _reading_calls(story: ListedStory) -> tuple[Ask, ...]:
    thread = Ask(COMMENTS, {"post_id": str(story.id), "platform": "hackernews", "limit": COMMENT_LIMIT})
    return (Ask("read_webpage", {"url": story.url}), thread) if story.url else (thread,)


def _note_on(story: ListedStory, answers: dict[str, ToolAnswer], phrases: Phrases) -> ResearchNote:
    article, gaps = _article(story, answers.get("read_webpage"), phrases)
    thread, missing = _thread(story, answers.get(COMMENTS), phrases)
    post: list[NoteQuote] = []
    discussion: list[NoteQuote] = []
    if thread is not None:
        words = best_sentences(thread.text, story.title, POST_SENTENCES)
        post = _unlike(article, _quotes(words, thread))
        discussion = choose_remarks(thread)
    return ResearchNote(
        title=story.title,
        story=story,
        article=tuple(article),
        post=tuple(post),
        discussion=tuple(discussion),
        unknown=(*gaps, *missing),
    )


def _article(story: ListedStory, answer: ToolAnswer | None, phrases: Phrases) -> tuple[list[NoteQuote], list[str]]:
    if answer is None:
        return [], []
    page = None if answer.is_error else page_read(answer)
    if page is None:
        return [], [phrases("no_article", title=story.title, why=short_reason(answer.text))]
    quotes = _quotes(best_sentences(page.text, story.title, ARTICLE_SENTENCES), page)
    return quotes, page_gaps(page, story.title, phrases, has_quotes=bool(quotes))


def page_gaps(page: ReadPage, title: str, phrases: Phrases, *, has_quotes: bool) -> list[str]:
    """Return what a reader should know about a page's completeness."""
    gaps: list[str] = []
    flags = ", ".join(flag for flag in page.flags.split(", ") if flag and flag != "sample")
    if flags:
        gaps.append(phrases("flagged", title=title, flags=flags))
    if page.read_chars < page.all_chars:
        gaps.append(phrases("part_read", title=title, read=page.read_chars, all=page.all_chars))
    if not has_quotes:
        gaps.append(phrases("no_quote", title=title))
    return gaps


def _thread(story: ListedStory, answer: ToolAnswer | None, phrases: Phrases) -> tuple[ReadThread | None, list[str]]:
    if answer is None:
        return None, []
    thread = None if answer.is_error else thread_read(answer)
    if thread is None:
        return None, [phrases("no_thread", title=story.title, why=short_reason(answer.text))]
    if thread.total and not thread.remarks:
        return thread, [phrases("no_comment_text", title=story.title, total=thread.total)]
    return thread, []


def _quotes(sentences: Sequence[str], origin: ReadPage | ReadThread) -> list[NoteQuote]:
    return [made for sentence in sentences if (made := quote(sentence, origin.source))]


def _unlike(known: Sequence[NoteQuote], quotes: Sequence[NoteQuote]) -> list[NoteQuote]:
    """Return the quotes that repeat none of the known ones: a post often repeats its article."""
    bags = [set(words_of(one.text)) for one in known]
    return [one for one in quotes if all(overlap(set(words_of(one.text)), bag) < TOO_ALIKE for bag in bags)]


def choose_remarks(thread: ReadThread) -> list[NoteQuote]:
    """Return the best comment with the reply that contradicts it best, and the next best comment of another branch."""
    scored = sorted(
        ((_remark_score(thread, index), -index) for index in range(len(thread.remarks))),
        reverse=True,
    )
    tops = [-index for score, index in scored if score > 0 and thread.remarks[-index].depth == 0]
    if not tops:
        tops = [-index for score, index in scored if score > 0]
    chosen: list[NoteQuote] = []
    for top in tops[:2]:
        chosen += _with_reply(thread, top)
    return chosen[:3]


def _with_reply(thread: ReadThread, index: int) -> list[NoteQuote]:
    remark = thread.remarks[index]
    quoted_remark = quote(opening(remark.text, REMARK_CHARS), thread.source, remark.author)
    if quoted_remark is None:
        return []
    others = [other for other in thread.remarks if other.parent == index and other.author != remark.author]
    # Who contradicts comes first; then whoever says most.
    others.sort(key=lambda other: (not DISAGREES.search(other.text), -min(len(other.text), 2 * REMARK_CHARS)))
    answers = [quote(opening(other.text, REMARK_CHARS), thread.source, other.author, is_reply=True) for other in others]
    return [quoted_remark, *[answer for answer in answers if answer and len(answer.text) >= MIN_REPLY_CHARS][:1]]


def _remark_score(thread: ReadThread, index: int) -> float:
    """Substance: length up to a point, replies, rank, a number; nothing when it has no sentence to quote."""
    remark: Remark = thread.remarks[index]
    first = opening(remark.text, REMARK_CHARS)
    if not first or not is_quotable(first[:320]):
        return 0.0
    replies = sum(1 for other in thread.remarks if other.parent == index)
    substance = min(len(set(words_of(remark.text))), 50) / 50
    return substance + 0.25 * min(replies, 3) + 0.6 / (1 + index / 4) + (0.15 if re.search(r"\d", first) else 0.0)
