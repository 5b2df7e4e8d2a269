"""An outage: a provider that brought turns before brings none now. It is waited out, for a limited time."""

from dataclasses import dataclass

from explorer.schema.errors import ModelError
from explorer.schema.messages import Request

MAX_OUTAGE_S = 600.0
"""For so long an outage is waited out where no limit is set."""
MAX_PROBE_WAIT_S = 30.0
"""Between two probes; a provider that is back is noticed after this at the latest."""
FIRST_PROBE_WAIT_S = 1.0
"""The upper end of the first wait; it doubles with every failed probe."""
MINUTE_S = 60


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt at a turn that brought none."""

    request: Request
    error: ModelError
    number: int
    """Of the attempts at this turn, from 1."""
    waits_s: float | None
    """Seconds until the next attempt; None: given up."""
    waiting_s: float | None = None
    """In an outage, the seconds since it began."""


@dataclass(slots=True)
class Trouble:
    """What one request has been through."""

    attempts: int = 0
    alone: int = 0
    """Attempts that failed while there was no outage."""
    waited_s: float = 0.0
    """After those."""

    def count(self, *, is_alone: bool) -> None:
        """Count a failed attempt."""
        self.attempts += 1
        self.alone += is_alone


def outage_wait_s(failed_probes: int, chance: float) -> float:
    """Return the seconds until the next probe: the upper half of a bound that doubles up to `MAX_PROBE_WAIT_S`.

    Args:
        failed_probes: In this outage.
        chance: Between 0 and 1.
    """
    bound_s = min(MAX_PROBE_WAIT_S, FIRST_PROBE_WAIT_S * 2 ** min(failed_probes, 10))
    return bound_s * (1 + chance) / 2


def gave_up(error: ModelError, waited_s: float) -> ModelError:
    """Return the error of a provider that was waited for in vain."""
    words = f"{error.message}; no request got through for {_duration(waited_s)}" if waited_s >= 1 else error.message
    made = ModelError(
        error.fault,
        words,
        hint=error.hint,
        retry_after_s=error.retry_after_s,
        is_wrong_server=error.is_wrong_server,
    )
    made.status, made.code = error.status, error.code
    return made


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 2 * MINUTE_S else f"{seconds / MINUTE_S:.0f} minutes"
