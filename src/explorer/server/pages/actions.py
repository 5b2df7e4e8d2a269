"""What a browser can order: ask, steer, stop, resume, ask further, fork, decide about a plan or a call."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, File, Form, UploadFile
from fastapi.responses import RedirectResponse

from explorer.run.served import Wishes
from explorer.schema.errors import ConfigError
from explorer.schema.plan import PlanDecision
from explorer.server import orders
from explorer.server.sent_forms import MAX_KEY_CHARS
from explorer.server.site import OfSite

SEE_OTHER = 303
STOPPED_BY_BROWSER = "stopped by the user, in the browser"
router = APIRouter(include_in_schema=False)
Words = Annotated[str, Form(max_length=orders.MAX_QUESTION_CHARS)]
Usd = Annotated[str, Form(max_length=20)]
Key = Annotated[str, Form(max_length=MAX_KEY_CHARS)]
"""The key of a form; empty for a program, whose orders are all carried out."""


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
    key: Key = "",
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
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in wishes.files.items()}
    content = "ask", question, replace(wishes, files={}), digests
    return _to(await site.sent.once(key, content, lambda: orders.start_run(site, question, wishes)))


@router.post("/runs/{run_id}/steer")
async def steer(run_id: str, site: OfSite, message: Words, key: Key = "") -> RedirectResponse:
    """Leave a message for a run at work; its page says when it was applied."""
    content = "steer", run_id, message
    return _to(await site.sent.once(key, content, lambda: orders.steer_run(site, run_id, message)))


@router.post("/runs/{run_id}/stop")
async def stop(run_id: str, site: OfSite, how: Annotated[orders.StopHow, Form()], key: Key = "") -> RedirectResponse:
    """Let a run write its report, or stop it at once, which only the process that works on it can do."""
    content = "stop", run_id, how
    return _to(await site.sent.once(key, content, lambda: orders.stop_run(site, run_id, how, STOPPED_BY_BROWSER)))


@router.post("/runs/{run_id}/resume")
async def resume(run_id: str, site: OfSite, message: Words = "", max_cost: Usd = "", key: Key = "") -> RedirectResponse:
    """Resume a run where it stopped, or ask it further."""
    wishes = Wishes(max_cost_usd=_number(max_cost, "the cost"))
    content = "resume", run_id, message, wishes
    return _to(await site.sent.once(key, content, lambda: orders.resume_run(site, run_id, message, wishes)))


@router.post("/runs/{run_id}/fork")
async def fork_run(
    run_id: str, site: OfSite, message: Words = "", at: Annotated[int | None, Form(ge=1)] = None, key: Key = ""
) -> RedirectResponse:
    """Make a new run of the beginning of one; with a message, it continues with that."""
    content = "fork", run_id, at, message
    return _to(await site.sent.once(key, content, lambda: orders.fork_run(site, run_id, at, message)))


@router.post("/runs/{run_id}/plan")
async def decide(
    run_id: str,
    site: OfSite,
    decision: Annotated[Literal["approve", "reject"], Form()],
    message: Words = "",
    key: Key = "",
) -> RedirectResponse:
    """Approve a plan that waits; or reject it, with words for another one."""
    decided = PlanDecision.approve() if decision == "approve" else PlanDecision.reject(message.strip())
    content = "plan", run_id, decided
    return _to(await site.sent.once(key, content, lambda: orders.decide_plan(site, run_id, decided)))


@router.post("/runs/{run_id}/call")
async def decide_call(  # noqa: PLR0913, PLR0917 - the fields of a form
    run_id: str,
    site: OfSite,
    call: Annotated[str, Form(max_length=400)],
    decision: Annotated[orders.CallDecision, Form()],
    message: Annotated[str, Form(max_length=orders.MAX_REASON_CHARS)] = "",
    key: Key = "",
) -> RedirectResponse:
    """Allow a call that waits for approval, or refuse it."""
    content = "call", run_id, call, decision, message
    return _to(await site.sent.once(key, content, lambda: orders.decide_call(site, run_id, call, decision, message)))


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
