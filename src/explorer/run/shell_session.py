"""The shell of one session of a run: its sandbox, its jobs, and the notes to agents on them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from explorer.agents.decisions import note
from explorer.agents.user_stop import CALL_GRACE_S, StopEvent
from explorer.journal.agent_state import AgentState
from explorer.journal.run_state import RunState
from explorer.run.resources import RunResources
from explorer.sandbox.confinement import Confinement, SandboxSpec, SandboxTier
from explorer.sandbox.egress_proxy import EgressProxy
from explorer.sandbox.jobs import Jobs
from explorer.sandbox.selection import python_folders
from explorer.sandbox.shell import Shell
from explorer.schema.errors import ConfigError
from explorer.schema.events import Append, NoteAdded, SandboxChosen
from explorer.schema.reasons import NoteReason
from explorer.schema.tool import Tool
from explorer.text.rendering import ModelText, code, own
from explorer.tools.shell import shell_tools, state_of, unrecorded
from explorer.workspace.temporary import PROXY_FOLDER, temporary_folder
from explorer.workspace.workspace import Workspace

SHOWN_CHARS = 80
STRENGTH = (SandboxTier.UNCONFINED, "", SandboxTier.LANDLOCK, SandboxTier.BUBBLEWRAP)
"""A run may go on under what holds better, never under less."""


@dataclass(frozen=True)
class ShellSession:
    """What agents have of a shell in one session; nothing, where there is none."""

    tools: tuple[Tool, ...] = ()
    jobs: Jobs | None = None

    def notifications(self, state: AgentState) -> NoteAdded | None:
        """Note once, for its agent, that a background job has ended, in this session or with an earlier one."""
        for job in self.jobs.of(state.agent) if self.jobs else ():
            if job.is_over and job.id not in state.ended_jobs:
                words = own("({command}) {state}", command=job.command[:SHOWN_CHARS], state=state_of(job))
                return note(state, NoteReason.JOB_ENDED, words, job=job.id)
        return None

    def job_lines(self, agent: str) -> list[ModelText]:
        """Return an agent's background jobs, a line each."""
        jobs = self.jobs.of(agent) if self.jobs else ()
        words = "- {id} ({command}): {state}"
        return [own(words, id=code(job.id), command=job.command[:SHOWN_CHARS], state=state_of(job)) for job in jobs]


@asynccontextmanager
async def open_shell(
    resources: RunResources,
    workspace: Workspace,
    run_state: RunState,
    record: Append,
    stop: StopEvent,
) -> AsyncGenerator[ShellSession]:
    """Open the shell that was chosen, and write down what holds it; closed, none of its commands is left.

    Raises:
        ConfigError: What held this run's commands before does not hold here; nothing goes on unconfined.
    """
    chosen = resources.sandbox
    tier = str(chosen.confinement.tier) if chosen.confinement else ""
    before = run_state.sandbox
    # A tier of an earlier version that is no more held at least as well as none.
    held = before if before in STRENGTH else ""
    if before and STRENGTH.index(tier) < STRENGTH.index(held) and resources.settings.shell == "auto":
        raise ConfigError(
            f"this run's commands were confined by {before}, which does not work here now: {chosen.why}",
            hint=f"make it work again, or continue without a shell: explorer resume {workspace.folder.name} --no-shell",
        )
    if before != tier:
        await record(SandboxChosen(tier=tier, why=chosen.why))
    if chosen.confinement is None:
        yield ShellSession()
        return
    async with AsyncExitStack() as stack:
        proxy = await _way_out(resources, chosen.confinement, stack)
        # Absolute: a command is started in the folder, where a relative path would mean another.
        place = SandboxSpec(workspace.folder.absolute(), readable=python_folders(), proxy=proxy)
        shell = Shell(chosen.confinement, place)
        stack.push_async_callback(shell.aclose)
        loop = asyncio.get_running_loop()

        def end_soon() -> None:
            loop.call_later(CALL_GRACE_S, shell.end_all)

        stack.enter_context(stop.when_asked(end_soon))

        def recorded() -> dict[str, str]:
            return {path: file.sha256 for path, file in run_state.files.items()}

        jobs = await stack.enter_async_context(Jobs(shell, lambda: unrecorded(workspace, recorded())))
        yield ShellSession(tuple(shell_tools(shell, jobs, workspace, recorded)), jobs)


async def _way_out(resources: RunResources, confinement: Confinement, stack: AsyncExitStack) -> Path | None:
    """Open the proxy where hosts were listed; only bubblewrap gives commands a network of their own."""
    hosts = resources.settings.shell_hosts
    if not hosts or confinement.tier is not SandboxTier.BUBBLEWRAP:
        return None
    # In a folder of its own: the name of a socket may be about 100 characters long, a run's folder may be longer.
    path = stack.enter_context(temporary_folder(PROXY_FOLDER)) / "proxy"
    await stack.enter_async_context(EgressProxy(resources.connectors.web.guard, hosts, path))
    return path
