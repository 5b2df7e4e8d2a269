"""One limit of money over all sessions of runs in a process: each reserves what it may spend before it starts."""

from explorer.schema.errors import ToolError
from explorer.text.rendering import ModelText, code, codes, own

LEAST_USD = 0.01
"""With less than a cent, no run is started: it would end before it could find anything."""


class TotalCost:
    """What of the limit is spent, and what the sessions at work may still spend."""

    def __init__(self, limit_usd: float | None) -> None:
        """Take the limit; None: there is none."""
        self.limit_usd = limit_usd
        self.spent_usd = 0.0
        self._reserved: dict[str, float] = {}
        """What the session of each run at work may spend."""

    def reserve(self, run_id: str, wanted_usd: float | None) -> float | None:
        """Return what the session of a run may spend; None: as much as its own limit says.

        Args:
            run_id: The run.
            wanted_usd: What its own limit leaves it; None: it has no limit.

        Raises:
            ToolError: Nothing is left.
        """
        if self.limit_usd is None:
            return None
        left = self.limit_usd - self.spent_usd - sum(self._reserved.values())
        if left < LEAST_USD:
            raise ToolError(self._refusal(run_id))
        allowed = left if wanted_usd is None else min(wanted_usd, left)
        self._reserved[run_id] = allowed
        return allowed

    def _refusal(self, run_id: str) -> ModelText:
        spent = own(
            "run {id} is not started: ${limit} is the limit of all runs of this server together, and ${spent} is spent",
            id=code(run_id),
            limit=f"{self.limit_usd:.2f}",
            spent=f"{self.spent_usd:.2f}",
        )
        if not self._reserved:
            return own("{spent}. The user can start the server with a higher --max-total-cost", spent=spent)
        words = "{spent}; the rest, ${reserved}, is for the runs at work: {ids}. Wait for one of them"
        return own(words, spent=spent, reserved=f"{sum(self._reserved.values()):.2f}", ids=codes(self._reserved))

    def settle(self, run_id: str, spent_usd: float | None) -> None:
        """Count what a session has spent in place of what it could; None: that is not known, so all of it counts."""
        reserved = self._reserved.pop(run_id, 0.0)
        if self.limit_usd is not None:
            self.spent_usd += reserved if spent_usd is None else max(0.0, spent_usd)
