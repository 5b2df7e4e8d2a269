"""The rule-driven plan: sub-questions that rules can look up, changed by the user, and assessed after each round."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import cast

from explorer.offline.question import QuestionKind, Wish, understand_follow_up
from explorer.offline.script_state import Ask, Part, ScriptState, Step, ToolAnswer
from explorer.schema.messages import JsonObject
from explorer.text.sanitize import single_line

PROPOSE, ASSESS = "propose_plan", "assess_round"
CLOSER = "What do the articles and comments of the biggest ones say?"
VARIANTS = (
    "Which are the newest stories?",
    "Which are the best stories?",
    "Which Ask HN stories?",
    "Which Show HN stories?",
)
"""Further sub-questions on a site of stories, each of which lists others."""
ASPECTS = ("problems and criticism", "figures and dates", "examples", "history", "alternatives")
"""Further sub-questions elsewhere: other words to search for."""
MAX_PROPOSALS = 6
STORY_LOOKUPS = 2
OTHER_LOOKUPS = 8


@dataclass
class AgreedPlan:
    """The sub-questions that were approved; empty in a run without a plan."""

    texts: dict[str, str] = field(default_factory=dict[str, str])
    """Each sub-question by its id."""
    base: str = ""
    """The text of the one that is the user's question itself."""
    answered: set[str] = field(default_factory=set[str])
    """Ids for which files were written."""

    @property
    def closer(self) -> str | None:
        """The id of the question that reads stories closely; None where the user left it out, or all comes at once."""
        return next((name for name, text in self.texts.items() if text == CLOSER), None)

    def first_round(self, wish: Wish) -> list[tuple[str, Wish]]:
        """Return what is looked up first: ids, each with what is asked there."""
        first = [(name, text) for name, text in self.texts.items() if text != CLOSER]
        return [(name, wish if text == self.base else understand_follow_up(text, wish)) for name, text in first] or [
            ("", wish)
        ]

    @property
    def reads_closely(self) -> bool:
        """Whether stories are read, besides being listed."""
        return not self.texts or self.closer is not None or len(self.texts) > 1

    @property
    def for_closer_looks(self) -> str:
        """The id that closer looks are for."""
        return self.closer or next(iter(self.texts), "")


def agree_on_plan(
    state: ScriptState, wish: Wish, agreed: AgreedPlan
) -> Generator[Step, Sequence[ToolAnswer], list[str]]:
    """Propose a plan until it is approved, where the run has the tool for it; return what the user said of it."""
    said: list[str] = []
    if PROPOSE not in state.tools or agreed.texts:
        return said
    for _ in range(MAX_PROPOSALS):
        (answer,) = yield Step(calls=(Ask(PROPOSE, _proposal(state, wish, said)),))
        plan = cast("JsonObject", answer.data.get("plan") or {})
        if answer.data.get("verdict") in {"approved", "edited"}:
            agreed.texts = {str(one["id"]): str(one["question"]) for one in plan.get("questions", ())}
            agreed.base = base_question(wish)
            break
        if answer.is_error:
            break
        said.append(single_line(str(answer.data.get("words", ""))))
    return said


def base_question(wish: Wish) -> str:
    """Return the question as one that rules can answer."""
    if wish.kind.lists_stories:
        return f"Which stories of {wish.place} is this about: {single_line(wish.question)[:600]}"
    where = {QuestionKind.FILES: "the files", QuestionKind.FOLDER: "the folder"}.get(wish.kind, "the web")
    return f"Which passages of {where} share most words with: {single_line(wish.question)[:600]}"


def _proposal(state: ScriptState, wish: Wish, said: Sequence[str]) -> JsonObject:
    wanted = state.task.settings.get("initial_queries")
    base, words = base_question(wish), [one for one in said if one]
    if isinstance(wanted, int):
        others = VARIANTS if wish.kind.lists_stories else [f"{wish.question[:600]} {one}" for one in ASPECTS]
        repeated = [others[number % len(others)] for number in range(wanted)]
        texts = [base, *words, *repeated][:wanted]
    else:
        texts = [base, *([CLOSER] if wish.kind.lists_stories else []), *words]
    return {
        "understanding": f"Looked up by rules, without a language model: {single_line(wish.question)[:600]}",
        "questions": [_part(text, wish) for text in texts],
        "enough_when": "each sub-question was looked up once",
    }


def _part(text: str, wish: Wish) -> JsonObject:
    is_in_files = wish.kind is QuestionKind.FILES
    where = wish.place if wish.kind.lists_stories else wish.kind.value
    lookups = 2 * wish.count if text == CLOSER else STORY_LOOKUPS if wish.kind.lists_stories else OTHER_LOOKUPS
    return {
        "question": text,
        "sources": [where],
        "helper": "analyzer" if is_in_files else "searcher",
        "lookups": 0 if is_in_files else lookups,
    }


def assess(state: ScriptState, agreed: AgreedPlan, found: dict[str, bool]) -> Part:
    """Assess a round by what was written: rules cannot judge more.

    Args:
        state: Of the orchestrator.
        agreed: The plan.
        found: Whether helpers wrote files, by the id of their sub-question.
    """
    agreed.answered |= {name for name, has_files in found.items() if has_files}
    if ASSESS not in state.tools or not agreed.texts:
        return
    left = [name for name in agreed.texts if name not in agreed.answered or name in found]
    questions = [
        {"id": name, "state": "answered"}
        if name in agreed.answered
        else {"id": name, "state": "open", "would_settle": "a source that can be reached and has words of it"}
        for name in left
    ]
    yield Step(calls=(Ask(ASSESS, {"questions": questions, "is_interesting": any(found.values())}),))
