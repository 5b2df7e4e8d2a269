"""Orders to runs as JSON: steer, stop, resume, fork, decide about a plan or a call; the forms of pages do the same."""

from pathlib import Path

from fastapi import Response

from explorer.run.served import Wishes
from explorer.schema.errors import ConfigError
from explorer.schema.plan import PlanDecision
from explorer.server import orders
from explorer.server.json_models import CallOrder, ForkOrder, OrderAnswer, PlanOrder, ResumeOrder, SteerOrder, StopOrder
from explorer.server.json_routes import json_router
from explorer.server.site import OfSite, WebSite

ACCEPTED = 202
CREATED = 201
STOPPED_BY_PROGRAM = "stopped by the user, through the web page's JSON"
router = json_router("orders")


@router.post("/runs/{run_id}/steer", summary="Send a message to a run", status_code=ACCEPTED)
async def steer(run_id: str, site: OfSite, order: SteerOrder) -> OrderAnswer:
    """Leave a message for a run at work; the run takes it at its next turn, and its journal says so (`steered`)."""
    return await _answer(site, await orders.steer_run(site, run_id, order.message))


@router.post("/runs/{run_id}/stop", summary="Stop a run", status_code=ACCEPTED)
async def stop(run_id: str, site: OfSite, order: StopOrder) -> OrderAnswer:
    """Let a run write its report and stop, or stop it at once: all that was recorded is kept, and it can be resumed."""
    return await _answer(site, await orders.stop_run(site, run_id, order.how, STOPPED_BY_PROGRAM))


@router.post("/runs/{run_id}/resume", summary="Resume a run, or ask it further", status_code=ACCEPTED)
async def resume(run_id: str, site: OfSite, order: ResumeOrder) -> OrderAnswer:
    """Resume a run where it stopped, or ask it further."""
    wishes = Wishes(max_cost_usd=order.max_cost_usd, max_time_s=order.max_time_s)
    return await _answer(site, await orders.resume_run(site, run_id, order.message, wishes))


@router.post("/runs/{run_id}/fork", summary="Fork a run", status_code=CREATED)
async def fork(run_id: str, site: OfSite, order: ForkOrder, response: Response) -> OrderAnswer:
    """Make a new run of the beginning of one; with a message, it continues with that. The first one stays as it is."""
    folder = await orders.fork_run(site, run_id, order.at, order.message)
    response.headers["location"] = f"/api/runs/{folder.name}"
    return await _answer(site, folder)


@router.post("/runs/{run_id}/plan", summary="Decide about a plan", status_code=ACCEPTED)
async def decide(run_id: str, site: OfSite, order: PlanOrder) -> OrderAnswer:
    """Approve, edit or reject the plan that a run waits with."""
    return await _answer(site, await orders.decide_plan(site, run_id, _decision(order)))


@router.post("/runs/{run_id}/call", summary="Decide about a call", status_code=ACCEPTED)
async def decide_call(run_id: str, site: OfSite, order: CallOrder) -> OrderAnswer:
    """Allow or deny the call that waits for approval in a run of this server; the answer is in its journal then."""
    return await _answer(site, await orders.decide_call(site, run_id, order.call, order.decision, order.reason))


def _decision(order: PlanOrder) -> PlanDecision:
    if (order.plan is not None) != (order.decision == "edit"):
        raise ConfigError("a plan is needed to edit one, and only then", hint='"decision": "edit", "plan": {...}')
    if order.plan is not None:
        return PlanDecision.edit(order.plan)
    return PlanDecision.approve() if order.decision == "approve" else PlanDecision.reject(order.message)


async def _answer(site: WebSite, folder: Path) -> OrderAnswer:
    return OrderAnswer(run_id=folder.name, status=(await site.feeds.of(folder)).status)
