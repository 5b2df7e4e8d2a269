"""The rule-driven orchestrator: overview, closer looks side by side, analysis, report; then follow-ups.

A follow-up on a finished run: a smaller second round over the files that are there.
"""

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from explorer.offline.analyzer import about, most_notable, stories_of
from explorer.offline.notes import read_note, short_reason
from explorer.offline.passages import IN_FOLDER
from explorer.offline.phrases import SAMPLE_LINE, language_of
from explorer.offline.question import GENERAL_WORDS, QuestionKind, Wish, understand
from explorer.offline.reading import HelperReply, ListedStory, reply_in, story_entry
from explorer.offline.script_state import Ask, Part, Script, ScriptState, Step, ToolAnswer, read_files
from explorer.offline.writer import FROM_FILES, REPORT, first_words, follow_up, links_of, report_of, write_report
from explorer.schema.reasons import ErrorCode
from explorer.text.sanitize import single_line
from explorer.text.words import words_of

MAX_FILES = 15
MAX_WORDS = 8
NO_CONTEXT = frozenset({REPORT, "question.txt"})


def answer_follow_up(
    state: ScriptState, message: str, wish: Wish, writer: str
) -> Generator[Step, Sequence[ToolAnswer], str]:
    """Find the files that fit, let the writer add a section to the report, and read it; returns the report."""
    pattern = "|".join(re.escape(word) for word in words_of(message)[:MAX_WORDS]) or re.escape(
        single_line(message)[:60]
    )
    found, listed = yield Step(
        calls=(Ask("search_files", {"pattern": pattern, "glob": "*.md"}), Ask("list_files", {"glob": "*.md"}))
    )
    paths = _fitting(found, listed)
    task = [
        f"Add an answer to a follow-up at the end of `{REPORT}`.",
        f"Follow-up: {single_line(message)}",
        "",
        f"Question: {single_line(wish.question)}",
        f"Language of the report: {language_of(message) if message else wish.language}",
        *([SAMPLE_LINE] if wish.is_sample else []),
    ]
    arguments = {"agent_type": "writer", "task_description": "\n".join(task), "context_files": paths}
    if writer:
        arguments["agent_id"] = writer
    (answer,) = yield Step(calls=(Ask("call_agent", arguments),))
    if answer.is_error or reply_in(answer.data).status == "failed":
        yield write_report(follow_up(message, (), wish.language), mode="append")
    texts = yield from read_files(state, [REPORT])
    return texts.get(REPORT, "")


def _fitting(found: ToolAnswer, listed: ToolAnswer) -> list[str]:
    """Return the run's notes: those with most matching lines first."""
    matches: dict[str, int] = found.data.get("matches", {})
    paths: list[str] = listed.data.get("paths", [])
    notes = [path for path in paths if path.endswith(".md") and path not in NO_CONTEXT and not path.startswith(".")]
    return sorted(notes, key=lambda path: -matches.get(path, 0))[:MAX_FILES]


CITED = re.compile(r"\[S\d+")
SPARE_SHARE = 0.5
"""Stories looked at beyond the number wanted, when that number is ours: many articles cannot be read."""
FURTHER_SHARE = 2.0
"""Stories of the second round, when the first brought little to read."""
SEARCHERS = 3
FEW_STORIES = 2
MAX_GAPS = 8
SEARCH_SPAN = "30d"
MAX_CONTEXT = 30
STORY_SUMMARY_LINKS = 10


@dataclass
class ResearchPlan:
    """What the orchestrator has in hand; made anew at every request by playing the script."""

    wish: Wish
    texts: dict[str, str] = field(default_factory=dict[str, str])
    """Files it has read."""
    paths: list[str] = field(default_factory=list[str])
    """Files its helpers wrote."""
    gaps: list[str] = field(default_factory=list[str])
    steers: list[str] = field(default_factory=list[str])
    writer: str = ""
    """The writer's id, for follow-ups."""
    is_cut: bool = False
    """The report had to be written before everything was done."""

    def hear(self, state: ScriptState) -> frozenset[str]:
        """Note what the user said meanwhile; its words steer the choice of stories."""
        user_messages = state.take_messages()
        if user_messages:
            self.steers.append(single_line(user_messages))
        return frozenset(word for steer in self.steers for word in words_of(steer)) - GENERAL_WORDS


def orchestrate(state: ScriptState) -> Script:
    """Explore, have the report written, finish; then answer whatever is asked after that."""
    plan = ResearchPlan(understand(state.task))
    asked_before = state.take_messages()
    yield from _explore(state, plan)
    if asked_before:
        # A model, or an older version, had the run then: its work is done anew, and so is the answer.
        plan.texts[REPORT] = yield from answer_follow_up(state, asked_before, plan.wish, plan.writer)
    while True:
        if state.is_continued and (plan.is_cut or not plan.paths or state.is_without_sources):
            # The limits are renewed: what was cut short, or ended before anything was found, is done properly now.
            plan = ResearchPlan(plan.wish, steers=plan.steers)
            yield from _explore(state, plan)
        state.is_continued = state.is_without_sources = False
        summary = yield from _finish(plan)
        message = state.take_messages()
        if not message and not state.is_continued:
            yield Step(text=summary)
            message = state.take_messages()
        if message:
            state.is_hurried = False
            plan.texts[REPORT] = yield from answer_follow_up(state, message, plan.wish, plan.writer)


def _explore(state: ScriptState, plan: ResearchPlan) -> Part:
    """From the question to a report."""
    if plan.wish.kind is QuestionKind.FILES:
        yield from _from_files(plan)
        if plan.wish.has_folder and not state.is_hurried:
            yield from _from_folder(plan)
    elif plan.wish.kind is QuestionKind.FOLDER:
        yield from _from_folder(plan)
    elif plan.wish.kind is QuestionKind.HACKER_NEWS:
        yield from _from_hacker_news(state, plan)
    else:
        yield from _from_web(plan)
    yield from _report(state, plan)


def brief(wish: Wish, plan: ResearchPlan | None = None) -> list[str]:
    """Return the lines that every helper's task ends with."""
    lines = ["", f"Question: {single_line(wish.question)}", f"Language of the report: {wish.language}"]
    if wish.is_sample:
        lines.append(SAMPLE_LINE)
    if plan is not None:
        lines += [f"The user added: {steer}" for steer in plan.steers]
        lines += [f"Gap: {single_line(gap)}" for gap in plan.gaps[:MAX_GAPS]]
    return lines


def call_helper(role: str, lines: Sequence[str], **more: object) -> Ask:
    """Return the call that gives a helper a task."""
    return Ask("call_agent", {"agent_type": role, "task_description": "\n".join(lines), **more})


def _take(plan: ResearchPlan, answer: ToolAnswer) -> HelperReply:
    """Add a helper's answer to the plan: its files, and what failed."""
    reply = reply_in(answer.data)
    plan.paths += [path for path in reply.output_files if path not in plan.paths]
    if answer.is_error and not reply.output_files:
        plan.gaps.append(short_reason(reply.reason or answer.text))
    return reply


def _from_hacker_news(state: ScriptState, plan: ResearchPlan) -> Part:
    wish = plan.wish
    first = f"Read the list of {wish.story_list} stories on Hacker News and write an overview of it."
    search = f"Also search Hacker News for “{wish.topic}” since {SEARCH_SPAN}." if wish.topic else ""
    (answer,) = yield Step(calls=(call_helper("searcher", [first, search, *brief(wish)]),))
    reply = _take(plan, answer)
    plan.texts |= yield from read_files(state, reply.output_files)
    stories = _choose(plan, plan.hear(state))
    if not stories or state.is_hurried:
        return
    yield from _closer_looks(plan, stories)
    steered = plan.hear(state)
    if steered and not state.is_hurried:
        more = [story for story in about(_listed(plan), steered) if story not in stories]
        if more:
            yield from _closer_looks(plan, most_notable(more)[:SEARCHERS])
    if not state.is_hurried:
        yield from _read_closely(state, plan)
    if not state.is_hurried and _is_thin(plan):
        yield from _look_further(state, plan, stories)
    if len(stories) > FEW_STORIES and not state.is_hurried:
        yield from _analysis(state, plan)


def _listed(plan: ResearchPlan) -> list[ListedStory]:
    return stories_of(plan.texts)


def _choose(plan: ResearchPlan, steered: frozenset[str]) -> list[ListedStory]:
    """Return the stories for a closer look: those about the topic, else the most notable; steers come first."""
    wish, listed = plan.wish, _listed(plan)
    if wish.topic:
        listed = about(listed, wish.topic_words)
    elif wish.story_list != "job":
        listed = [story for story in listed if story.comments or story.points > 1] or listed
    ranked = most_notable(listed)
    wanted = [story for story in about(ranked, steered) if steered]
    spare = 0 if wish.is_counted or wish.topic else int(wish.count * SPARE_SHARE)
    return list(dict.fromkeys([*wanted, *ranked]))[: wish.count + spare]


def _closer_looks(plan: ResearchPlan, stories: Sequence[ListedStory]) -> Part:
    """Up to three searchers at once, each with a slice of the stories."""
    helpers = min(SEARCHERS, -(-len(stories) // FEW_STORIES))
    calls: list[Ask] = []
    for number in range(helpers):
        part = stories[number::helpers]
        entries = [story_entry(place, story) for place, story in enumerate(part, 1)]
        task = ["Read the articles and comments of these Hacker News stories; write one file on each.", "", *entries]
        calls.append(call_helper("searcher", [*task, *brief(plan.wish)], output_dir="stories"))
    answers = yield Step(calls=tuple(calls))
    for answer in answers:
        _take(plan, answer)


def _read_closely(state: ScriptState, plan: ResearchPlan) -> Part:
    """Read the files on the stories, to see whether there is enough to build on."""
    new = [path for path in plan.paths if path not in plan.texts]
    if new:
        plan.texts |= yield from read_files(state, new)


def _is_thin(plan: ResearchPlan) -> bool:
    """Return whether the number of stories is ours and less than half of them gave anything to quote."""
    notes = [note for text in plan.texts.values() if (note := read_note(text))]
    shown = sum(note.has_text for note in notes)
    return not plan.wish.is_counted and not plan.wish.topic and 2 * shown < plan.wish.count


def _look_further(state: ScriptState, plan: ResearchPlan, stories: Sequence[ListedStory]) -> Part:
    """Look at the next stories of the list, when the first could not be read."""
    known = {story.id for story in stories}
    further = [story for story in most_notable(_listed(plan)) if story.id not in known]
    if further:
        yield from _closer_looks(plan, further[: int(plan.wish.count * FURTHER_SHARE)])
        yield from _read_closely(state, plan)


def _analysis(state: ScriptState, plan: ResearchPlan) -> Part:
    task = "Rank the stories in these files and say which themes the list has."
    call = call_helper("analyzer", [task, *brief(plan.wish)], context_files=plan.paths[:MAX_CONTEXT])
    (answer,) = yield Step(calls=(call,))
    reply = _take(plan, answer)
    plan.texts |= yield from read_files(state, reply.output_files)


def _from_web(plan: ResearchPlan) -> Part:
    task = "Search the web for the answer to the question, and note what the best pages say."
    (answer,) = yield Step(calls=(call_helper("searcher", [task, *brief(plan.wish)], output_dir="notes"),))
    _take(plan, answer)


def _from_folder(plan: ResearchPlan) -> Part:
    task = f"{IN_FOLDER}, and note what the best documents say."
    (answer,) = yield Step(calls=(call_helper("searcher", [task, *brief(plan.wish)], output_dir="notes"),))
    _take(plan, answer)


def _from_files(plan: ResearchPlan) -> Part:
    named = ", ".join(f"`{path}` [{source}]" for path, source in plan.wish.files)
    task = [f"Find the passages that match the question in the user's files: {named}.", *brief(plan.wish)]
    paths = [path for path, _ in plan.wish.files]
    call = call_helper("analyzer", task, context_files=paths, output_dir="passages")
    (answer,) = yield Step(calls=(call,))
    _take(plan, answer)


def _report(state: ScriptState, plan: ResearchPlan) -> Part:
    """Have the writer write the report; when there is no time or no writer, the orchestrator writes it."""
    if not state.is_hurried:
        task = ["Write the report `report.md` from these files."]
        if _is_about_own_files(plan):
            task.append(FROM_FILES)
        call = call_helper("writer", [*task, *brief(plan.wish, plan)], context_files=plan.paths[:MAX_CONTEXT])
        (answer,) = yield Step(calls=(call,))
        plan.writer = reply_in(answer.data).agent_id
        written = yield from read_files(state, [REPORT])
        if REPORT in written:
            plan.texts[REPORT] = written[REPORT]
            return
    plan.is_cut = state.is_hurried
    missing = [path for path in plan.paths if path not in plan.texts]
    plan.texts |= (yield from read_files(state, missing)) if missing else {}
    texts = {path: text for path, text in plan.texts.items() if path in plan.paths}
    content = report_of(plan.wish, texts, plan.gaps, from_files=_is_about_own_files(plan))
    plan.texts[REPORT] = content
    yield write_report(content)


def _is_about_own_files(plan: ResearchPlan) -> bool:
    return plan.wish.kind in {QuestionKind.FILES, QuestionKind.FOLDER}


def _finish(plan: ResearchPlan) -> Script:
    """Finish; a report that is refused for citing unknown sources is freed of them once."""
    call = _finishing(plan)
    (answer,) = yield Step(calls=(call,))
    if answer.data.get("code") == ErrorCode.CORRECT_REPORT:
        # Its sentences were taken from the sources word for word: there is nothing to correct by rule.
        (answer,) = yield Step(calls=(call,))
    unknown = [str(one) for one in answer.data.get("sources", ())] if answer.is_error else []
    if unknown:
        plan.texts[REPORT] = _without(plan.texts.get(REPORT, ""), unknown)
        yield write_report(plan.texts[REPORT])
        yield Step(calls=(call,))
    return str(call.arguments["summary"])


def _finishing(plan: ResearchPlan) -> Ask:
    report = plan.texts.get(REPORT, "")
    found = len([text for text in plan.texts.values() if read_note(text)])
    summary = first_words(report) or f"The report is in {REPORT}; {found} notes were read."
    links = links_of(report)[:STORY_SUMMARY_LINKS]
    given = {"summary": summary, "interesting_links": links}
    # A report made of extracts cites whatever it has.
    return Ask("finish_exploration", given if CITED.search(report) else given | {"nothing_found": True})


def _without(report: str, unknown: Sequence[str]) -> str:
    for source in unknown:
        report = re.sub(rf"\s?\[{source}\]", "", report)
    return report
