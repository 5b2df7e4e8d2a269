"""Reports composed by rule: a ranked list of stories, or passages that meet a question."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from explorer.offline.notes import FRESH_HOURS, NoteQuote, ResearchNote, numbers_line
from explorer.offline.phrases import Phrases
from explorer.offline.question import URL, Wish
from explorer.offline.ranking import notability
from explorer.offline.reading import ListedStory, harmless
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
    """What a report is made of."""

    notes: Sequence[ResearchNote]
    themes: Sequence[str] = ()
    """Lines of the analysis, citations included."""
    gaps: Sequence[str] = ()
    others: Sequence[ListedStory] = ()
    """Listed, not looked at closely."""
    listed: int = 0
    """How many stories were listed in all."""


def compose(wish: Wish, findings: Findings, *, is_about_stories: bool) -> str:
    """The report."""
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
    """Those that are told in full, and the rest: when the number is ours, stories with text come first."""
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
    """The answer in a few lines: what leads, what is argued about, what rises."""
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
    """The phrase for a story without text: it could not be read, or nobody tried."""
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
    """The section that answers a follow-up: passages with the title each is from."""
    phrases = Phrases(language)
    lines = ["", f"## {phrases('follow_up', question=harmless(single_line(message))[:MAX_TITLE_CHARS])}", ""]
    if not quotes:
        return "\n".join([*lines, phrases("follow_none"), ""])
    titles = list(dict.fromkeys(title for title, _ in quotes))
    for title in titles:
        lines += [f"**{title}**", "", *(quote.line(phrases) for name, quote in quotes if name == title), ""]
    return "\n".join([*lines, phrases("best_match"), ""])


def links_of(report: str) -> list[str]:
    """The addresses of a report's headings, best first."""
    return re.findall(r"^## \d+\. \[.*\]\(<(https?://[^>]+)>\)$", report, re.MULTILINE)


def first_words(report: str) -> str:
    """What a report says in its first lines, without the notice: for the summary of the run."""
    lines = [line for line in report.splitlines() if line.strip() and not line.startswith(("#", "*", "---"))]
    return harmless(lines[0])[:600] if lines else ""
