"""What all pages share: the runs, the readers of their journals, and the templates."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from explorer.observe.formatting import cost, counted, duration, one_line, plain, short_time, size, tokens
from explorer.observe.run_origin import run_origin
from explorer.run.served import ServedRuns
from explorer.schema.errors import ConfigError, NotFoundError, StorageError, ToolError
from explorer.schema.limits import DEFAULT_COST_USD
from explorer.schema.version import __version__
from explorer.server.feeds import RunFeed, RunFeeds
from explorer.server.fleet_status import AskFleet, CopyOf, DecideElsewhere, FleetStatus, Queued
from explorer.server.live import KeptLists
from explorer.server.lookups import Lookups
from explorer.server.overviews import Overviews, SearchedTexts
from explorer.server.sent_forms import SentForms, new_key
from explorer.text.sanitize import Redactor

PACKAGE = "explorer.server"


def _environment(redactor: Redactor) -> Environment:
    """Return the templates. All text is escaped, and no key is ever in a page."""

    def shown(value: object) -> object:
        return redactor.clean(plain(value)) if type(value) is str else value

    made = Environment(
        loader=PackageLoader(PACKAGE),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = {"cost": cost, "counted": counted, "duration": duration, "line": one_line, "size": size, "tokens": tokens}
    filters |= {"short_time": short_time}
    made.filters.update(cast("Any", filters))
    made.globals.update({"new_key": cast("Any", new_key)})
    return made


@dataclass
class WebSite:
    """The parts of a server that its pages use."""

    runs: ServedRuns
    fleet: AskFleet | None = None
    """Asks the fleet's database; None: there is no fleet."""
    elsewhere: CopyOf | None = None
    """Returns a copy of a run that the fleet's database has; None: there is no fleet."""
    decide_elsewhere: DecideElsewhere | None = None
    """Hands decisions about plans to the fleet; None: there is no fleet."""
    queued: Queued = lambda _run: ""
    """Returns what the fleet's queue knows of a run."""
    fleet_trouble: str = ""
    """Why the fleet's database did not answer when a run was last looked for; empty: it did."""
    feeds: RunFeeds = field(init=False)
    overviews: Overviews = field(default_factory=Overviews)
    lookups: Lookups = field(default_factory=Lookups)
    lists: KeptLists = field(default_factory=KeptLists)
    texts: SearchedTexts = field(default_factory=SearchedTexts)
    sent: SentForms = field(default_factory=SentForms)

    def __post_init__(self) -> None:
        """Load the templates."""
        self.feeds = RunFeeds(self.runs.calls.of, partial(run_origin, state=self.runs.plan.settings.state_dir))
        self._redactor = Redactor(self.runs.secrets)
        self._templates = _environment(self._redactor)

    async def feed(self, run_id: str) -> RunFeed:
        """Return the state of a run.

        Raises:
            ExplorerError: There is no such run.
        """
        return await self.feeds.of(await self.shown_folder(run_id))

    async def folder(self, run_id: str) -> Path:
        """Return the folder of a run.

        Raises:
            NotFoundError: There is no such run.
            StorageError: The fleet's database, which may have a newer state of it, does not answer.
        """
        return await self._found(self._folder_of, run_id)

    async def shown_folder(self, run_id: str) -> Path:
        """Return the folder of a run to read: where the fleet's database does not answer, what this machine has.

        Raises:
            NotFoundError: There is no such run.
            StorageError: The fleet's database does not answer, and this machine has nothing of the run.
        """
        return await self._found(self._shown_folder_of, run_id)

    async def _found(self, find: Callable[[str], Path], run_id: str) -> Path:
        try:
            return await asyncio.to_thread(find, run_id)
        except ToolError as error:
            raise NotFoundError(f"there is no run {one_line(run_id, 120)!r}", hint="all runs are on /") from error

    def _folder_of(self, run_id: str) -> Path:
        copy = None if self.elsewhere is None or self.runs.owns(run_id) else self.elsewhere(run_id)
        return copy or self.runs.folder_of(run_id)

    def _shown_folder_of(self, run_id: str) -> Path:
        try:
            folder = self._folder_of(run_id)
        except StorageError as error:
            try:
                folder = self.runs.folder_of(run_id)
            except ToolError:
                raise error from None
            self.fleet_trouble = error.message
            return folder
        self.fleet_trouble = ""
        return folder

    async def own_folder(self, run_id: str) -> Path:
        """Return the folder of a run that can be resumed here: not a copy of one of the fleet.

        Raises:
            NotFoundError: There is no such run.
            ConfigError: A worker of the fleet continues it.
        """
        folder = await self.folder(run_id)
        if folder.parent.resolve() != self.runs.workspace.resolve():
            raise ConfigError(
                f"run {folder.name} is in the fleet's database, and a worker of the fleet continues it",
                hint="fork it, to ask it further in a new run",
            )
        return folder

    async def fleet_status(self) -> FleetStatus:
        """Return the state of the fleet, as its database has it.

        Raises:
            NotFoundError: There is no fleet.
        """
        if self.fleet is None:
            raise NotFoundError(
                "there is no fleet in this workspace", hint='begin one: explorer submit "your question"'
            )
        return await asyncio.to_thread(self.fleet)

    def clean(self, value: Any) -> Any:  # noqa: ANN401 - whatever JSON can be
        """Return a JSON value without any key, in names of fields and in texts."""
        return _cleaned(value, self._redactor) if self._redactor.longest else value

    @property
    def most_usd(self) -> float | None:
        """What a question may cost at most; None: no limit is set."""
        limits = self.runs.plan.settings.limits
        return limits.max_cost_usd if "max_cost_usd" in limits.model_fields_set else DEFAULT_COST_USD

    @property
    def at_work(self) -> int:
        """How many runs are at work: those of this server, and those of other processes that were listed."""
        return len({*self.runs.at_work, *self.overviews.at_work()})

    def part(self, template: str, values: Mapping[str, Any]) -> str:
        """Return a part of a page."""
        return self._templates.get_template(template).render(values)

    def page(self, template: str, *, code: int = 200, **values: Any) -> HTMLResponse:
        """Return a page."""
        about: dict[str, Any] = {"version": __version__, "site": self, "now": datetime.now(UTC).isoformat()}
        return HTMLResponse(self.part(template, about | {"at_work": self.at_work} | values), code)


def _cleaned(value: Any, redactor: Redactor) -> Any:  # noqa: ANN401 - whatever JSON can be
    match value:
        case str():
            return redactor.clean(value)
        case dict():
            fields = cast("dict[str, Any]", value)
            return {redactor.clean(name): _cleaned(one, redactor) for name, one in fields.items()}
        case list() | tuple():
            return [_cleaned(one, redactor) for one in cast("list[Any]", value)]
        case _:
            return value


def _site_of(request: Request) -> WebSite:
    found = request.app.state.site
    assert isinstance(found, WebSite)
    return found


OfSite = Annotated[WebSite, Depends(_site_of)]
"""The site that a page belongs to, as FastAPI hands it to the function of a page."""
