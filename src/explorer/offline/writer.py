"""The rule-driven writer: a ranked list of stories, or passages that meet a question, and answers to follow-ups."""

import math
import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace

from explorer.offline.documents import ReadDocument, context_files, passages_about, sections_of
from explorer.offline.folder import SUMMARIZED_DOCUMENTS
from explorer.offline.phrases import Phrases
from explorer.offline.question import URL, Wish, understand_task
from explorer.offline.reading import ListedStory, harmless, stories_in
from explorer.offline.script_state import Script, ScriptState, Step, ToolAnswer, read_files, writing
from explorer.offline.sections import figures, heading_of, quotes_in, split_gaps, story_heading, title_of, unknown
from explorer.sources.threads import without_heads
from explorer.text.frontmatter import split_frontmatter
from explorer.text.sanitize import single_line
from explorer.text.words import CJK_LETTER, GERMAN_WORDS, words_of

REPORT = "report.md"
LEAD_TITLES = 3
ALSO_STORIES = 10
MAX_SECTIONS = 6
MAX_TITLE_CHARS = 120
MIN_ARGUED = 50
"""The least number of comments of a story that is called argued about; it must have more comments than points, too."""
MIN_FORM_CHARS = 4
ENDING_CHARS = 2
"""Letters by which two forms of a word differ at their ends."""
GAP_LINE = re.compile(r"^Gap: (.+)$", re.MULTILINE)
FOLLOW_LINE = re.compile(r"^Follow-up: (.+)$", re.MULTILINE)
FOR_FOLLOW_UP = "These files were made for the follow-up."
FROM_FILES = "The question is about the user's own files."


def notability(story: ListedStory) -> float:
    """Return a score of points and comments, each on a log scale, so that neither decides alone."""
    return math.log1p(story.points) + 0.7 * math.log1p(story.comments)


def most_notable(stories: Iterable[ListedStory]) -> list[ListedStory]:
    """Return stories by notability; of two with one title or one address the better stays."""
    seen: set[str] = set()
    kept: list[ListedStory] = []
    for story in sorted(stories, key=lambda story: (-notability(story), story.id)):
        marks = {" ".join(words_of(story.title)), story.link}
        if not marks & seen:
            kept.append(story)
        seen |= marks
    return kept


def about(stories: Sequence[ListedStory], words: Iterable[str]) -> list[ListedStory]:
    """Return the stories whose title or address shares words with a topic: those with most of them."""
    wanted = set(words)
    shared = {story.page: len(wanted & set(words_of(f"{story.title} {story.url}"))) for story in stories}
    most = max(shared.values(), default=0)
    enough = max(1, min(most, (len(wanted) + 1) // 2))
    return [story for story in stories if shared[story.page] >= enough] if most else []


def ranked_stories(texts: Iterable[str], wish: Wish) -> list[ListedStory]:
    """Return the listed stories that a question is about, the biggest first."""
    stories = {story.page: story for text in texts for story in stories_in(text.splitlines())}
    listed = about(list(stories.values()), wish.topic_words) if wish.topic else list(stories.values())
    return most_notable(listed)


def write(state: ScriptState) -> Script:
    """Do one task: the report, or an answer to a follow-up at its end."""
    texts = yield from read_files(state, context_files(state.task))
    wish, words = understand_task(state.task), state.task.words
    if follow := FOLLOW_LINE.search(words):
        content = follow_up(wish, follow[1], (yield from _follow_up_sections(state, follow[1], texts)))
        yield write_report(content, mode="append")
        return f"An answer to the follow-up was added to {REPORT}: {len(quotes_in(content))} quotes."
    content = report_of(wish, texts, GAP_LINE.findall(words), from_files=FROM_FILES in words)
    yield write_report(content)
    return f"{REPORT} is written: {first_words(content)}"


def write_report(content: str, mode: str = "overwrite") -> Step:
    """Return the turn that writes the report."""
    return Step(calls=(writing(REPORT, content, mode),))


def report_of(wish: Wish, texts: dict[str, str], gaps: Sequence[str] = (), *, from_files: bool = False) -> str:
    """Return the report that helpers' files give."""
    phrases = Phrases(wish.language)
    parts = [split_gaps(text) for text in texts.values()]
    sections = [
        body for body, _ in parts if body.startswith("# ") and "[S" in body and not stories_in(body.splitlines())
    ]
    all_gaps = [*gaps, *(gap for _, found in parts for gap in found)]
    sample = f" {phrases('sample')}" if wish.is_sample else ""
    notice = [f"*{phrases('notice')}*{sample}", ""]
    if wish.kind.lists_stories and not from_files:
        lines = _story_report(wish, list(texts.values()), sections, notice, all_gaps)
    else:
        all_gaps += [] if from_files or sections or URL.search(wish.question) else [phrases("configure")]
        is_whole = not wish.has_subject and bool(from_files or URL.search(wish.question))
        lines = _passage_report(wish, sections, notice, all_gaps, is_whole=is_whole)
    return "\n".join(lines).strip() + "\n"


def _story_report(
    wish: Wish, texts: Sequence[str], sections: Sequence[str], notice: list[str], gaps: list[str]
) -> list[str]:
    phrases, ranked = Phrases(wish.language), ranked_stories(texts, wish)
    of_story = {story_heading(story): story for story in ranked}
    by_heading = {heading_of(section): section for section in sections}
    shown = [heading for heading in of_story if heading in by_heading]
    lines = [f"# {_title(wish, ranked, phrases)}", "", *notice, *_lead(ranked, wish, phrases)]
    for number, heading in enumerate(shown, 1):
        lines += [f"## {number}. {by_heading[heading].removeprefix('# ').strip()}", ""]
    others = [story for heading, story in of_story.items() if heading not in shown]
    others = others[: 0 if wish.is_counted and shown else ALSO_STORIES]
    if others:
        entries = [f"- {story_heading(one)}: {figures(one, phrases)}" for one in others]
        lines += [f"## {phrases('also')}", "", *entries, ""]
    named = {word for story in ranked for word in words_of(f"{story.title} {story.url}")}
    # Electric shocks are a find for `electric cars`, and not one about cars.
    missing = [word for word in dict.fromkeys(words_of(wish.topic)) if word in wish.topic_words and word not in named]
    # Of scripts without spaces there are pairs of characters, which nobody wants to read.
    if ranked and (shown_words := [word for word in missing if not CJK_LETTER.match(word)]):
        gaps.append(phrases("titles_missing", words=", ".join(shown_words[:8])))
    if not ranked:
        count = len({story.page for text in texts for story in stories_in(text.splitlines())})
        gaps.append(phrases("looked_through", count=count) if count else phrases("check_network"))
    return lines + unknown(gaps, phrases)


def _title(wish: Wish, ranked: Sequence[ListedStory], phrases: Phrases) -> str:
    key = "title_topic" if wish.topic else "title_stories"
    title = phrases(key, place=wish.place, topic=harmless(wish.topic))
    times = [story.time for story in ranked if story.time]
    # The stories of a page are those of its day; what was searched for can be of any.
    first = phrases.day(min(times, default="")) if wish.topic or wish.days > 1 else ""
    last = phrases.day(max(times, default=""))
    day = last if first in {"", last} else f"{first} \u2013 {last}"
    return title + (phrases("on_day", day=day) if day else "")


def _lead(ranked: Sequence[ListedStory], wish: Wish, phrases: Phrases) -> list[str]:
    """Return the answer in a few lines: what is biggest, and what is argued about."""
    if not ranked:
        return [phrases("nothing_on", topic=harmless(wish.topic)) if wish.topic else phrases("nothing"), ""]
    named = phrases("separator").join(f"“{story.title}” [{story.source}]" for story in ranked[:LEAD_TITLES])
    sentences = [phrases("lead", titles=named)]
    argued = [story for story in ranked if story.comments >= MIN_ARGUED and story.comments > story.points]
    if len(ranked) > LEAD_TITLES and argued:
        one = max(argued, key=lambda story: story.comments)
        facts = {"comments": one.comments, "points": one.points, "cite": f"[{one.source}]"}
        sentences.append(phrases("lead_argued", title=f"“{one.title}”", **facts))
    return [("" if phrases.language == "zh" else " ").join(sentences), ""]


def _passage_report(
    wish: Wish, sections: Sequence[str], notice: list[str], gaps: list[str], *, is_whole: bool
) -> list[str]:
    phrases = Phrases(wish.language)
    title = harmless(single_line(wish.question))
    title = title if len(title) <= MAX_TITLE_CHARS else f"{title[:MAX_TITLE_CHARS].rsplit(' ', 1)[0]} ..."
    lines = [f"# {title}", "", *notice]
    shown = [section for section in sections if quotes_in(section)]
    shown = shown[: SUMMARIZED_DOCUMENTS if is_whole else MAX_SECTIONS]
    if not shown:
        return [*lines, phrases("nothing"), "", *unknown(gaps, phrases)]
    best = quotes_in(shown[0])[0]
    if is_whole:
        lines += [phrases("gist"), ""]
    else:
        lines += [phrases("best_passage", text=best.text, cite=f"[{best.source}]"), "", phrases("best_match"), ""]
    for section in shown:
        lines += [f"#{section}", ""]
    found = set(words_of(" ".join(shown)))
    known = found | (GERMAN_WORDS if phrases.language == "de" else frozenset[str]())
    asked = {} if is_whole else dict.fromkeys(words_of(wish.subject))
    missing = [one for one in asked if one not in known and not re.search(r"\d", one) and not _is_form(one, found)]
    if missing and phrases.language != "zh":
        gaps.append(phrases("words_missing", words=", ".join(missing[:8])))
    return lines + unknown(gaps, phrases)


def _is_form(word: str, found: Iterable[str]) -> bool:
    """Return whether a word is there in another form: `file` and `filed`, `supplied` and `supplier`."""
    start = word[: max(MIN_FORM_CHARS, len(word) - ENDING_CHARS)]
    return len(word) >= MIN_FORM_CHARS and any(
        one.startswith(start) and len(one) <= len(word) + ENDING_CHARS for one in found
    )


def _follow_up_sections(
    state: ScriptState, message: str, texts: dict[str, str]
) -> Generator[Step, Sequence[ToolAnswer], list[str]]:
    """Return what the stored sources behind the files say about a follow-up, or the sections made for it."""
    wish = understand_task(state.task)
    bodies = [body for text in texts.values() if "[S" in (body := split_gaps(text)[0])]
    bodies = [body for body in bodies if not stories_in(body.splitlines())]
    if FOR_FOLLOW_UP in state.task.words:
        order = [story_heading(story) for story in ranked_stories(texts.values(), replace(wish, topic=""))]
        return sorted(bodies, key=lambda body: order.index(head) if (head := heading_of(body)) in order else len(order))
    owner = {one.source: title_of(body) for body in reversed(bodies) for one in quotes_in(body)}
    paths = {f".explorer/sources/{source}.md": source for source in owner}
    stored = {} if state.is_hurried or not paths else (yield from read_files(state, list(paths)))
    documents = [
        ReadDocument(owner[paths[path]], paths[path], "", without_heads(split_frontmatter(text).body))
        for path, text in stored.items()
    ]
    found = sections_of(passages_about(documents, message), Phrases(wish.language))
    return [text for _, text in found] or bodies


def follow_up(wish: Wish, message: str, sections: Sequence[str]) -> str:
    """Return the part of the report that answers a follow-up."""
    phrases = Phrases(wish.language)
    lines = ["", f"## {phrases('follow_up', question=harmless(single_line(message))[:MAX_TITLE_CHARS])}", ""]
    for section in sections[:MAX_SECTIONS]:
        lines += [f"##{section.strip()}", ""]
    is_about_stories = wish.kind.lists_stories and any("](<" in heading_of(section) for section in sections)
    last = [] if is_about_stories else [phrases("best_match" if sections else "nothing"), ""]
    return "\n".join([*lines, *last])


def links_of(report: str) -> list[str]:
    """Return the addresses of a report's headings, best first."""
    return re.findall(r"^##+ (?:\d+\. )?\[.*\]\(<(https?://[^>]+)>\)$", report, re.MULTILINE)


def first_words(report: str) -> str:
    """Return what a report says in its first lines, without the notice: for the summary of the run."""
    lines = [line for line in report.splitlines() if line.strip() and not line.startswith(("#", "*", "---"))]
    return harmless(lines[0])[:600] if lines else ""
