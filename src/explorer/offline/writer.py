"""The rule-driven writer: a ranked list of stories, or passages that meet a question, and answers to follow-ups."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from explorer.offline.analyzer import about, context_files, most_notable, notability, stories_of
from explorer.offline.notes import FRESH_HOURS, NoteQuote, ResearchNote, gaps_in, numbers_line, read_note
from explorer.offline.passages import passages_about
from explorer.offline.phrases import PHRASES, Phrases
from explorer.offline.question import URL, QuestionKind, Wish, understand_task
from explorer.offline.reading import ListedStory, harmless
from explorer.offline.script_state import Ask, Script, ScriptState, Step, read_files
from explorer.sources.threads import without_heads
from explorer.text.frontmatter import split_frontmatter
from explorer.text.ranking import rank_by_query
from explorer.text.sanitize import single_line
from explorer.text.words import words_of

MAX_GAPS = 10
LEAD_TITLES = 3
ALSO_STORIES = 6
FEW_GAPS = 1
NAMED_GAPS = 6
GATHERED = {"no_article": "no_articles", "no_thread": "no_threads", "no_comment_text": "no_comment_texts"}
"""Kinds of gaps that many stories share, and the phrase for many."""
MAX_TITLE_CHARS = 120
MAX_PASSAGE_NOTES = 6


@dataclass(frozen=True)
class Findings:
    """The parts of a report."""

    notes: Sequence[ResearchNote]
    themes: Sequence[str] = ()
    """Lines of the analysis, citations included."""
    gaps: Sequence[str] = ()
    others: Sequence[ListedStory] = ()
    """Listed, not looked at closely."""
    listed: int = 0
    """How many stories were listed in all."""


def compose(wish: Wish, findings: Findings, *, is_about_stories: bool) -> str:
    """Return the text of the report."""
    phrases = Phrases(wish.language)
    lines = _story_report(wish, findings, phrases) if is_about_stories else _passage_report(wish, findings, phrases)
    return "\n".join(lines).strip() + "\n"


def _notice(wish: Wish, phrases: Phrases) -> list[str]:
    sample = f" {phrases('sample')}" if wish.is_sample else ""
    return [f"*{phrases('notice')}*{sample}", ""]


def _story_report(wish: Wish, findings: Findings, phrases: Phrases) -> list[str]:
    ranked = sorted((note for note in findings.notes if note.story), key=lambda note: -notability(note.story))
    chosen, rest = _best(ranked, wish)
    shown = ranked if not wish.is_counted else chosen
    lines = [f"# {_story_title(wish, chosen, phrases)}", "", *_notice(wish, phrases), *_lead(shown, wish, phrases)]
    for number, note in enumerate(chosen, 1):
        lines += _story(number, note, phrases)
    if rest:
        lines += [f"## {phrases('also')}", "", *(_also(note, phrases) for note in rest[:ALSO_STORIES]), ""]
    if findings.themes and len(chosen) > 1:
        lines += [f"## {phrases('themes')}", "", *findings.themes, ""]
    gaps = [gap for note in [*chosen, *rest] for gap in note.unknown] + list(findings.gaps)
    if not ranked:
        listed = findings.listed
        gaps.append(phrases("looked_through", count=listed) if listed else phrases("check_network"))
    if findings.others:
        gaps.append(phrases("stories_beyond", count=len(findings.others)))
    if any(note.discussion for note in chosen):
        gaps.append(phrases("threads_cut"))
    return lines + _unknown(gaps, phrases)


def _best(ranked: Sequence[ResearchNote], wish: Wish) -> tuple[list[ResearchNote], list[ResearchNote]]:
    """Split stories into those reported in full and the rest; without a number asked for, those with text first."""
    order = list(ranked) if wish.is_counted else sorted(ranked, key=lambda note: not note.has_text)
    chosen = order[: wish.count]
    if not wish.is_counted and any(note.has_text for note in chosen):
        chosen = [note for note in chosen if note.has_text]
    chosen.sort(key=ranked.index)
    return chosen, [note for note in ranked if note not in chosen]


def _story_title(wish: Wish, chosen: Sequence[ResearchNote], phrases: Phrases) -> str:
    if wish.topic:
        title = phrases("title_topic", topic=harmless(wish.topic))
    elif len(chosen) == 1:
        title = phrases("title_one", title=chosen[0].title)
    else:
        title = phrases("title_top" if wish.is_counted else "title_stories", count=len(chosen))
    latest = max((note.story.time for note in chosen if note.story), default="")
    day = phrases.day(latest)
    return title + (phrases("on_day", day=day) if day else "")


def _lead(chosen: Sequence[ResearchNote], wish: Wish, phrases: Phrases) -> list[str]:
    """Return the answer in a few lines: what leads, what is argued about, what rises."""
    stories = [note.story for note in chosen if note.story]
    if not stories:
        words = phrases("nothing_on", topic=harmless(wish.topic)) if wish.topic else phrases("nothing")
        return [words, ""]
    named = phrases("separator").join(f"{_short(story)} [{story.source}]" for story in stories[:LEAD_TITLES])
    sentences = [phrases("lead", titles=named)]
    if len(stories) > LEAD_TITLES:
        argued = max(stories, key=lambda story: (story.comments / max(story.points, 1), -story.id))
        fresh = [story for story in stories if story.age_hours <= FRESH_HOURS]
        sentences.append(
            phrases(
                "lead_argued",
                title=_short(argued),
                comments=argued.comments,
                points=argued.points,
                cite=f"[{argued.source}]",
            )
        )
        if fresh:
            rising = max(fresh, key=lambda story: (story.velocity, -story.id))
            sentences.append(phrases("lead_rising", title=_short(rising), cite=f"[{rising.source}]"))
    return [("" if phrases.language == "zh" else " ").join(sentences), ""]


def _short(story: ListedStory) -> str:
    return f"“{story.title}”"


def _story(number: int, note: ResearchNote, phrases: Phrases) -> list[str]:
    story = note.story
    assert story is not None
    lines = [f"## {number}. [{note.title}](<{story.link}>)", ""]
    lines += [f"**{phrases('why')}{phrases('colon')}** {numbers_line(story, phrases)}", ""]
    for key, quotes in (("article", note.article), ("post", note.post), ("discussion", note.discussion)):
        if quotes:
            where = f" ({story.site})" if key == "article" and story.site else ""
            lines += [f"**{phrases(key)}**{where}", "", *(quote.line(phrases) for quote in quotes), ""]
    if not note.has_text:
        lines += [f"{phrases(_missing(note)).capitalize()}{phrases('stop')}", ""]
    return lines


def _missing(note: ResearchNote) -> str:
    """Return the phrase for a story without text: it could not be read, or nobody tried."""
    return "no_text" if note.unknown else "not_looked"


def _also(note: ResearchNote, phrases: Phrases) -> str:
    story = note.story
    assert story is not None
    numbers = phrases("numbers", points=story.points, comments=story.comments, cite=f"[{story.source}]")
    missing = "" if note.has_text else f"{phrases('separator')}{phrases(_missing(note))}"
    return f"- [{note.title}](<{story.link}>): {numbers}{missing}"


def _passage_report(wish: Wish, findings: Findings, phrases: Phrases) -> list[str]:
    title = harmless(single_line(wish.question))
    title = title if len(title) <= MAX_TITLE_CHARS else f"{title[:MAX_TITLE_CHARS].rsplit(' ', 1)[0]} ..."
    lines = [f"# {title}", "", *_notice(wish, phrases)]
    with_passages = _by_fit([note for note in findings.notes if note.passages], wish)[:MAX_PASSAGE_NOTES]
    if with_passages:
        best = _closest(with_passages, wish)
        lines += [f"{phrases('best_passage')} “{best.text}” [{best.source}]", "", phrases("best_match"), ""]
    elif not any(note.story for note in findings.notes):
        lines += [phrases("nothing"), ""]
    for note in with_passages:
        lines += [f"## {note.title}", ""]
        lines += [f"[{note.source}] {note.about}", ""] if note.about else []
        lines += [*(quote.line(phrases) for quote in note.passages), ""]
    stories = [note for note in findings.notes if note.story and not note.passages]
    if stories:
        lines += ["## Hacker News", "", *(_also(note, phrases) for note in stories), ""]
    gaps = [gap for note in findings.notes for gap in note.unknown] + list(findings.gaps)
    if with_passages:
        gaps += [*_words_missing(with_passages, wish, phrases), phrases("only_extracted")]
    elif not URL.search(wish.question):
        gaps.append(phrases("configure"))
    return lines + _unknown(gaps, phrases)


def _by_fit(notes: Sequence[ResearchNote], wish: Wish) -> list[ResearchNote]:
    texts = [f"{note.title} {' '.join(quote.text for quote in note.passages)}" for note in notes]
    order = [index for _, index in rank_by_query(texts, words_of(wish.question))]
    return [notes[index] for index in order] + [note for index, note in enumerate(notes) if index not in order]


def _closest(notes: Sequence[ResearchNote], wish: Wish) -> NoteQuote:
    quotes = [quote for note in notes for quote in note.passages]
    ranked = rank_by_query([quote.text for quote in quotes], words_of(wish.question))
    return quotes[ranked[0][1]] if ranked else quotes[0]


def _words_missing(notes: Sequence[ResearchNote], wish: Wish, phrases: Phrases) -> list[str]:
    found = {word for note in notes for quote in note.passages for word in words_of(f"{note.title} {quote.text}")}
    missing = [word for word in dict.fromkeys(words_of(wish.question)) if word not in found]
    if not missing or phrases.language == "zh":
        return []
    return [phrases("words_missing", words=", ".join(missing[:8]))]


def _unknown(gaps: Iterable[str], phrases: Phrases) -> list[str]:
    kept = _gathered(dict.fromkeys(gap.strip().rstrip(".。") for gap in gaps if gap.strip()), phrases)[:MAX_GAPS]
    return [f"## {phrases('unknown')}", "", *(f"- {gap}{phrases('stop')}" for gap in kept)] if kept else []


def _gathered(gaps: Iterable[str], phrases: Phrases) -> list[str]:
    """Gaps of one kind on one line, where there are many of them."""
    lines: list[str] = []
    kinds: dict[str, dict[str, str]] = {key: {} for key in GATHERED}
    for gap in gaps:
        kind = next((key for key in GATHERED if phrases.matches(key, gap)), "")
        if kind:
            kinds[kind][phrases.matches(kind, gap)] = gap
        else:
            lines.append(gap)
    for kind, by_title in kinds.items():
        if len(by_title) <= FEW_GAPS:
            lines += by_title.values()
        else:
            lines.append(phrases(GATHERED[kind], titles=_title_list(list(by_title), phrases)))
    return lines


def _title_list(titles: Sequence[str], phrases: Phrases) -> str:
    named = [f"“{title}”" for title in titles[:NAMED_GAPS]]
    more = [phrases("and_more", count=len(titles) - NAMED_GAPS)] if len(titles) > NAMED_GAPS else []
    return phrases("separator").join([*named, *more])


def follow_up(message: str, quotes: Sequence[tuple[str, NoteQuote]], language: str) -> str:
    """Return the section that answers a follow-up: passages with the title each is from."""
    phrases = Phrases(language)
    lines = ["", f"## {phrases('follow_up', question=harmless(single_line(message))[:MAX_TITLE_CHARS])}", ""]
    if not quotes:
        return "\n".join([*lines, phrases("follow_none"), ""])
    titles = list(dict.fromkeys(title for title, _ in quotes))
    for title in titles:
        lines += [f"**{title}**", "", *(quote.line(phrases) for name, quote in quotes if name == title), ""]
    return "\n".join([*lines, phrases("best_match"), ""])


def links_of(report: str) -> list[str]:
    """Return the addresses of a report's headings, best first."""
    return re.findall(r"^## \d+\. \[.*\]\(<(https?://[^>]+)>\)$", report, re.MULTILINE)


def first_words(report: str) -> str:
    """Return what a report says in its first lines, without the notice: for the summary of the run."""
    lines = [line for line in report.splitlines() if line.strip() and not line.startswith(("#", "*", "---"))]
    return harmless(lines[0])[:600] if lines else ""


REPORT = "report.md"
GAP_LINE = re.compile(r"^Gap: (.+)$", re.MULTILINE)
FOLLOW_LINE = re.compile(r"^Follow-up: (.+)$", re.MULTILINE)
FROM_FILES = "The question is about the user's own files."
THEME_HEADINGS = tuple(f"## {words}" for words in PHRASES["themes"])
FOLLOW_NOTES = 3
FOLLOW_PASSAGES = 3
FOLLOW_SHARE = 0.6
"""Share of the best note's score that another note must have."""


def write(state: ScriptState) -> Script:
    """Do one task: the report, or an answer to a follow-up at its end."""
    texts = yield from read_files(state, context_files(state.task))
    follow = FOLLOW_LINE.search(state.task.words)
    if follow:
        return (yield from _answer(state, follow[1], texts))
    content = report_of(
        understand_task(state.task),
        texts,
        GAP_LINE.findall(state.task.words),
        from_files=FROM_FILES in state.task.words,
    )
    yield write_report(content)
    return f"{REPORT} is written: {first_words(content)}"


def write_report(content: str, mode: str = "overwrite") -> Step:
    """Return the turn that writes the report."""
    return Step(calls=(Ask("write_file", {"filepath": REPORT, "content": content, "mode": mode}),))


def report_of(wish: Wish, texts: dict[str, str], gaps: Sequence[str] = (), *, from_files: bool = False) -> str:
    """Return the report that helpers' files give."""
    notes = [note for text in texts.values() if (note := read_note(text))]
    is_about_stories = wish.kind is QuestionKind.HACKER_NEWS and not from_files
    shown = {note.story.id for note in notes if note.story}
    all_listed = stories_of(texts)
    listed = [story for story in all_listed if story.id not in shown]
    if wish.topic:
        listed = about(listed, wish.topic_words)
    beyond = most_notable(listed) if not shown or not wish.is_counted else []
    if is_about_stories and not shown and beyond:
        # The run was stopped before any story was looked at: what the list itself says is better than nothing.
        notes += [ResearchNote(title=story.title, story=story) for story in beyond[: wish.count]]
        beyond = beyond[wish.count :]
    all_gaps = [*gaps, *(gap for text in texts.values() if not read_note(text) for gap in gaps_in(text))]
    themes = [line for text in texts.values() for line in _themes(text)] if not wish.topic else []
    findings = Findings(notes=notes, themes=themes, gaps=all_gaps, others=beyond, listed=len(all_listed))
    return compose(wish, findings, is_about_stories=is_about_stories)


def _themes(text: str) -> list[str]:
    lines = text.splitlines()
    start = next((index for index, line in enumerate(lines) if line in THEME_HEADINGS), len(lines))
    found: list[str] = []
    for line in lines[start + 1 :]:
        if line.startswith("#"):
            break
        if line.startswith("- **"):
            found.append(line)
    return found


def _answer(state: ScriptState, message: str, texts: dict[str, str]) -> Script:
    """Passages that meet the follow-up: from the stored sources behind the notes that fit it best."""
    wish = understand_task(state.task)
    notes = [note for text in texts.values() if (note := read_note(text)) and (note.has_text or note.story)]
    fitting = _fitting(notes, message)
    owner = {source: note.title for note in reversed(fitting) for source in _sources(note)}
    stored: dict[str, str] = {}
    if owner and not state.is_hurried:
        stored = yield from read_files(state, [f".explorer/sources/{source}.md" for source in owner])
    quotes = [
        (owner[source], quoted)
        for source in owner
        for quoted in passages_about(
            _plain(stored.get(f".explorer/sources/{source}.md", "")), message, source, FOLLOW_PASSAGES
        )
    ]
    quotes = quotes or [(note.title, quoted) for note in fitting for quoted in _quotes(note)[:2]]
    content = follow_up(message, quotes, wish.language)
    yield write_report(content, mode="append")
    return f"An answer to the follow-up was added to {REPORT}: {len(quotes)} passages from {len(fitting)} notes."


def _fitting(notes: Sequence[ResearchNote], message: str) -> list[ResearchNote]:
    candidates = [f"{note.title} {' '.join(quoted.text for quoted in _quotes(note))}" for note in notes]
    ranked = rank_by_query(candidates, words_of(message))[:FOLLOW_NOTES]
    return [notes[index] for score, index in ranked if score >= FOLLOW_SHARE * ranked[0][0]]


def _quotes(note: ResearchNote) -> list[NoteQuote]:
    return [*note.article, *note.post, *note.passages, *note.discussion]


def _sources(note: ResearchNote) -> list[str]:
    """Return the sources with text behind a note."""
    return list(dict.fromkeys(quoted.source for quoted in _quotes(note)))


def _plain(stored: str) -> str:
    """Return a stored source without its frontmatter, comments without their heads."""
    return without_heads(split_frontmatter(stored).body)
