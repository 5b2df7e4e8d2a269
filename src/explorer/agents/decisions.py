"""Decisions: what is done with an agent instead of asking its model, and the text of each note of the engine.

Models read a note's text. Programs, such as the offline client, read its reason and its data, so a text can be changed
without a look at anything else.
"""

from typing import LiteralString

from explorer.journal.agent_state import AgentState
from explorer.schema.events import AgentFinished, Compacted, NoteAdded, ReasoningDropped, Status, Summarised
from explorer.schema.reasons import EndCause, NoteReason
from explorer.text.rendering import code, own

Decision = NoteAdded | AgentFinished | Compacted | Summarised | ReasoningDropped
"""The event that records what is done with an agent instead of asking its model."""

ACTIONS: LiteralString = (
    "Act now, by calling a tool: look things up or have it done (call_agent), have report.md written (a writer, or "
    "write_file for a few lines), and when it answers the question, call finish_exploration."
)
SHORT_REPLIES: LiteralString = (
    "Little is left of this run's limits: a reply of yours may have {tokens:,} tokens now, reasoning and calls "
    "included, and one that is longer is lost. Write report.md with what matters most, well within that."
)
BUDGET: LiteralString = "About {percent} % of what this run may use before its report is used up. Plan for the end."
WORDS: dict[NoteReason, LiteralString] = {
    NoteReason.EMPTY_REPLY: "Your reply was empty. Continue the task, or say what you found.",
    NoteReason.CUT_REPLY: "Your reply was cut at its length limit. Continue in smaller pieces; put long text in files.",
    NoteReason.USUAL_LENGTH: "Your reply was cut at its length limit, which stays. Continue in smaller pieces.",
    NoteReason.DECLINED: "You declined. Do the part of the task that you can do, or say why there is none.",
    NoteReason.ROOM_MADE: "Older results were cleared to save space. Continue; write down what you need to keep.",
    NoteReason.CLEARING: (
        "This conversation is long. After your next turn, the results of your earlier calls will be shortened to their "
        "first lines, with source ids and how to read them again; your latest exchanges, what helpers answered, plans "
        "and lists of files stay. Write down now what you still need of the older ones: in a file, or in your reply."
    ),
    NoteReason.SQUEEZED: (
        "This conversation had to be shortened again although nothing new came of it. Write down what you have in a "
        "file, then end."
    ),
    NoteReason.SUMMARISE: (
        "This conversation is getting long and will be shortened. Write down now, as text and without calling a tool, "
        "all that you need to continue: what you found, with the source ids; what you decided and why; what you tried "
        "without success; what is still open. Your task, your latest exchanges and the list of your files will stay."
    ),
    NoteReason.ACT: f"Your text is not read: {{words}}. {ACTIONS}",
    NoteReason.CORRECT: "{words}\nThen call finish_exploration.",
    NoteReason.WRAP_UP: "You have {left} turns left. Write down what you have now, then end with your summary.",
    NoteReason.ERRORS: ("Your last {turns} turns brought only errors. Do something else, or end with what you have."),
    NoteReason.REPEATING: "You made the same call with the same result several times. Do something else.",
    NoteReason.NOTHING_NEW: "Nothing new came of your last {turns} turns. Write down what you have, then end.",
    NoteReason.RESULT: (
        "Your result is missing: call give_result now, with your summary and the fields that it names. Your files stay."
    ),
    NoteReason.BUDGET_70: BUDGET,
    NoteReason.BUDGET_85: BUDGET,
    NoteReason.WINDING_DOWN: (
        "Stop exploring now ({words}). Only writing is left: have report.md written from the findings so far, then "
        "finish. Say in it what was not explored."
    ),
    NoteReason.WRITE_NOW: "Exploring is over ({words}): write report.md now, from the findings so far.",
    NoteReason.SHORT_REPLIES_6000: SHORT_REPLIES,
    NoteReason.SHORT_REPLIES_3000: SHORT_REPLIES,
    NoteReason.SHORT_REPLIES_1500: SHORT_REPLIES,
    NoteReason.JOB_ENDED: 'Your background job {job} {words}. Its output: get_shell_output(bash_id="{job}").',
    NoteReason.CONTINUE: "Continue where you stopped. Finish what is worth finishing, then the report.",
    NoteReason.TRY_AGAIN: (
        "No lookup reached a source before. Try them again now: what did not answer then may answer. Then revise the "
        "report, and finish."
    ),
    NoteReason.LATE_WORDS: (
        "The message above came while you were finishing. Take it into account, then finish again."
    ),
}
"""Templates with `{words}` for a text that is quoted, and the names of facts."""


def note(state: AgentState, reason: NoteReason, words: str = "", **facts: int | str) -> NoteAdded:
    """Return a note to an agent, with its text.

    Args:
        state: The agent.
        reason: Why it is added; the key of `WORDS`.
        words: Text that the note quotes, such as the faults of a report; it is not part of the data, and fenced
            unless it is rendered.
        facts: Figures in the text, which are recorded as the note's data.
    """
    values = {name: code(fact) if isinstance(fact, str) else fact for name, fact in facts.items()}
    return NoteAdded(agent=state.agent, text=own(WORDS[reason], words=words, **values), reason=reason, data=dict(facts))


def ending(
    state: AgentState, status: Status, reason: str, summary: str, cause: EndCause = EndCause.OTHER
) -> AgentFinished:
    """Return the end of an agent.

    Args:
        state: The agent.
        status: How it ends.
        reason: The cause in words, for people.
        summary: Its result.
        cause: The cause as a code, for programs.
    """
    return AgentFinished(agent=state.agent, status=status, reason=reason, summary=summary, cause=cause)
