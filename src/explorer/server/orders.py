"""What can be ordered of runs: ask, steer, stop, resume, fork, decide. Forms and JSON do the same here."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Literal

from explorer.journal.control import ControlKind, deliver
from explorer.journal.listing import is_running
from explorer.run.fork import fork
from explorer.run.served import NO_WISHES, Wishes
from explorer.schema.approvals import Approval
from explorer.schema.errors import ConfigError, RunLockedError, ToolError
from explorer.schema.plan import PlanDecision
from explorer.server.site import WebSite
from explorer.text.rendering import code, own
from explorer.workspace.user_key import open_key

MAX_QUESTION_CHARS = 20_000
MAX_REASON_CHARS = 1_000
MAX_FILES = 20
CallDecision = Literal["approve", "approve_for_run", "deny"]
StopHow = Literal["write", "now"]


async def start_run(site: WebSite, question: str, wishes: Wishes) -> Path:
    """Start a run; return its folder.

    Raises:
        ConfigError: There is no question.
        ToolError: Too many runs are at work, or it could not be started.
    """
    if not question.strip():
        raise ConfigError("there is no question", hint="write one, and send it again")
    return await site.runs.start(question.strip(), wishes)


async def steer_run(site: WebSite, run_id: str, message: str) -> Path:
    """Leave a message for a run at work; return its folder.

    Raises:
        NotFoundError: There is no such run.
        ConfigError: There is no message, or it is too long.
        ToolError: The run is not at work.
    """
    folder = await _at_work(site, run_id)
    if not message.strip():
        raise ConfigError("there is no message", hint="write one, and send it again")
    await deliver(folder, ControlKind.STEER, message.strip(), 0)
    return folder


async def stop_run(site: WebSite, run_id: str, how: StopHow, why: str) -> Path:
    """Let a run write its report, or stop it at once; return its folder.

    Raises:
        NotFoundError: There is no such run.
        RunLockedError: Another process works on it, and only that can stop it at once.
        ToolError: The run is not at work.
    """
    folder = await _at_work(site, run_id)
    if how == "write":
        await deliver(folder, ControlKind.STOP, why, 0)
    elif not site.runs.stop_now(folder.name, why):
        hint = f"let it write up instead, or press Ctrl-C where it runs; or: explorer stop {folder.name}"
        raise RunLockedError("another process works on this run, and only that can stop it at once", hint=hint)
    return folder


async def resume_run(site: WebSite, run_id: str, message: str, wishes: Wishes) -> Path:
    """Resume a run where it stopped, or ask it further; return its folder.

    Raises:
        NotFoundError: There is no such run.
        ToolError: It is at work, too many are, or it could not be resumed.
    """
    if message.strip() and await _handed(site, run_id, PlanDecision.reject(message.strip())):
        return await site.folder(run_id)
    folder = await site.own_folder(run_id)
    await site.runs.resume(folder, message.strip(), wishes)
    return folder


async def fork_run(site: WebSite, run_id: str, at: int | None, message: str) -> Path:
    """Make a new run of the beginning of one, which continues with a message where there is one; return its folder.

    Raises:
        NotFoundError: There is no such run.
        ConfigError: There is no such record.
        StorageError: The disk refused, or the journal is damaged.
        ToolError: The new run could not be resumed.
    """
    folder = await site.folder(run_id)
    key = await asyncio.to_thread(open_key, site.runs.plan.settings.state_dir)
    forked = await fork(folder, at, datetime.now(UTC), key, site.runs.workspace)
    if message.strip():
        await site.runs.resume(forked.folder, message.strip(), NO_WISHES)
    return forked.folder


async def decide_plan(site: WebSite, run_id: str, decision: PlanDecision) -> Path:
    """Resume a run whose plan waits, with what is decided about it; return its folder. A worker resumes a fleet's run.

    Raises:
        NotFoundError: There is no such run.
        ToolError: No plan of it waits, or it could not be resumed.
    """
    if await _handed(site, run_id, decision):
        return await site.folder(run_id)
    folder = await site.own_folder(run_id)
    await site.runs.resume(folder, "", Wishes(decision=decision))
    return folder


async def decide_call(site: WebSite, run_id: str, call: str, decision: CallDecision, reason: str) -> Path:
    """Answer a call that waits for approval; return the folder of its run once the answer is on disk.

    Raises:
        NotFoundError: There is no such run.
        ToolError: The call does not wait in this server.
    """
    folder = await site.folder(run_id)
    approval = Approval(
        is_allowed=decision != "deny", for_run=decision == "approve_for_run", words=" ".join(reason.split())
    )
    await site.runs.calls.decide(folder.name, call, approval)
    return folder


def named_files(files: Iterable[tuple[str, bytes]]) -> dict[str, bytes]:
    """Return the files that were sent with a question, by the last part of their names.

    Raises:
        ConfigError: There are too many, or two have the same name, or one has none.
    """
    found: dict[str, bytes] = {}
    for given, content in files:
        name = PurePosixPath(given.replace("\\", "/")).name
        if name in {"", ".", ".."}:
            raise ConfigError("a file has no name", hint="give it one")
        if name in found:
            raise ConfigError(f"two files have the name {name!r}", hint="rename one of them")
        found[name] = content
    if len(found) > MAX_FILES:
        raise ConfigError(f"{len(found)} files are too many", hint=f"send at most {MAX_FILES}")
    return found


async def _handed(site: WebSite, run_id: str, decision: PlanDecision) -> bool:
    """Hand a decision to the fleet, where the plan of one of its runs waits; return whether it does."""
    decide = site.decide_elsewhere
    return decide is not None and bool(await asyncio.to_thread(decide, run_id, decision))


async def _at_work(site: WebSite, run_id: str) -> Path:
    folder = await site.folder(run_id)
    if not await asyncio.to_thread(is_running, folder):
        words = own("run {name} is not at work", name=code(folder.name))
        raise ToolError(words, hint="resume it, or ask it further")
    return folder
