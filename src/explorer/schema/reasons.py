"""Reason codes: why a note was added, an agent or a run ended, a call failed. Programs read these, never the text."""

from dataclasses import dataclass
from enum import StrEnum


class NoteReason(StrEnum):
    """Why the engine adds a note to a conversation. Journals have these values; `agents/decisions.py` has the texts."""

    EMPTY_REPLY = "empty_reply"
    CUT_REPLY = "cut_reply"
    USUAL_LENGTH = "usual_length"
    """A reply was cut, and the server does not take a longer one."""
    DECLINED = "declined"
    ROOM_MADE = "room_made"
    CLEARING = "clearing"
    """Old results are cleared after the next turn; `data` says which and why."""
    SQUEEZED = "squeezed"
    """The conversation was shortened again although nothing new came of it."""
    SUMMARISE = "summarise"
    """The agent is asked to write down what it needs; its next turn is the answer."""
    ACT = "act"
    """The orchestrator replied with text, and there is no report."""
    CORRECT = "correct"
    """The orchestrator replied with text, and the report has faults."""
    WRAP_UP = "wrap_up"
    ERRORS = "errors"
    REPEATING = "repeating"
    NOTHING_NEW = "nothing_new"
    BUDGET_70 = "budget_70"
    BUDGET_85 = "budget_85"
    WINDING_DOWN = "winding_down"
    """Only the report may be worked on."""
    WRITE_NOW = "write_now"
    """Only the report may be worked on, for a writer."""
    SHORT_REPLIES_6000 = "short_replies_6000"
    SHORT_REPLIES_3000 = "short_replies_3000"
    SHORT_REPLIES_1500 = "short_replies_1500"
    JOB_ENDED = "job_ended"
    CONTINUE = "continue"
    """A run that ended early is continued."""
    TRY_AGAIN = "try_again"
    """A run in which no lookup brought a source is continued."""
    RESULT = "result"
    """A helper ended with text, and its role declares a result that it has not given."""
    LATE_WORDS = "late_words"
    """The user sent a message while the orchestrator was finishing."""


class EndCause(StrEnum):
    """Why an agent or a run ended, for programs; the `reason` next to it is for people."""

    OTHER = "other"
    """No program depends on the cause."""
    ANSWERED = "answered"
    """An agent ended with a text."""
    FINISHED = "finished"
    """An agent ended by the tool that ends it."""
    FOUND_NOTHING = "found_nothing"
    """An agent ended by its tool, and reported that the services answered and had nothing relevant.

    Also: too many rounds in a row found nothing of interest.
    """
    PLAN_REJECTED = "plan_rejected"
    """The user rejected the plan and asked for no other one."""
    STEP_LIMIT = "step_limit"
    COST_LIMIT = "cost_limit"
    TOKEN_LIMIT = "token_limit"  # noqa: S105 - a limit of tokens, no secret
    CALL_LIMIT = "call_limit"
    TIME_LIMIT = "time_limit"


LIMIT_WORDS = {
    EndCause.STEP_LIMIT: "step limit",
    EndCause.COST_LIMIT: "cost limit",
    EndCause.TOKEN_LIMIT: "token limit",
    EndCause.CALL_LIMIT: "tool call limit",
    EndCause.TIME_LIMIT: "time limit",
}
"""The name of each limit of a run, for people."""


@dataclass(frozen=True)
class EndReason:
    """Why something ends early, as text and as a code; false when nothing does."""

    words: str = ""
    cause: EndCause = EndCause.OTHER

    def __bool__(self) -> bool:
        """Return whether there is a reason."""
        return bool(self.words)


def limit_reached(cause: EndCause) -> EndReason:
    """Return the reason that names a limit of the run."""
    return EndReason(LIMIT_WORDS[cause], cause)


class ErrorCode(StrEnum):
    """Why a call failed, where a program depends on it: `code` in the data of its `tool_finished`."""

    INVALID_CALL = "invalid_call"
    """No tool has the name, or the arguments do not fit."""
    DENIED = "denied"
    """An approval rule, or the user when it asked, refused the call."""
    REPEATED = "repeated"
    """The same call brought the same result too often."""
    CORRECT_REPORT = "correct_report"
    """The report's citations have to be corrected; returned once."""
    KNOWN_STORIES = "known_stories"
    """The report writes up stories that the library had before; returned once."""
    UNKNOWN_SOURCES = "unknown_sources"
    """The report cites ids that no source has: `sources`."""
