"""The rule-driven roles that read files: the analyzer ranks stories and finds themes or passages, others keep notes."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from explorer.offline.notes import NoteQuote, ResearchNote, gaps_in, quote, read_note, slug, write_note
from explorer.offline.phrases import Phrases
from explorer.offline.question import understand_task
from explorer.offline.reading import ListedStory, stories_in, story_entry
from explorer.offline.script_state import Ask, Script, ScriptState, Step, read_files
from explorer.offline.searcher import folder_in
from explorer.offline.text import is_quotable, names_in, sentences_of, unwrapped
from explorer.schema.messages import TaskData
from explorer.text.ranking import rank_by_query
from explorer.text.sanitize import single_line
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
    """Return the stories whose title, address or text share words with a topic: those with most of them."""
    wanted = set(words)
    shared = {story.id: len(wanted & set(words_of(f"{story.title} {story.url}"))) for story in stories}
    most = max(shared.values(), default=0)
    enough = max(1, min(most, (len(wanted) + 1) // 2))
    return [story for story in stories if shared[story.id] >= enough] if most else []


def theme_lines(stories: Sequence[ListedStory], phrases: Phrases, notes: Sequence[ResearchNote] = ()) -> list[str]:
    """Return the themes of a list, largest first, each with its most notable stories; titles decide."""
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


USER_FILE = re.compile(r"`([^`\n]+)` \[(S\d+)\]")
MAX_CONTEXT_FILES = 40
MAX_PASSAGES = 8
HOP_PASSAGES = 4
HOP_BASE = 3


def analyze(state: ScriptState) -> Script:
    """Do one task: passages of the user's files, or an analysis of the stories in other helpers' files."""
    user_files = USER_FILE.findall(state.task.words)
    if user_files:
        return (yield from _find_passages(state, user_files))
    texts = yield from read_files(state, context_files(state.task))
    return (yield from _rank_stories(state, texts))


def context_files(task: TaskData) -> list[str]:
    """Return the paths of the files that come with a task."""
    return list(dict.fromkeys(path for path, _ in task.files))[:MAX_CONTEXT_FILES]


def stories_of(texts: dict[str, str]) -> list[ListedStory]:
    """Return every story that the files list, once."""
    found: dict[int, ListedStory] = {}
    for text in texts.values():
        for story in stories_in(text.splitlines()):
            found.setdefault(story.id, story)
    return list(found.values())


def _rank_stories(state: ScriptState, texts: dict[str, str]) -> Script:
    wish = understand_task(state.task)
    phrases = Phrases(wish.language)
    notes = [note for text in texts.values() if (note := read_note(text)) and note.story and note.has_text]
    stories = most_notable(stories_of(texts))
    gaps = list(dict.fromkeys(gap for text in texts.values() for gap in gaps_in(text)))
    themes = theme_lines(stories, phrases, notes)
    lines = [f"# {phrases('ranking')}", "", f"## {phrases('ranking')}", ""]
    lines += [story_entry(number, story) for number, story in enumerate(stories[:20], 1)]
    lines += ["", f"## {phrases('themes')}", "", *themes]
    if gaps:
        lines += ["", f"## {phrases('unknown')}", "", *(f"- {gap}" for gap in gaps)]
    path = f"{folder_in(state.task)}analysis.md"
    content = "\n".join(lines) + "\n"
    yield Step(calls=(Ask("write_file", {"filepath": path, "content": content, "mode": "overwrite"}),))
    leading = "; ".join(f"{story.title} [{story.source}]" for story in stories[:5])
    summary = f"{len(stories)} stories ranked in {path}, {len(themes)} themes. First: {leading or 'none'}."
    return f"{summary}\nNot known: {'; '.join(gaps[:6])[:700]}" if gaps else summary


@dataclass(frozen=True)
class _Passage:
    """A sentence of a file, under its nearest heading."""

    path: str
    source: str
    heading: str
    text: str


def _find_passages(state: ScriptState, user_files: Sequence[tuple[str, str]]) -> Script:
    wish = understand_task(state.task)
    phrases = Phrases(wish.language)
    sources = dict(user_files)
    texts = yield from read_files(state, list(sources))
    passages = [passage for path, text in texts.items() for passage in _passages(path, sources[path], text)]
    chosen = _choose(passages, wish.question)
    gaps = [phrases("no_article", title=path, why="read_file") for path in sources if path not in texts]
    gaps += [phrases("lines_cut", title=path) for path in texts if path in state.cut_files]
    notes = _as_notes(chosen)
    calls = tuple(
        Ask(
            "write_file",
            {
                "filepath": f"{folder_in(state.task) or 'passages/'}{number:02d}-{slug(note.title) or 'file'}.md",
                "content": write_note(note, phrases),
                "mode": "overwrite",
            },
        )
        for number, note in enumerate(notes, 1)
    )
    if calls:
        yield Step(calls=calls)
    first = f" Closest: “{chosen[0].text}” [{chosen[0].source}]" if chosen else ""
    summary = (
        f"{len(chosen)} passage{'' if len(chosen) == 1 else 's'} from {len(texts)} of {len(sources)} files.{first}"
    )
    return f"{summary}\nNot known: {'; '.join(gaps)[:700]}" if gaps else summary


def _passages(path: str, source: str, text: str) -> list[_Passage]:
    found: list[_Passage] = []
    heading, lines = "", list[str]()
    for line in [*text.splitlines(), "# "]:
        if not line.startswith("#"):
            lines.append(line)
            continue
        sentences = [sentence for sentence in sentences_of(unwrapped("\n".join(lines))) if is_quotable(sentence)]
        found += [_Passage(path, source, heading, sentence) for sentence in sentences]
        heading, lines = " ".join(line.strip("# ").split()), []
    return found


def _choose(passages: Sequence[_Passage], question: str) -> list[_Passage]:
    """Return the passages that meet the question, then those that meet names found in the best of them."""
    texts = [f"{passage.heading} {passage.text}" for passage in passages]
    first = [index for _, index in rank_by_query(texts, words_of(question))[:MAX_PASSAGES]]
    names = {word for index in first[:HOP_BASE] for word in words_of(" ".join(names_in(texts[index])))}
    new_names = names - set(words_of(question))
    second = [index for _, index in rank_by_query(texts, new_names) if index not in first][:HOP_PASSAGES]
    return [passages[index] for index in dict.fromkeys([*first, *second])]


def _as_notes(chosen: Sequence[_Passage]) -> list[ResearchNote]:
    """Return one note for each heading of each file, in the order of the best passage."""
    groups: dict[tuple[str, str], list[NoteQuote]] = {}
    for passage in chosen:
        made = quote(passage.text, passage.source)
        if made is not None:
            groups.setdefault((passage.path, passage.heading), []).append(made)
    return [
        ResearchNote(
            title=(heading or path).replace("[", "(").replace("]", ")"),
            source=quotes[0].source,
            about=path,
            passages=tuple(quotes),
        )
        for (path, heading), quotes in groups.items()
    ]


MAX_LINES = 12


def take_notes(state: ScriptState) -> Script:
    """Copy the cited lines of the files that share most words with the task into one file of notes."""
    wish = understand_task(state.task)
    paths = context_files(state.task)
    texts = yield from read_files(state, paths)
    lines = [line for text in texts.values() for line in _cited_lines(text)]
    ranked = rank_by_query(lines, words_of(wish.question))
    chosen = [lines[index] for _, index in ranked[:MAX_LINES]] or lines[:MAX_LINES]
    if not chosen:
        found = f"Without a language model, nothing to quote was found in {len(paths)} files."
        return f"{found}\nNot known: the answer to the task."
    path = f"{folder_in(state.task)}notes.md"
    content = f"# {single_line(wish.question)[:120]}\n\n" + "\n".join(chosen) + "\n"
    yield Step(calls=(Ask("write_file", {"filepath": path, "content": content, "mode": "overwrite"}),))
    return f"{len(chosen)} cited lines from {len(texts)} files are in {path}, chosen by shared words."


def _cited_lines(text: str) -> list[str]:
    note = read_note(text)
    if note is None:
        return []
    quotes = [*note.article, *note.post, *note.passages, *note.discussion]
    return [f"- “{quoted.text}” [{quoted.source}] ({note.title})" for quoted in quotes]
