"""What a browser can order: ask, steer, stop, resume, ask further, fork, decide about a plan or a call."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, File, Form, UploadFile
from fastapi.responses import RedirectResponse

from explorer.run.served import Wishes
from explorer.schema.errors import ConfigError
from explorer.schema.plan import PlanDecision
from explorer.server import orders
from explorer.server.site import OfSite

SEE_OTHER = 303
STOPPED_BY_BROWSER = "stopped by the user, in the browser"
router = APIRouter(include_in_schema=False)
Words = Annotated[str, Form(max_length=orders.MAX_QUESTION_CHARS)]
Usd = Annotated[str, Form(max_length=20)]


@router.post("/runs")
async def ask(  # noqa: PLR0913, PLR0917 - the fields of a form
    site: OfSite,
    question: Words,
    model: Words = "",
    language: Words = "",
    max_cost: Usd = "",
    max_minutes: Usd = "",
    plan: Annotated[bool, Form()] = False,  # noqa: FBT002 - a field of a form
    files: Annotated[Sequence[UploadFile], File()] = (),
) -> RedirectResponse:
    """Start a run, and show it."""
    wishes = Wishes(
        max_cost_usd=_number(max_cost, "the cost"),
        max_time_s=_seconds(max_minutes),
        waits_with_plan=plan,
        model=model.strip(),
        language=language.strip(),
        files=await _content_of(files),
    )
    return _to(await orders.start_run(site, question, wishes))


@router.post("/runs/{run_id}/steer")
async def steer(run_id: str, site: OfSite, message: Words) -> RedirectResponse:
    """Leave a message for a run at work; its page says when it was applied."""
    return _to(await orders.steer_run(site, run_id, message))


@router.post("/runs/{run_id}/stop")
async def stop(run_id: str, site: OfSite, how: Annotated[orders.StopHow, Form()]) -> RedirectResponse:
    """Let a run write its report, or stop it at once, which only the process that works on it can do."""
    return _to(await orders.stop_run(site, run_id, how, STOPPED_BY_BROWSER))


@router.post("/runs/{run_id}/resume")
async def resume(run_id: str, site: OfSite, message: Words = "", max_cost: Usd = "") -> RedirectResponse:
    """Resume a run where it stopped, or ask it further."""
    wishes = Wishes(max_cost_usd=_number(max_cost, "the cost"))
    return _to(await orders.resume_run(site, run_id, message, wishes))


@router.post("/runs/{run_id}/fork")
async def fork_run(
    run_id: str, site: OfSite, message: Words = "", at: Annotated[int | None, Form(ge=1)] = None
) -> RedirectResponse:
    """Make a new run of the beginning of one; with a message, it continues with that."""
    return _to(await orders.fork_run(site, run_id, at, message))


@router.post("/runs/{run_id}/plan")
async def decide(
    run_id: str, site: OfSite, decision: Annotated[Literal["approve", "reject"], Form()], message: Words = ""
) -> RedirectResponse:
    """Approve a plan that waits; or reject it, with words for another one."""
    decided = PlanDecision.approve() if decision == "approve" else PlanDecision.reject(message.strip())
    return _to(await orders.decide_plan(site, run_id, decided))


@router.post("/runs/{run_id}/call")
async def decide_call(
    run_id: str,
    site: OfSite,
    call: Annotated[str, Form(max_length=400)],
    decision: Annotated[orders.CallDecision, Form()],
    message: Annotated[str, Form(max_length=orders.MAX_REASON_CHARS)] = "",
) -> RedirectResponse:
    """Allow a call that waits for approval, or refuse it."""
    return _to(await orders.decide_call(site, run_id, call, decision, message))


def _to(folder: Path) -> RedirectResponse:
    return RedirectResponse(f"/runs/{folder.name}", SEE_OTHER)


async def _content_of(files: Sequence[UploadFile]) -> dict[str, bytes]:
    """Return the files that were sent, by name; a field without a file has one without a name."""
    return orders.named_files([(file.filename or "", await file.read()) for file in files if file.filename])


def _number(text: str, what: str) -> float | None:
    try:
        number = float(text) if text.strip() else None
    except ValueError:
        number = -1.0
    if number is not None and not 0 < number < float("inf"):
        raise ConfigError(f"{what} is not a number above 0: {text!r}", hint="leave it empty, or write one such as 0.5")
    return number


def _seconds(minutes: str) -> float | None:
    number = _number(minutes, "the time")
    return None if number is None else number * 60
