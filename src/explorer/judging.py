"""A model's opinion of the report's citations, asked for with `--judge`: within the run's limits, and on its record."""

from dataclasses import dataclass

from explorer.budget import Account, Amount, WorstCost
from explorer.equipment import JUDGE, Equipment, worst_cost
from explorer.errors import ConfigError, ModelError, ModelFault
from explorer.events import CitationsJudged
from explorer.llm.retry import OnFailure, RetryingClient, WaitLimits
from explorer.messages import LLMClient, Request, Turn
from explorer.verify.check import TextOf
from explorer.verify.claims import Verification
from explorer.verify.judge import Judgements, judge

CHARS_PER_TOKEN = 2
"""Fewer than any tokenizer needs: an upper bound for what a question costs."""


@dataclass(frozen=True)
class WithinLimits:
    """A client that asks only what the run's limits have room for."""

    inner: LLMClient
    account: Account
    worst: WorstCost

    async def generate(self, request: Request) -> Turn:
        """Ask, within a reservation.

        Raises:
            ModelError: A limit has no room, or the model did not answer.
        """
        tokens = (len(request.system) + sum(len(str(message)) for message in request.history)) // CHARS_PER_TOKEN
        hold = await self.account.reserve(tokens, request.max_output_tokens, self.worst)
        if isinstance(hold, str):
            raise ModelError(ModelFault.REJECTED, f"the run's limit on {hold} has no room for the judge")
        used = Amount(steps=1)
        try:
            turn = await self.inner.generate(request)
            used = Amount(1, turn.usage.total_tokens, turn.cost_usd or 0.0)
            return turn
        finally:
            self.account.settle(hold, used)


async def ask_judge(
    equipment: Equipment, account: Account, verification: Verification, text_of: TextOf, on_failure: OnFailure
) -> Judgements:
    """Have the model of `--judge` say of each cited sentence whether its sources carry it.

    Raises:
        ConfigError: The model cannot be used.
    """
    if equipment.own_client is not None:
        client: LLMClient = WithinLimits(equipment.own_client, account, lambda _input, _output: 0.0)
        return await judge(verification.claims, text_of, client, JUDGE)
    ref, clients = equipment.judge, equipment.clients
    if ref is None:
        raise ConfigError("no model was chosen as the judge", hint="for example --judge openai:NAME")
    waits = WaitLimits(max_outage_s=equipment.settings.limits.max_outage_s)
    retrying = RetryingClient(
        clients.client_for(ref), clients.gate_for(ref), on_failure, limits=waits, timing=clients.timing
    )
    client = WithinLimits(retrying, account, worst_cost(ref, equipment.settings))
    return await judge(verification.claims, text_of, client, ref.name)


def as_event(judged: Judgements) -> CitationsJudged:
    """What goes on the record: how many, and what it cost."""
    counts = judged.counts
    return CitationsJudged(
        model=judged.model,
        asked=counts["asked"],
        carried=counts["carried"],
        not_carried=counts["not_carried"],
        unclear=counts["unclear"],
        problem=judged.problem,
        usage=judged.usage,
        cost_usd=judged.cost_usd,
    )
