"""What an embedding program may pass to a run: tools, a client, clocks, callbacks, and the signal to stop it."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import BaseModel

from explorer.agents.budget import Budget
from explorer.journal.journal import JournalStore, NoStore, Observe
from explorer.journal.listing import is_name
from explorer.llm.clients import RetrySettings
from explorer.schema.approvals import Approve
from explorer.schema.errors import ConfigError
from explorer.schema.events import JournalRecord, SingleAgent
from explorer.schema.messages import LLMClient
from explorer.schema.plan import PlanDecision
from explorer.schema.tool import Tool


class StopSignal:
    """Asks a run from outside to write its report and stop."""

    def __init__(self) -> None:
        self._budget: Budget | None = None
        self._reason = ""
        self.cut = ""
        """Why the run is stopped at once, by the cancellation of its task; empty when it is not."""

    def wind_down(self, reason: str) -> None:
        """End the work of the helpers, and let the report be written from what there is, within half a minute.

        Args:
            reason: Why, for the report and the journal.
        """
        self._reason = reason
        if self._budget is not None:
            self._budget.stop(reason)

    def stop_at_once(self, reason: str) -> None:
        """Say why the run's task is about to be cancelled: agents still at work are to continue when it is resumed.

        Args:
            reason: Why, for the journal.
        """
        self.cut = reason
        if self._budget is not None:
            self._budget.withdraw(self._reason)
        self._reason = ""

    def attach(self, budget: Budget) -> None:
        """Connect to the run's budget; a signal given before counts.

        Args:
            budget: What the engine asks before each step.
        """
        self._budget = budget
        if self._reason:
            budget.stop(self._reason)


@dataclass(frozen=True)
class RunHooks:
    """Objects and callbacks that an embedding program may pass to a run."""

    tools: Sequence[Tool] = ()
    """Further tools that roles may name."""
    client: LLMClient | None = None
    """Answers for every role, instead of the models chosen by the settings."""
    observe: Observe | None = None
    """Called with each record once it is on disk, in order.

    What it raises goes to the event loop's exception handler, which logs it; the run continues.
    """
    stop: StopSignal = field(default_factory=StopSignal)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    clock: Callable[[], float] = time.monotonic
    retry_settings: RetrySettings | None = None
    """Timeouts, and the clock of the waits between attempts, for models chosen by the settings."""
    progress: Callable[[str], None] = lambda _words: None
    """Called with a line on how far something long is: indexing the user's folder, or a tool's call."""
    run_id: str = ""
    """Id of a new run; empty: made from time and question."""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Files a new run's question is about, by name, besides those of the settings' paths."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where each setting was set, by its name (`limits.max_cost_usd`); for the session's record."""
    answer_form: type[BaseModel] | None = None
    """What is wanted besides the report: the orchestrator fills it in before it finishes."""
    single_agent: SingleAgent | None = None
    """Does the whole of a new run, instead of the roles; a resumed run has the one that it was started with."""
    plan_decision: PlanDecision | None = None
    """What the user decided about the plan that a resumed run waits with."""
    catch_up: Callable[[Sequence[JournalRecord]], None] = lambda _records: None
    """Called once, before `observe`, with the records that a resumed run has so far."""
    approve: Approve | None = None
    """Answers calls that an approval rule asks about; None: they are refused."""
    store: JournalStore = field(default_factory=NoStore)
    """A second place for the lines of the journal, which each of them reaches before its file."""
    way_on: str = ""
    """The command that continues a run which an error ended, for its report, with `{run}`; empty: `explorer resume`."""
    on_checkpoint: Callable[[str], None] | None = None
    """Called at each of the journal's points of no return, by name; tests end the process there."""

    def __post_init__(self) -> None:
        """Refuse an id that is a path: it would lead out of the workspace.

        Raises:
            ConfigError: The id is not a name.
        """
        if self.run_id and not is_name(self.run_id):
            raise ConfigError(
                f"a run cannot have the id {self.run_id!r}",
                hint="up to 150 of a to z, 0 to 9, `-`, `_` and `.`; not `latest`",
            )
