"""What dead workers held of shared limits: it counts as spent, until the journal of the run says what was.

Each request is in its run's journal before it is sent, and no worker writes there once its run is another's. So when a
run is taken over, its journal has all that the dead worker can have sent. A request without an answer counts in full.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from explorer.fleet.database import HELD, SPENDING, FleetDatabase
from explorer.fleet.ledger import lock_spending
from explorer.fleet.limits import LimitName, Scope, SliceName, Unit, limit_name, slice_condition, whole
from explorer.journal.run_state import JUDGE, RunState
from explorer.schema.events import JournalRecord, RequestSent
from explorer.schema.shared_limits import RequestUse


def presume_spent(connection: sa.Connection, run_ids: Collection[str]) -> None:
    """Count what these runs hold as spent: their workers died."""
    theirs = sa.and_(HELD.c.run_id.in_(sorted(run_ids)), ~HELD.c.is_presumed)
    rows = connection.execute(sa.select(HELD).where(theirs)).all()
    lock_spending(connection, [_slice_of(row) for row in rows])
    for row in rows:
        # What the worker reported meanwhile is not in what was read: only what is still held now is moved.
        mine = _row(row)
        changed = connection.execute(
            sa.update(HELD).where(*mine, ~HELD.c.is_presumed).values(is_presumed=True).returning(HELD.c.held)
        ).one_or_none()
        if changed is not None:
            _move(connection, row, spent=changed.held, held=-changed.held)


def settle_earlier(
    database: FleetDatabase, run_id: str, epoch: int, spent: Callable[[int, str], Mapping[str, int]]
) -> None:
    """Replace what earlier takings of a run may have spent by what they did spend; the rest comes back.

    Args:
        database: The fleet's database.
        run_id: The run.
        epoch: The present taking.
        spent: Returns what its journal has after a record, by unit; of one vendor's models, or of all.
    """
    with database.transaction() as connection:
        database.begin_writing(connection)
        chosen = sa.select(HELD).where(HELD.c.run_id == run_id, HELD.c.epoch < epoch)
        rows = connection.execute(chosen).all()
        lock_spending(connection, [_slice_of(row) for row in rows])
        for row, kept in zip(rows, _kept(rows, spent), strict=True):
            if row.is_presumed:
                _move(connection, row, spent=kept - row.held)
            else:
                _move(connection, row, spent=kept, held=-row.held)
            connection.execute(sa.delete(HELD).where(*_row(row)))


def _kept(rows: Sequence[sa.Row[Any]], spent: Callable[[int, str], Mapping[str, int]]) -> list[int]:
    """Return how much of what each row holds was spent, or may have been.

    A taking may hold slices of two windows, and the journal's times are another clock's: what was not reported counts
    in both.
    """
    reported: dict[tuple[int, LimitName], int] = {}
    for row in rows:
        name = (row.epoch, limit_name(row))
        reported[name] = reported.get(name, 0) + row.spent
    kept: list[int] = []
    for row in rows:
        vendor = row.subject.rpartition("-")[0] if row.scope == Scope.KEY else ""
        total = spent(row.after_seq, vendor)[row.unit]
        kept.append(min(row.held, max(0, total - reported[row.epoch, limit_name(row)])))
    return kept


def _slice_of(row: sa.Row[Any]) -> SliceName:
    return SliceName(limit_name(row), row.window)


def _row(row: sa.Row[Any]) -> tuple[sa.ColumnElement[bool], ...]:
    return (HELD.c.run_id == row.run_id, HELD.c.epoch == row.epoch, slice_condition(HELD, [_slice_of(row)]))


def _move(connection: sa.Connection, row: sa.Row[Any], *, spent: int = 0, held: int = 0) -> None:
    changed = sa.update(SPENDING).where(slice_condition(SPENDING, [_slice_of(row)]))
    connection.execute(changed.values(spent=SPENDING.c.spent + spent, held=SPENDING.c.held + held))


@dataclass
class _Requests:
    """The requests of some records, and what each used."""

    by_vendor: dict[str, list[RequestUse]] = field(default_factory=dict[str, list[RequestUse]])
    open: dict[str, tuple[str, RequestSent]] = field(default_factory=dict[str, tuple[str, RequestSent]])
    """The request of each agent that has no answer yet, with its vendor."""

    def send(self, vendor: str, event: RequestSent) -> None:
        """Add a request; that of the agent before it had no answer."""
        self.end(event.agent, None)
        if event.agent == JUDGE:
            # Several are sent at once, and one record has all answers: each counts in full.
            self._add(vendor, _worst(event))
        else:
            self.open[event.agent] = (vendor, event)

    def end(self, agent: str, used: RequestUse | None) -> None:
        """Note what an agent's request used; None: that is not known, so all of it counts."""
        vendor, event = self.open.pop(agent, ("", None))
        if event is not None:
            self._add(vendor, used or _worst(event))

    def _add(self, vendor: str, used: RequestUse) -> None:
        self.by_vendor.setdefault(vendor, []).append(used)


def spent_by(
    records: Sequence[JournalRecord], vendor_of: Callable[[str], str]
) -> Callable[[int, str], Mapping[str, int]]:
    """Return what tells the spending after a record of a journal, of one vendor's models or of all.

    Args:
        records: The journal.
        vendor_of: Returns the vendor of a model's prefix.
    """

    def spent(after_seq: int, vendor: str) -> Mapping[str, int]:
        found = _requests(records, after_seq, vendor_of)
        return amounts_of(use for name, uses in found.items() if not vendor or name in {"", vendor} for use in uses)

    return spent


def _requests(
    records: Iterable[JournalRecord], after_seq: int, vendor_of: Callable[[str], str]
) -> Mapping[str, list[RequestUse]]:
    state, requests = RunState(), _Requests()
    for record in records:
        event = record.event
        state.apply(event)
        if record.seq <= after_seq:
            continue
        match event.type:
            case "request_sent":
                requests.send(vendor_of(_model_of(state, event.agent)), event)
            case "turn":
                requests.end(event.agent, RequestUse(1, event.turn.usage.total_tokens, event.turn.cost_usd or 0.0))
            case "turn_failed":
                requests.end(event.agent, None if event.is_billed else RequestUse(1))
            case _:
                pass
    for agent in list(requests.open):
        requests.end(agent, None)
    return requests.by_vendor


def _model_of(state: RunState, agent: str) -> str:
    """Return the prefix of an agent's model; empty when that is not known."""
    asking = state.agents.get(agent)
    role = JUDGE if agent == JUDGE else asking.role if asking is not None else ""
    in_use = state.session.models.get(role) if state.session is not None else None
    return in_use.model.partition(":")[0] if in_use is not None else ""


def _worst(event: RequestSent) -> RequestUse:
    return RequestUse(1, event.input_tokens + event.output_tokens, event.cost_usd)


def amounts_of(uses: Iterable[RequestUse]) -> dict[str, int]:
    """Return the sum of what requests used as stored amounts; each request is rounded up by itself."""
    total = {str(unit): 0 for unit in Unit}
    for use in uses:
        total[Unit.USD] += whole(Unit.USD, use.cost_usd or 0.0)
        total[Unit.TOKENS] += use.tokens
        total[Unit.REQUESTS] += use.requests
    return total
