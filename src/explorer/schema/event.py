"""The base of all events."""

from explorer.schema.messages import Frozen

ENGINE = "engine"
"""The `agent` of events that belong to the run as a whole."""


class Event(Frozen):
    """Base of all events."""

    agent: str = ENGINE

    @property
    def is_barrier(self) -> bool:
        """Whether the run waits until it is on disk."""
        return True

    @property
    def is_written_at_once(self) -> bool:
        """Whether the run waits until it is in the file, where it survives the end of this process."""
        return self.is_barrier
