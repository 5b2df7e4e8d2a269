"""Codes that say why: a note was given, an agent or a run ended, a call failed. Programs read these, never words."""

from dataclasses import dataclass
from enum import StrEnum


class NoteReason(StrEnum):
    """Why the engine says something to an agent. Journals hold these values; `agents/decisions.py` has the words."""

    EMPTY_REPLY = "empty_reply"
    CUT_REPLY = "cut_reply"
    USUAL_LENGTH = "usual_length"
    """A reply was cut, and the server does not take a longer one."""
    DECLINED = "declined"
    ROOM_MADE = "room_made"
    SQUEEZED = "squeezed"
    """The conversation was shortened again although nothing new came of it."""
    SUMMARISE = "summarise"
    """The agent is asked to write down what it needs; its next turn is the answer."""
    ACT = "act"
    """The orchestrator replied in words, and there is no report."""
    CORRECT = "correct"
    """The orchestrator replied in words, and the report has faults."""
    WRAP_UP = "wrap_up"
    ERRORS = "errors"
    REPEATING = "repeating"
    NOTHING_NEW = "nothing_new"
    BUDGET_70 = "budget_70"
    BUDGET_85 = "budget_85"
    WINDING_DOWN = "winding_down"
    """Only the report may be worked on."""
    WRITE_NOW = "write_now"
    """The same, for who writes the report."""
    SHORT_REPLIES_6000 = "short_replies_6000"
    SHORT_REPLIES_3000 = "short_replies_3000"
    SHORT_REPLIES_1500 = "short_replies_1500"
    JOB_ENDED = "job_ended"
    CONTINUE = "continue"
    """A run that ended early is continued."""
    TRY_AGAIN = "try_again"
    """A run is continued that no lookup brought a source."""
    LATE_WORDS = "late_words"
    """The user said something while the orchestrator was finishing."""


class EndCause(StrEnum):
    """Why an agent or a run ended, for programs; the `reason` next to it is for people."""

    OTHER = "other"
    """Nothing that a program decides by."""
    ANSWERED = "answered"
    """An agent ended in words."""
    FINISHED = "finished"
    """An agent ended by the tool that ends it."""
    FOUND_NOTHING = "found_nothing"
    """The same, and it says that the services answered and had nothing relevant."""
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
"""Each limit of a run, for people."""


@dataclass(frozen=True)
class EndReason:
    """Why something ends early, in words and as a code; false when nothing does."""

    words: str = ""
    cause: EndCause = EndCause.OTHER

    def __bool__(self) -> bool:
        """Whether there is a reason."""
        return bool(self.words)


def limit_reached(cause: EndCause) -> EndReason:
    """Return the reason that names a limit of the run."""
    return EndReason(LIMIT_WORDS[cause], cause)


class ErrorCode(StrEnum):
    """Why a call brought an error, where a program decides by it: `code` in the data of its `tool_finished`."""

    REPEATED = "repeated"
    """The same call brought the same result too often."""
    CORRECT_REPORT = "correct_report"
    """The report's citations are to be corrected; said once."""
    UNKNOWN_SOURCES = "unknown_sources"
    """The report cites ids that no source has: `sources`."""
