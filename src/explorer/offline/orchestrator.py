"""The rule-driven orchestrator: overview, closer looks side by side, report; then follow-ups.

A follow-up is answered from the files that are there; if they say nothing about it, it is looked up like a question.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from explorer.offline.phrases import SAMPLE_LINE, Phrases
from explorer.offline.planning import AgreedPlan, agree_on_plan, assess
from explorer.offline.question import GENERAL_WORDS, QuestionKind, Wish, understand, understand_follow_up
from explorer.offline.reading import HelperReply, ListedStory, reply_in, stories_in, story_entry
from explorer.offline.script_state import Ask, Part, Script, ScriptState, Step, Texts, ToolAnswer, read_files
from explorer.offline.searcher import IN_FOLDER
from explorer.offline.sections import short_reason, split_gaps, title_of
from explorer.offline.text import Candidate, relevant
from explorer.offline.writer import (
    FOR_FOLLOW_UP,
    FROM_FILES,
    REPORT,
    about,
    first_words,
    follow_up,
    links_of,
    ranked_stories,
    report_of,
    write_report,
)
from explorer.schema.messages import list_in
from explorer.schema.reasons import ErrorCode
from explorer.text.sanitize import single_line
from explorer.text.words import words_of

CITED = re.compile(r"\[S\d+")
SEARCHERS = 3
FEW_STORIES = 2
MAX_GAPS = 8
MAX_CONTEXT = 30
MAX_LINKS = 10


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
    folder: str = ""
    """The folder of what is looked up for a follow-up, with a slash at its end."""
    follow_ups: int = 0
    agreed: AgreedPlan = field(default_factory=AgreedPlan)
    """The plan that was approved, where one was asked for."""

    def hear(self, state: ScriptState) -> frozenset[str]:
        """Note what the user said meanwhile; its words steer the choice of stories."""
        user_messages = state.take_messages()
        if user_messages:
            self.steers.append(single_line(user_messages))
        return frozenset(word for steer in self.steers for word in words_of(steer)) - GENERAL_WORDS

    def take(self, answer: ToolAnswer) -> HelperReply:
        """Add a helper's answer: its files, and what failed."""
        reply = reply_in(answer.data)
        self.paths += [path for path in reply.output_files if path not in self.paths]
        if answer.is_error and not reply.output_files:
            self.gaps.append(short_reason(reply.reason or answer.text))
        return reply

    def ranked(self) -> list[ListedStory]:
        """Return the stories that were listed, the biggest first."""
        return ranked_stories(self.texts.values(), self.wish)


def orchestrate(state: ScriptState) -> Script:
    """Explore, have the report written, finish; then answer whatever is asked after that."""
    plan = ResearchPlan(understand(state.task))
    asked_before = state.take_messages()
    yield from _explore(state, plan)
    if asked_before:
        # A model, or an older version, had the run then: its work is done anew, and so is the answer.
        yield from _answer(state, plan, asked_before)
    while True:
        if state.is_continued and (plan.is_cut or not plan.paths or state.is_without_sources):
            # The limits are renewed: what was cut short, or ended before anything was found, is done properly now.
            plan = ResearchPlan(plan.wish, steers=plan.steers, agreed=plan.agreed)
            yield from _explore(state, plan)
        state.is_continued = state.is_without_sources = False
        summary = yield from _finish(plan)
        message = state.take_messages()
        if not message and not state.is_continued:
            yield Step(text=summary)
            message = state.take_messages()
        if message:
            state.is_hurried = False
            yield from _answer(state, plan, message)


def _explore(state: ScriptState, plan: ResearchPlan) -> Part:
    """Take the run from the question to its report."""
    yield from _look_up(state, plan)
    yield from _report(state, plan)


def _look_up(state: ScriptState, plan: ResearchPlan) -> Part:
    """Let helpers look everything up; where a plan is asked for, once it is approved."""
    wish = plan.wish
    plan.steers += yield from agree_on_plan(state, wish, plan.agreed)
    if wish.kind.lists_stories:
        yield from _stories(state, plan)
        return
    if wish.kind is QuestionKind.FILES:
        yield from _first_round(state, plan, _in_files)
        if not wish.has_folder or state.is_hurried:
            return
    yield from _first_round(state, plan, _in_place)


def _first_round(state: ScriptState, plan: ResearchPlan, call_for: Callable[[ResearchPlan], Ask]) -> Part:
    """Look up all sub-questions at the same time; without a plan there is one, the question itself."""
    found: dict[str, bool] = {}
    asked = plan.agreed.first_round(plan.wish)
    parts = [
        replace(plan, wish=wish, folder=plan.folder if number == 0 else f"{plan.folder}{name}/")
        for number, (name, wish) in enumerate(asked)
    ]
    calls = [call_for(part) for part in parts]
    answers = yield Step(calls=tuple(_for(call, name) for call, (name, _) in zip(calls, asked, strict=True)))
    for (name, _), answer in zip(asked, answers, strict=True):
        found[name] = bool(plan.take(answer).output_files)
    yield from assess(state, plan.agreed, found)


def _for(call: Ask, question: str) -> Ask:
    """Return a call with the sub-question that it is for."""
    return Ask(call.tool, call.arguments | ({"question_id": question} if question else {}))


def _in_files(plan: ResearchPlan) -> Ask:
    named = ", ".join(f"`{path}` [{source}]" for path, source in plan.wish.files)
    task = [f"Find the passages that match the question in the user's files: {named}.", *_brief(plan)]
    paths = [path for path, _ in plan.wish.files]
    return _call("analyzer", task, context_files=paths, output_dir=f"{plan.folder}passages")


def _in_place(plan: ResearchPlan) -> Ask:
    is_in_folder = plan.wish.kind is not QuestionKind.WEB
    where = f"{IN_FOLDER} for the answer to the question" if is_in_folder else "Search the web for the question"
    task = [f"{where}, and keep what the best texts say.", *_brief(plan)]
    return _call("searcher", task, output_dir=f"{plan.folder}notes")


def _listing(plan: ResearchPlan) -> Ask:
    first = f"List the stories of {plan.wish.place} that the question is about."
    return _call("searcher", [first, *_brief(plan)], output_dir=plan.folder.rstrip("/"))


def _brief(plan: ResearchPlan, *, is_for_writer: bool = False) -> list[str]:
    """Return the lines that every helper's task ends with."""
    wish = plan.wish
    lines = ["", f"Question: {single_line(wish.question)}", f"Language of the report: {wish.language}"]
    lines += [SAMPLE_LINE] if wish.is_sample else []
    lines += [f"Place: {wish.place}"] if wish.kind.lists_stories else []
    lines += [f"Topic: {single_line(wish.topic)}"] if wish.topic else []
    if is_for_writer:
        lines += [f"The user added: {steer}" for steer in plan.steers]
        lines += [f"Gap: {single_line(gap)}" for gap in plan.gaps[:MAX_GAPS]]
    return lines


def _call(role: str, lines: Sequence[str], **more: object) -> Ask:
    """Return the call that gives a helper a task."""
    return Ask("call_agent", {"agent_type": role, "task_description": "\n".join(lines), **more})


def _stories(state: ScriptState, plan: ResearchPlan) -> Part:
    before = len(plan.paths)
    yield from _first_round(state, plan, _listing)
    plan.texts |= yield from read_files(state, plan.paths[before:])
    ranked, steered = plan.ranked(), plan.hear(state)
    wanted = about(ranked, steered) if steered else []
    stories = list(dict.fromkeys([*wanted, *ranked]))[: plan.wish.count]
    if not stories or state.is_hurried or not plan.agreed.reads_closely:
        return
    yield from _closer_looks(state, plan, stories)
    steered = plan.hear(state) - steered
    more = [story for story in about(ranked, steered) if story not in stories] if steered else []
    if more and not state.is_hurried:
        yield from _closer_looks(state, plan, more[:SEARCHERS])


def _closer_looks(state: ScriptState, plan: ResearchPlan, stories: Sequence[ListedStory]) -> Part:
    """Call up to three searchers at once, each with a part of the stories."""
    helpers = min(SEARCHERS, -(-len(stories) // FEW_STORIES))
    calls: list[Ask] = []
    for number in range(helpers):
        entries = [story_entry(place, story) for place, story in enumerate(stories[number::helpers], 1)]
        task = [f"Read the articles and comments of these stories of {plan.wish.place}; write one file on each.", ""]
        call = _call("searcher", [*task, *entries, *_brief(plan)], output_dir=f"{plan.folder}stories")
        calls.append(_for(call, plan.agreed.for_closer_looks))
    answers = yield Step(calls=tuple(calls))
    replies = [plan.take(answer) for answer in answers]
    yield from assess(state, plan.agreed, {plan.agreed.for_closer_looks: any(one.output_files for one in replies)})


def _report(state: ScriptState, plan: ResearchPlan) -> Part:
    """Call the writer for the report; without time or a writer, the orchestrator writes it."""
    is_from_files = plan.wish.kind in {QuestionKind.FILES, QuestionKind.FOLDER}
    if not state.is_hurried:
        task = ["Write the report `report.md` from these files.", *([FROM_FILES] if is_from_files else [])]
        task += _brief(plan, is_for_writer=True)
        (answer,) = yield Step(calls=(_call("writer", task, context_files=plan.paths[:MAX_CONTEXT]),))
        plan.writer = reply_in(answer.data).agent_id
        written = yield from read_files(state, [REPORT])
        if REPORT in written:
            plan.texts[REPORT] = written[REPORT]
            return
    plan.is_cut = state.is_hurried
    plan.gaps += [Phrases(plan.wish.language)("stopped")] if plan.is_cut else []
    texts = yield from _read_all(state, plan)
    plan.texts[REPORT] = report_of(plan.wish, texts, plan.gaps, from_files=is_from_files)
    yield write_report(plan.texts[REPORT])


def _read_all(state: ScriptState, plan: ResearchPlan) -> Texts:
    """Return the text of each file that helpers wrote."""
    missing = [path for path in plan.paths if path not in plan.texts]
    plan.texts |= (yield from read_files(state, missing)) if missing else {}
    return {path: plan.texts[path] for path in plan.paths if path in plan.texts}


def _answer(state: ScriptState, plan: ResearchPlan, message: str) -> Part:
    """Answer a follow-up: from the files that say something about it, else from what is looked up for it."""
    texts = yield from _read_all(state, plan)
    bodies = {path: body for path, text in texts.items() if not stories_in((body := split_gaps(text)[0]).splitlines())}
    fitting = relevant([Candidate(title_of(body), body) for body in bodies.values()], words_of(message))
    paths, looked_up = [list(bodies)[index] for index in fitting], list[str]()
    if not paths:
        plan.follow_ups += 1
        further = ResearchPlan(understand_follow_up(message, plan.wish), folder=f"follow-up-{plan.follow_ups}/")
        yield from _look_up(state, further)
        paths = further.paths = [path for path in further.paths if path.startswith(further.folder)]
        plan.paths += paths
        plan.texts |= further.texts
        looked_up = [FOR_FOLLOW_UP]
    wish = replace(plan.wish, language=understand_follow_up(message, plan.wish).language)
    known = {"agent_id": plan.writer} if plan.writer else {}
    task = [f"Add an answer to a follow-up at the end of `{REPORT}`.", f"Follow-up: {single_line(message)}", *looked_up]
    task += _brief(replace(plan, wish=wish))
    (answer,) = yield Step(calls=(_call("writer", task, context_files=paths[:MAX_CONTEXT], **known),))
    if answer.is_error or reply_in(answer.data).status == "failed":
        yield write_report(follow_up(wish, message, ()), mode="append")
    plan.texts |= yield from read_files(state, [REPORT])


def _finish(plan: ResearchPlan) -> Script:
    """Finish; a report that is refused for citing unknown sources is freed of them once."""
    call = _finishing(plan)
    (answer,) = yield Step(calls=(call,))
    for code in (ErrorCode.CORRECT_REPORT, ErrorCode.KNOWN_STORIES):
        if answer.data.get("code") == code:
            # Its sentences were taken from the sources word for word: there is nothing to correct by rule.
            (answer,) = yield Step(calls=(call,))
    unknown = [str(one) for one in list_in(answer.data, "sources")] if answer.is_error else []
    if unknown:
        plan.texts[REPORT] = _without(plan.texts.get(REPORT, ""), unknown)
        yield write_report(plan.texts[REPORT])
        yield Step(calls=(call,))
    return str(call.arguments["summary"])


def _finishing(plan: ResearchPlan) -> Ask:
    report = plan.texts.get(REPORT, "")
    summary = first_words(report) or f"The report is in {REPORT}."
    given = {"summary": summary, "interesting_links": links_of(report)[:MAX_LINKS]}
    # A report made of extracts cites whatever it has.
    return Ask("finish_exploration", given if CITED.search(report) else given | {"nothing_found": True})


def _without(report: str, unknown: Sequence[str]) -> str:
    for source in unknown:
        report = re.sub(rf"\s?\[{re.escape(source)}\]", "", report)
    return report
