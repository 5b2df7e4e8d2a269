"""A model's opinion of the report's citations, asked for with `--judge`: within the run's limits, and on its record."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from explorer.agents.budget import Account, Amount, WorstCost, no_cost
from explorer.agents.payments import OverBudgetError, PaidClient, Payment, Terms
from explorer.journal.context_size import bytes_of, most_tokens_of
from explorer.journal.run_state import JUDGE
from explorer.llm.retry import OnFailure, WaitLimits
from explorer.reports.verify.claims import Judgements, TextOf, Verification, judge
from explorer.run.resources import RunResources
from explorer.schema.errors import ConfigError, ModelError, ModelFault
from explorer.schema.events import Append, CitationsJudged
from explorer.schema.messages import Estimate, LLMClient, Request, Turn, Usage
from explorer.text.token_bounds import most_tokens


@dataclass
class Unreported:
    """What was booked without the provider's word for it."""

    lost: Amount = field(default_factory=Amount)
    """Cost of attempts that brought no answer."""
    estimate: Estimate = field(default_factory=Estimate)
    """All of it."""

    def add_lost(self, amount: Amount) -> None:
        """Add an attempt that brought no answer."""
        self.lost += amount
        self.estimate += Estimate(tokens=amount.tokens, cost_usd=amount.cost_usd)


@dataclass(frozen=True)
class JudgeAccount:
    """What pays for the questions, and where they are recorded."""

    account: Account
    record: Append
    on_failure: OnFailure
    seconds_left: Callable[[], float | None] = lambda: None
    """Return the seconds to the run's hard end; None without a limit."""
    unreported: Unreported = field(default_factory=Unreported)


@dataclass(frozen=True)
class LimitedClient:
    """A client that asks only what the run's limits have room for."""

    inner: LLMClient
    judge_account: JudgeAccount
    worst: WorstCost

    async def generate(self, request: Request) -> Turn:
        """Ask, within a reservation.

        Raises:
            ModelError: A limit has no room, or the model did not answer.
        """
        size = len(request.system.encode("utf-8", "replace")) + sum(map(bytes_of, request.history))
        tokens = most_tokens(request.system) + sum(map(most_tokens_of, request.history))
        reservation = await self.judge_account.account.reserve(tokens, request.max_output_tokens, self.worst)
        if isinstance(reservation, str):
            raise _over_budget(reservation)
        terms = Terms(self.judge_account.account, self.worst, self.judge_account.record, request_bytes=size)
        payment = Payment(terms, reservation, tokens)
        try:
            async with asyncio.timeout(self.judge_account.seconds_left()):
                turn = await self.inner.generate(replace(request, attempt=payment.attempt))
            payment.take(turn)
        except OverBudgetError as error:
            raise _over_budget(str(error)) from error
        except TimeoutError as error:
            raise _over_budget("time") from error
        finally:
            payment.close()
            self.judge_account.unreported.add_lost(payment.lost)
        if turn.is_estimated:
            estimate = Estimate(tokens=turn.usage.total_tokens, cost_usd=turn.cost_usd or 0.0)
            self.judge_account.unreported.estimate += estimate
        return turn


def _over_budget(limit: str) -> ModelError:
    return ModelError(ModelFault.REJECTED, f"the run's limit on {limit} leaves nothing for the judge")


async def ask_judge(
    resources: RunResources, judge_account: JudgeAccount, verification: Verification, text_of: TextOf
) -> tuple[Judgements, CitationsJudged]:
    """Ask the model of `--judge` whether the sources of each cited sentence support it; return that, and its record.

    Raises:
        ConfigError: The model cannot be used.
    """
    ref = resources.judge
    if resources.own_client is not None:
        name, asked, worst = JUDGE, PaidClient(resources.own_client), no_cost
    elif ref is not None:
        waits = WaitLimits(max_outage_s=resources.settings.limits.max_outage_s)
        asked = resources.client_of(ref, judge_account.on_failure, waits)
        name, worst = ref.name, resources.worst_cost(ref)
    else:
        raise ConfigError("no model was chosen as the judge", hint="for example --judge openai:NAME")
    client = LimitedClient(asked, judge_account, worst)
    judged = await judge(verification.claims, text_of, client, name)
    return judged, as_event(judged, judge_account.unreported)


def as_event(judged: Judgements, unreported: Unreported) -> CitationsJudged:
    """Return what goes on the record: how many, and what it cost, attempts without an answer included."""
    counts, lost = judged.counts, unreported.lost
    return CitationsJudged(
        model=judged.model,
        asked=counts["asked"],
        carried=counts["carried"],
        not_carried=counts["not_carried"],
        unclear=counts["unclear"],
        problem=judged.problem,
        # What is reserved for a question is nearly all input; a reply is one word.
        usage=judged.usage + Usage(input_tokens=lost.tokens),
        cost_usd=None if judged.cost_usd is None else judged.cost_usd + lost.cost_usd,
        estimated=unreported.estimate or None,
    )
