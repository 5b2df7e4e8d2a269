"""A run's plan for people: as it waits for a decision, and how far each sub-question is."""

from collections.abc import Sequence

from explorer.cli.screens.output import aligned
from explorer.observe.formatting import counted, money, one_line
from explorer.schema.plan import PlanFacts, QuestionFacts, SubQuestion

STATES = {
    "waiting": "waits for your decision",
    "approved": "approved",
    "edited": "approved as you changed it",
    "rejected": "rejected",
}
ABOUT_CHARS = 200


def about(question: SubQuestion) -> str:
    """Return about what a sub-question costs; empty where no price is known."""
    return "" if question.cost_usd is None else money(question.cost_usd)


def plan_page(plan: PlanFacts, limit_usd: float | None = None) -> str:
    """Return a plan with its sub-questions, sources, effort and cost.

    Args:
        plan: The plan.
        limit_usd: The run's limit of money; None: there is none.
    """
    rows = [
        (
            one.question.id,
            one.question.helper,
            counted(one.question.lookups, "lookup"),
            about(one.question) or "-",
            f"{one.question.question} ({', '.join(one.question.sources) or 'anywhere'})",
        )
        for one in plan.questions
    ]
    cost = [
        "cost not known: no price is known" if plan.cost_usd is None else f"about {money(plan.cost_usd)} (estimated)"
    ]
    cost += [f"at most {money(limit_usd)} for the whole question"] if limit_usd is not None else []
    cost += [f"{money(plan.spent_usd)} so far"] if plan.spent_usd is not None else []
    table = aligned(("ID", "HELPER", "EFFORT", "ABOUT", "SUB-QUESTION (WHERE)"), rows)
    facts = [
        ("plan", STATES.get(plan.state, "")),
        ("understood", one_line(plan.understanding, ABOUT_CHARS)),
        ("enough", one_line(plan.enough_when, ABOUT_CHARS)),
        ("cost", ", ".join(cost)),
    ]
    return "\n".join([*(f"{name:<12}{words}" for name, words in facts if words), "", table])


def progress_page(plan: PlanFacts) -> str:
    """Return how far each sub-question is, with what would settle those that are open."""
    rows = [
        (one.question.id, one.progress.value, ", ".join(one.helpers) or "-", question_words(one))
        for one in plan.questions
    ]
    return aligned(("ID", "STATE", "HELPERS", "SUB-QUESTION"), rows)


def question_words(one: QuestionFacts) -> str:
    """Return a sub-question with what is known of it, or what would settle it."""
    known = f" Settled by: {one.would_settle}" if one.would_settle else f" {one.finding}" if one.finding else ""
    return one_line(f"{one.question.question}{known}", 2 * ABOUT_CHARS)


def proposal_line(questions: Sequence[SubQuestion]) -> str:
    """Return a plan in one line."""
    costs = [one.cost_usd for one in questions]
    cost = "" if None in costs else f", about {money(sum(one or 0.0 for one in costs))}"
    lookups = counted(sum(one.lookups for one in questions), "lookup")
    return f"plan: {counted(len(questions), 'sub-question')}, {lookups}{cost}"
