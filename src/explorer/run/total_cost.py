"""One limit of money over all sessions of a day that a workspace's servers start: each reserves what it may spend."""

from explorer.run.spending import DaySpending, Reserved, SpendingBook, settle
from explorer.schema.errors import ToolError
from explorer.text.rendering import ModelText, code, codes, own

LEAST_USD = 0.01
"""With less than a cent, no run is started: it would end before it could find anything."""


class TotalCost:
    """What of the limit is spent, and what the sessions at work may still spend."""

    def __init__(self, limit_usd: float | None, book: SpendingBook) -> None:
        """Take the limit, and where is counted; None: there is no limit."""
        self.limit_usd = limit_usd
        self._book = book

    @property
    def spent_usd(self) -> float:
        """What is spent today.

        Raises:
            ToolError: It cannot be known.
        """
        with self._book.changed() as spending:
            return spending.spent_usd

    def reserve(self, run_id: str, wanted_usd: float | None, before_usd: float = 0.0) -> float | None:
        """Return what the session of a run may spend; None: as much as its own limit says.

        Args:
            run_id: The run.
            wanted_usd: What its own limit leaves it; None: it has no limit.
            before_usd: What the run has cost before this session.

        Raises:
            ToolError: Nothing is left, or what is left cannot be known.
        """
        if self.limit_usd is None:
            return None
        with self._book.changed() as spending:
            left = self.limit_usd - spending.spent_usd - spending.reserved_usd
            if left < LEAST_USD:
                raise ToolError(self._refusal(run_id, spending))
            allowed = left if wanted_usd is None else min(wanted_usd, left)
            spending.reserved[run_id] = Reserved(holder=self._book.holder, usd=allowed, before_usd=before_usd)
        return allowed

    def _refusal(self, run_id: str, spending: DaySpending) -> ModelText:
        spent = own(
            "run {id} is not started: ${limit:.2f} is the limit of all runs together that servers of this workspace "
            "start in a day, and ${spent:.2f} is spent",
            id=code(run_id),
            limit=self.limit_usd or 0.0,
            spent=spending.spent_usd,
        )
        if not spending.reserved:
            return own("{spent}. The user can start the server with a higher --max-total-cost", spent=spent)
        words = "{spent}; the rest, ${reserved:.2f}, is for the runs at work: {ids}. Wait for one of them"
        return own(words, spent=spent, reserved=spending.reserved_usd, ids=codes(spending.reserved))

    def settle(self, run_id: str, cost_usd: float | None) -> None:
        """Count what a session has spent in place of what it could.

        Args:
            run_id: The run of the session.
            cost_usd: What the run has cost in all; None: that is not known, so all that was reserved counts.
        """
        if self.limit_usd is not None:
            with self._book.changed() as spending:
                settle(spending, run_id, cost_usd)

    def close(self) -> None:
        """Let other servers know that no session of this one is at work any more."""
        self._book.close()
