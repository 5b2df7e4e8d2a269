"""A run's records in, spans at a collector: for the command line, and for programs that embed the engine."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager

from explorer.observe.tracing.exporter import Collector, SpanExporter
from explorer.observe.tracing.spans import Spans
from explorer.schema.events import JournalRecord


class Tracing:
    """Makes spans of a run's records and sends them while it is open.

    Args:
        collector: Where they go.
        tell: Given one line when some are lost.
    """

    def __init__(self, collector: Collector, tell: Callable[[str], None]) -> None:
        self._sender = SpanExporter(collector, tell)
        self._spans = Spans(self._sender.take)

    def catch_up(self, records: Iterable[JournalRecord]) -> None:
        """Know what happened in earlier lives of the run."""
        self._spans.catch_up(records)

    def observe(self, record: JournalRecord) -> None:
        """Take in a record as it comes: what `Extras.observe` is to be given."""
        self._spans.observe(record)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Send while inside; leaving it, what is not over is sent as it stands."""
        async with self._sender.open():
            try:
                yield
            finally:
                self._spans.end()
