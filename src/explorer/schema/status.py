"""How things ended: agents, whole runs, and single lookups."""

from enum import StrEnum


class Status(StrEnum):
    """How an agent or a run ended. The last two are of runs alone."""

    COMPLETE = "complete"
    """An agent did its task; a run has an answer that rests on sources."""
    PARTIAL = "partial"
    """Stopped early, with something in hand; or the answer does not rest on sources throughout."""
    FAILED = "failed"
    NOTHING_FOUND = "nothing_found"
    """The services answered, and nothing relevant was found."""
    SOURCES_UNAVAILABLE = "sources_unavailable"
    """No lookup reached a source: the run can be continued when the services answer again."""


class Lookup(StrEnum):
    """What a call brought that asked an outside service or the user's folder for evidence."""

    NONE = ""
    """The call is no lookup, or was refused before anything was asked."""
    FOUND = "found"
    """It brought at least one source."""
    EMPTY = "empty"
    """The service answered, and has nothing of the kind."""
    FAILED = "failed"
    """The service did not answer, or not with anything that can be used."""
