"""The section of a report that says which sub-questions of the run's plan stayed open, and what would settle them."""

from explorer.journal.run_state import RunState
from explorer.schema.plan import QuestionFacts, QuestionProgress
from explorer.text.citations import CITATION
from explorer.text.sanitize import single_line

HEADING = {"en": "What stayed open", "zh": "尚未解决的问题", "de": "Was offen blieb"}
STATES = {
    "en": {QuestionProgress.CONTRADICTED: "sources contradict each other", QuestionProgress.PLANNED: "not looked up"},
    "zh": {
        QuestionProgress.CONTRADICTED: "来源互相矛盾",
        QuestionProgress.PLANNED: "未查找",
        QuestionProgress.OPEN: "未解决",
        QuestionProgress.LOOKED_UP: "已查找，未评估",
        QuestionProgress.AT_WORK: "查找被中断",
    },
    "de": {
        QuestionProgress.CONTRADICTED: "Quellen widersprechen einander",
        QuestionProgress.PLANNED: "nicht nachgeschlagen",
        QuestionProgress.OPEN: "offen",
        QuestionProgress.LOOKED_UP: "nachgeschlagen, nicht bewertet",
        QuestionProgress.AT_WORK: "Suche abgebrochen",
    },
}
SETTLES = {"en": "What would settle it: {words}", "zh": "如何解决：{words}", "de": "Was es klären würde: {words}"}
INTERRUPTED = "its lookup was cut off"
NOT_ASSESSED = "looked up, and not assessed"


def open_questions(run_state: RunState, language: str) -> str:
    """Return the section of a report on the plan's open sub-questions; empty without a plan, or if all are answered.

    Only what was assessed counts as answered. Without assessments, what was looked up is left to the report itself.

    Args:
        run_state: The run.
        language: The language of its fixed words: `en`, `zh` or `de`.

    Returns:
        Markdown.
    """
    has_assessments = bool(run_state.plan.assessed)
    seen = {QuestionProgress.LOOKED_UP} if not has_assessments else set[QuestionProgress]()
    shown = [one for one in run_state.plan.unanswered if one.progress not in seen]
    if not shown:
        return ""
    return "\n".join(["", f"## {HEADING[language]}", "", *(_line(one, language) for one in shown), ""])


def _line(one: QuestionFacts, language: str) -> str:
    english = {QuestionProgress.AT_WORK: INTERRUPTED, QuestionProgress.LOOKED_UP: NOT_ASSESSED}
    state = STATES[language].get(one.progress) or english.get(one.progress, one.progress.value)
    settles = f". {SETTLES[language].format(words=_plain(one.would_settle))}" if one.would_settle.strip() else ""
    return f"- {_plain(one.question.question)} ({state}){settles}"


def _plain(text: str) -> str:
    """Return a text without citations, which belong to what the report says."""
    return single_line(CITATION.sub("", text)).strip()
