"""What a session of a run works with: tools, evidence and waiting times for its agents, and all of it as a record."""

import asyncio
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from loguru import logger

from explorer.agents.budget import Budget
from explorer.journal.codec import is_own
from explorer.journal.run_state import JUDGE, RunState
from explorer.llm.models import Choice
from explorer.llm.retry import FailedAttempt, WaitLimits
from explorer.reports.earlier import SearchLimits
from explorer.reports.library import Library
from explorer.reports.render import SAMPLE_FLAG
from explorer.reports.verify.results import text_reader
from explorer.run.extensions import installed_extensions
from explorer.run.hooks import RunHooks
from explorer.run.planning import Planner, planner_of
from explorer.run.resources import RunResources, reserve_for_report
from explorer.run.run_journal import RunJournal, SessionRecords
from explorer.run.settings_parts import search_setup
from explorer.run.since import earlier_addresses
from explorer.run.team import effort_of
from explorer.schema.events import (
    AnyEvent,
    LimitInUse,
    ModelInUse,
    SessionConfigured,
    Source,
    TurnFailed,
)
from explorer.schema.limits import Limits
from explorer.schema.model_options import Tier
from explorer.schema.settings import Settings
from explorer.schema.skill_folder import SkillOrigin
from explorer.schema.tool import SourceDraft, Tool
from explorer.sources.date_ranges import zone_named
from explorer.sources.http.url_allowlist import UrlAllowlist
from explorer.sources.http.well_known import well_known_addresses
from explorer.sources.search.selection import plan_search
from explorer.tools.files import file_tools
from explorer.tools.library import LibraryAccess, Past, SearchRunsTool, library_tools
from explorer.tools.skills import LoadSkillTool
from explorer.tools.sources import ListSourcesTool, ReadSourceTool
from explorer.workspace.source_store import SourceStore, stored_at
from explorer.workspace.threads import uninterrupted
from explorer.workspace.user_key import open_key
from explorer.workspace.workspace import Workspace


@dataclass(frozen=True)
class SessionContext:
    """The files, resources, limits, clocks and journal of one session, and the tools made from them."""

    workspace: Workspace
    resources: RunResources
    budget: Budget
    journal: RunJournal
    hooks: RunHooks

    @cached_property
    def planner(self) -> Planner:
        """What holds the orchestrator to its plan."""
        return planner_of(self.resources, self.run_state, self.record, self.budget)

    @property
    def settings(self) -> Settings:
        """The settings of the session."""
        return self.resources.settings

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.workspace.folder

    @property
    def run_state(self) -> RunState:
        """What the run's records add up to."""
        return self.journal.run_state

    @property
    def records(self) -> SessionRecords:
        """What is read again of the run's records so far; sees each as it is recorded."""
        return self.journal.records

    async def record(self, event: AnyEvent) -> None:
        """Put an event on disk, then apply it to the state."""
        await self.journal.record(event)

    @cached_property
    def source_store(self) -> SourceStore:
        """The store of evidence, which goes on where the run's records end."""

        async def write(path: str, text: str) -> None:
            await uninterrupted(self.workspace.write_own, path, text)

        async def read(path: str) -> str:
            return await asyncio.to_thread(self.workspace.read_text, path)

        return SourceStore(self.record, write, self.hooks.now, self.run_state.sources.values(), read)

    async def store_for_tools(self, tool: Tool, drafts: Sequence[SourceDraft]) -> list[Source]:
        """Store what a tool found; what lookups find on the sample day is marked as invented."""
        if self.settings.is_sample and tool.is_lookup:
            drafts = [draft.model_copy(update={"flags": (*draft.flags, SAMPLE_FLAG)}) for draft in drafts]
        return await self.source_store.store(drafts)

    def all_tools(self, own: Iterable[Tool]) -> dict[str, Tool]:
        """Return all tools but `call_agent` by name: those given, those over files, those that bring evidence."""
        resources = self.resources

        def sources() -> Mapping[str, Source]:
            return self.run_state.sources

        async def check(url: str) -> str:
            return await seen.check(url)

        inner = [
            *file_tools(self.workspace),
            ListSourcesTool(self.workspace, sources),
            ReadSourceTool(self.workspace, sources),
            *self._earlier_work(sources),
            LoadSkillTool(resources.skills, self.workspace, has_shell=resources.sandbox.confinement is not None),
            *own,
        ]
        tools = {**resources.installed_tools(check), **{tool.name: tool for tool in inner}, **resources.tools(check)}
        seen = self._url_allowlist(tools.values())
        return tools

    def _url_allowlist(self, tools: Iterable[Tool]) -> UrlAllowlist:
        """Return the addresses that may be read: those of the question, of sources, and of the run this one follows."""
        others = set(self.records.other_tools)
        # An earlier session may have had a folder to search that this one does not have.
        searches = {tool.name for tool in (*tools, *installed_extensions().built_in_tools) if tool.is_search} | others
        self.records.know_searches(searches)
        seen = UrlAllowlist(
            self.records.with_addresses,
            lambda one: self.workspace.read_text(stored_at(one)),
            searches,
            others,
            self.records.carried,
        )
        since = self.settings.since_run
        # An earlier run from elsewhere is like a page: it could list an address for each letter.
        is_page = bool(since) and not is_own(self.folder.parent / since, open_key(self.settings.state_dir))
        for url in earlier_addresses(self.folder, since):
            seen.saw_url(url, is_page=is_page)
        for url in () if self.settings.is_sample else well_known_addresses():
            seen.saw_url(url, is_page=True)
        return seen

    def _earlier_work(self, sources: Callable[[], Mapping[str, Source]]) -> list[Tool]:
        """Return the tools over what is there before this run: the library of reports, and other runs."""
        past = self.past()
        access = LibraryAccess(past.library, past.run, sources, text_reader(self.workspace))
        return [*library_tools(access), SearchRunsTool(past)]

    def past(self, limits: SearchLimits | None = None) -> Past:
        """Return the library of reports and the other runs."""
        zone = zone_named(self.settings.timezone)
        is_once = self.settings.library == "once"
        library = Library(self.settings.reports_dir, lambda: self.hooks.now().astimezone(zone), is_once=is_once)
        return Past(self.folder.parent, self.folder.name, library, limits or SearchLimits())

    def wait_limits(self, *, is_for_report: bool) -> WaitLimits:
        """Return how long a role's agents wait for their model: helpers no longer than there is time to explore."""
        return WaitLimits(
            lambda: self.budget.seconds_left,
            self.settings.limits.max_outage_s,
            lambda: None if is_for_report else self.budget.exploration_seconds_left,
        )

    async def record_failed_attempt(self, failed: FailedAttempt) -> None:
        """Record a request that brought no turn."""
        waiting_s, error = failed.waiting_s, failed.error
        await self.record(
            TurnFailed(
                agent=failed.request.agent,
                fault=error.fault,
                message=error.message,
                attempt=failed.number,
                waits_s=failed.waits_s,
                waiting_since=None if waiting_s is None else self.hooks.now() - timedelta(seconds=waiting_s),
                is_billed=error.is_billed,
            )
        )


OWN = "own"
"""The label of a client that the embedding program handed in."""
AS_STARTED = "as the run was started"


@dataclass(frozen=True)
class SessionReasons:
    """What is known of where a session's settings come from."""

    given: Settings
    """Settings given now, before anything of an earlier session is added."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """The flag, variable or file that each setting was set in, by its name."""
    is_own: bool = True
    """Whether the run is the user's own: what an earlier session says of its limits holds for no other."""


def session_configured(resources: RunResources, run_state: RunState, reasons: SessionReasons) -> SessionConfigured:
    """Return the record of a session that begins.

    Args:
        resources: What it works with.
        run_state: The run so far; its latest session is the one before.
        reasons: What was set, and where.
    """
    plan = plan_search(search_setup(resources.settings))
    confinement = resources.sandbox.confinement
    reader, reader_why = _reader(resources.settings)
    reserve = reserve_for_report(resources.settings, resources.roles, resources.choice)
    session = SessionConfigured(
        pid=os.getpid(),
        host=socket.gethostname(),
        models=_models(resources, run_state, reasons),
        search=plan.engines,
        search_why=plan.why,
        reader=reader,
        reader_why=reader_why,
        shell=str(confinement.tier) if confinement else "",
        shell_why=resources.sandbox.why,
        limits={name: _limit(name, resources, run_state, reasons) for name in Limits.model_fields},
        report_cost_usd=round(reserve.cost_usd, 6),
        report_tokens=reserve.tokens,
        lean=resources.lean,
        unmeasured=resources.unmeasured,
        preset=resources.settings.preset.name if resources.settings.preset else "",
        skills={
            name: str(one.folder)
            for name, one in resources.skills.skills.items()
            if one.origin is not SkillOrigin.BUILT_IN
        },
        skills_left_out={one.place: one.why for one in resources.skills.left_out},
        mcp=dict(resources.mcp_ways),
    )
    _log(session)
    return session


def _reader(settings: Settings) -> tuple[str, str]:
    """Return the host of the service that pages are read through, and why; an address could hold a key."""
    host = urlsplit(settings.reader_address).netloc.rpartition("@")[2]
    why = "EXPLORER_READER_URL is set" if settings.services.reader_url else "JINA_API_KEY is set"
    return (host, why) if host else ("", "")


def _models(resources: RunResources, run_state: RunState, reasons: SessionReasons) -> dict[str, ModelInUse]:
    if resources.own_client is not None:
        own = ModelInUse(model=OWN, why="passed in by the program")
        return dict.fromkeys(resources.roles, own)
    chosen = {role: str(ref) for role, ref in resources.choice.models.items()}
    in_use = {
        role: ModelInUse(
            model=model,
            why=_why(role, resources, run_state, reasons),
            effort=effort_of(resources.settings, resources.roles[role]),
            before=_before(role, model, run_state),
        )
        for role, model in chosen.items()
    }
    if resources.judge is None:
        return in_use
    why = _set_by("judge", reasons) or "asked for as the judge"
    return {**in_use, JUDGE: ModelInUse(model=str(resources.judge), why=why)}


def _why(role: str, resources: RunResources, run_state: RunState, reasons: SessionReasons) -> str:
    given = reasons.given
    if role in given.role_models:
        return _set_by(f"role_models.{role}", reasons) or "set for this role"
    if given.model not in {"", "auto"}:
        return _set_by("model", reasons) or _chosen_by(resources.choice, reasons)
    if run_state.agents and role in resources.settings.role_models:
        return AS_STARTED
    if resources.settings.model not in {"", "auto"}:
        return AS_STARTED
    if resources.roles[role].model not in set(Tier):
        return "named by its role file"
    return _chosen_by(resources.choice, reasons)


def _chosen_by(choice: Choice, reasons: SessionReasons) -> str:
    """Return the reason of an automatic choice, with the file that sets the variable which decided."""
    places = (origin.rpartition(" ") for origin in reasons.origins.values())
    place = next((place for place, _, variable in places if variable == choice.variable), "")
    return f"{choice.why} ({place})" if place not in {"", "environment"} else choice.why


def _set_by(name: str, reasons: SessionReasons) -> str:
    return f"set by {reasons.origins[name]}" if name in reasons.origins else ""


def _before(role: str, model: str, run_state: RunState) -> str:
    """Return the role's model in the session before, where it was another."""
    if run_state.session is not None and role in run_state.session.models:
        before = run_state.session.models[role].model
    elif role in run_state.prefixes:
        before = run_state.prefixes[role].model
    else:
        return ""
    return before if before != model else ""


def _limit(name: str, resources: RunResources, run_state: RunState, reasons: SessionReasons) -> LimitInUse:
    value = getattr(resources.settings.limits, name)
    if name in reasons.given.limits.model_fields_set:
        origin = reasons.origins.get(f"limits.{name}", "set")
    elif name in resources.limit_origins:
        origin = resources.limit_origins[name]
    elif not reasons.is_own:
        origin = "default"
    elif (
        run_state.session is not None
        and name in run_state.session.limits
        and run_state.session.limits[name].value == value
    ):
        origin = run_state.session.limits[name].origin
    else:
        origin = AS_STARTED if run_state.agents else "default"
    return LimitInUse(value=value, origin=origin)


def _log(session: SessionConfigured) -> None:
    """Log one line for each of its parts, with all reasons."""
    for role, in_use in session.models.items():
        logger.info("model of {}: {} ({})", role, in_use.model, in_use.why)
    logger.info("web search: {} ({})", ", ".join(session.search) or "none", session.search_why)
    logger.info("page reader: {} ({})", session.reader or "none", session.reader_why or "pages are read directly")
    for server, way in session.mcp.items():
        logger.info("MCP server {}: {}", server, way)
    logger.info("shell: {} ({})", session.shell or "none", session.shell_why)
    limits = (f"{name} {limit.value} ({limit.origin})" for name, limit in session.limits.items())
    logger.info("limits: {}", ", ".join(limits))
