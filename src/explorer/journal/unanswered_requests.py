"""Requests that were sent and brought no turn: the provider may bill them, so they count as they were reserved."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from explorer.schema.events import AnyEvent, RequestSent
from explorer.schema.messages import Estimate, Usage

JUDGE = "judge"
"""The `agent` of questions about citations: several at once, and one record for all of their answers."""


@dataclass
class Unanswered:
    """Which requests are under way, and what those without a turn are booked with. Only `apply` changes it."""

    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    under_way: dict[str, list[RequestSent]] = field(default_factory=dict[str, list[RequestSent]])
    """By agent; an agent's next request shows that nothing came of the one before."""

    def apply(self, event: AnyEvent) -> tuple[RequestSent, ...]:
        """Fold one event in, whoever's it is; the requests that it shows to have brought nothing."""
        match event.type:
            case "request_sent":
                return self._send(event)
            case "turn" | "citations_judged":
                self.under_way.pop(JUDGE if event.type == "citations_judged" else event.agent, None)
            case "turn_failed" if event.agent != JUDGE:
                sent = self.under_way.pop(event.agent, [])
                return self._book(sent if event.is_billed else [])
            case "session_configured" | "run_finished":
                return self._book(self._all())
            case _:
                pass
        return ()

    def _send(self, event: RequestSent) -> tuple[RequestSent, ...]:
        before = [] if event.agent == JUDGE else self.under_way.pop(event.agent, [])
        self.under_way.setdefault(event.agent, []).append(event)
        return self._book(before)

    def _all(self) -> list[RequestSent]:
        """All that are under way, which from now on are not."""
        sent = [one for requests in self.under_way.values() for one in requests]
        self.under_way.clear()
        return sent

    def _book(self, sent: Iterable[RequestSent]) -> tuple[RequestSent, ...]:
        booked = tuple(sent)
        for one in booked:
            self.usage += reserved(one)
            self.cost_usd += one.cost_usd
        return booked

    @property
    def usage_at_most(self) -> Usage:
        """With what is under way."""
        return sum((reserved(one) for requests in self.under_way.values() for one in requests), self.usage)

    @property
    def cost_at_most(self) -> float:
        """With what is under way."""
        return self.cost_usd + sum(one.cost_usd for requests in self.under_way.values() for one in requests)

    @property
    def estimate(self) -> Estimate:
        """All of it, as the estimate that it is."""
        return Estimate(tokens=self.usage_at_most.total_tokens, cost_usd=self.cost_at_most)


def reserved(sent: RequestSent) -> Usage:
    """The most tokens that a request can use."""
    return Usage(input_tokens=sent.input_tokens, output_tokens=sent.output_tokens)
