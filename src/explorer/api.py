"""The Python API: what `from explorer import ...` offers.

It adds nothing to the engine: a `Run` hands a question to `explorer.run` and its records to the caller.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypedDict, Unpack

from pydantic import BaseModel, ValidationError

from explorer.cli.settings.configuration import settings_of_process
from explorer.cli.settings.user_folders import with_state_folder
from explorer.journal.listing import find_run, free_run_id, read_records
from explorer.journal.run_state import RunState
from explorer.run.extensions import installed_extensions
from explorer.run.fork import fork as fork_folder
from explorer.run.hooks import RunHooks
from explorer.run.run import RunResult, start
from explorer.run.run import resume as resume_folder
from explorer.run.run_journal import stored_answer
from explorer.schema.approvals import Approve
from explorer.schema.errors import ConfigError
from explorer.schema.events import JournalRecord, SingleAgent, Source
from explorer.schema.limits import Limits
from explorer.schema.messages import LLMClient
from explorer.schema.plan import PlanDecision
from explorer.schema.settings import Settings
from explorer.schema.tool import Tool
from explorer.schema.toolbox import check_tools
from explorer.text.frontmatter import without_frontmatter
from explorer.tools.finish import Form, answer_in_form, check_form
from explorer.workspace.user_key import open_key
from explorer.workspace.workspace import report_text

INSTRUCTIONS = (
    "You do the task with your tools, and end with the answer and nothing else. Say what you could not find out. "
    "Where a source has an id such as S1, cite it behind what you take from it: [S1]."
)
GROUPS = frozenset({"limits", "services", "secrets", "network"})
"""The fields of `Settings` that are groups of settings."""
Drive = Callable[[RunHooks], Coroutine[Any, Any, RunResult]]


class ExploreOptions(TypedDict, total=False):
    """What `explore` and `resume` take by name."""

    settings: Settings
    """Default: what the environment, `.env` and the configuration files say (`load_settings`)."""
    tools: Sequence[Tool]
    """Further tools. Those that no role file names are offered to every helper that does not write the report."""
    client: LLMClient
    """Answers for every role, instead of the models chosen by the settings."""
    approve: Approve
    """Answers calls that an approval rule of the settings asks about; without it, they are refused."""
    plan_decision: PlanDecision
    """For `resume`: what is decided about the plan that the run waits with."""
    output_type: type[BaseModel]
    """The form of an answer that is wanted besides the report: see `Run.output`."""
    hooks: RunHooks
    """For what is needed rarely: clocks, timeouts, an id of your own."""


class Run:
    """A run: await it for its result, or iterate over its events while it works.

    Example:
        run = explore("What is notable on Hacker News today?")
        async for record in run.events():
            print(record.event)
        result = await run

    Nothing happens before it is awaited or iterated. Cancelled or killed, it can be resumed: what was recorded is on
    disk. Several tasks may await or iterate it at the same time: the work is done once, and cancelled with the last.
    """

    def __init__(self, drive: Drive | None, hooks: RunHooks, folder: Path) -> None:
        """Take what does the work; use `explore`, `resume`, `fork` or `open_run` instead."""
        self._drive = drive
        self._hooks = hooks
        self.folder = folder
        """The run's, with `report.md` and the files of its agents; it is there once the run was started."""
        self._result: RunResult | None = None
        self._work: asyncio.Future[RunResult] | None = None
        """The work, while somebody waits for it."""
        self._waiters = 0
        self._seen = range(0)
        """Numbers of the records that the work under way has recorded."""
        self._readers: list[asyncio.Queue[JournalRecord | None]] = []
        """One for each loop over the events."""

    def __await__(self) -> Generator[Any, None, RunResult]:
        """Work to the end.

        Raises:
            ConfigError: The question, a setting or a role cannot be used; nothing was started.
            ModelError: The provider is down or refuses; the run can be resumed.
            StorageError: The disk refused; what was acknowledged is safe.
        """
        return self._finish().__await__()

    async def events(self) -> AsyncGenerator[JournalRecord]:
        """Work, and yield each record once it is on disk; of a run that was only opened, those there are.

        Leaving the loop early cancels the run, which can be resumed.

        Raises:
            ExplorerError: As when it is awaited.
        """
        if self._drive is None or self._result is not None:
            for record in read_records(self.folder):
                yield record
            return
        records: asyncio.Queue[JournalRecord | None] = asyncio.Queue()
        self._readers.append(records)
        missed = [record for record in self.records if record.seq in self._seen] if self._seen else []
        working = asyncio.ensure_future(self._finish())
        working.add_done_callback(lambda _task: records.put_nowait(None))
        try:
            for record in missed:
                yield record
            while (record := await records.get()) is not None:
                yield record
        finally:
            self._readers.remove(records)
            working.cancel()
            await asyncio.wait([working])
        working.result()

    def _observe(self, record: JournalRecord) -> None:
        self._seen = range(self._seen.start or record.seq, record.seq + 1)
        for records in self._readers:
            records.put_nowait(record)
        if self._hooks.observe is not None:
            self._hooks.observe(record)

    def stop(self, reason: str = "stopped by the program") -> None:
        """Let the run write its report from what there is, within half a minute.

        Args:
            reason: Why, for the report and the journal.
        """
        self._hooks.stop.wind_down(reason)

    @property
    def id(self) -> str:
        """The run's id: its folder's name."""
        return self.folder.name

    @property
    def records(self) -> tuple[JournalRecord, ...]:
        """All records so far, from disk."""
        return read_records(self.folder) if self._is_on_disk else ()

    @property
    def state(self) -> RunState:
        """What the records add up to: agents, sources, usage, status."""
        return RunState.of_records(self.records)

    @property
    def sources(self) -> dict[str, Source]:
        """The evidence by id, such as `S1`."""
        return dict(self.state.sources)

    @property
    def report(self) -> str:
        """The text of report.md; empty when there is none."""
        return report_text(self.folder) if self._is_on_disk else ""

    @property
    def _is_on_disk(self) -> bool:
        """Whether there is something to read; not so before a new run has begun."""
        return self._drive is None or self.folder.exists()

    def output(self, form: type[Form]) -> Form:
        """Return the answer in the form that `output_type` asked for.

        Args:
            form: The model that was given as `output_type`.

        Returns:
            The answer, validated.

        Raises:
            ConfigError: The run has none.
        """
        answer = stored_answer(self.folder) if self._is_on_disk else None
        if answer is None:
            raise ConfigError("there is no answer in that form", hint="give output_type, and await the run")
        return answer_in_form(form, answer)

    def _repr_markdown_(self) -> str:
        return without_frontmatter(self.report)

    async def _finish(self) -> RunResult:
        """Wait for the work, which the first to wait begins; the last one to be cancelled cancels it."""
        if self._result is not None:
            return self._result
        if self._drive is None:
            raise ConfigError(f"run {self.id} was only opened", hint="to continue it: await resume(run)")
        if self._work is None:
            self._work = asyncio.ensure_future(self._drive(replace(self._hooks, observe=self._observe)))
        work = self._work
        self._waiters += 1
        try:
            # Unlike awaiting the work itself, this leaves it alone when the waiter is cancelled.
            await asyncio.wait([work])
        finally:
            self._waiters -= 1
            if self._waiters == 0:
                work.cancel()
                await asyncio.wait([work])
                self._work, self._seen = None, range(0)
                # Looked at, so that an error that came after the cancellation is not reported as lost.
                _ = work.cancelled() or work.exception()
        self._result = work.result()
        return self._result


def load_settings(*, preset: str = "", trust_folder: bool = False, **values: object) -> Settings:
    """Return the settings of the environment, `.env` and the configuration files, but for what is given here.

    Args:
        preset: The preset that a run is configured as: its name, or its folder with a slash in it.
        trust_folder: Whether all settings of the folder's `.env` and `explorer.toml` take effect; otherwise those that
            need trust are refused, unless the folder was trusted with `explorer trust`.
        **values: Fields of `Settings`, such as `model="anthropic:claude-opus-5-5"`.

            Of `limits`, `services`, `secrets` and `network`, what is not given stays as it is set elsewhere.

    Returns:
        The settings; they can be given to `explore`, `resume` and `Agent`.

    Raises:
        ConfigError: A value is not allowed, or the folder is not trusted.
    """
    settings = settings_of_process(preset=preset, trust_folder=trust_folder, given=values)
    given = _given(values)
    fields = {name: getattr(settings, name) for name in settings.model_fields_set} | given
    fields |= {name: _joined(getattr(settings, name), given[name]) for name in GROUPS & given.keys()}
    return Settings.model_validate(fields)


def _given(values: Mapping[str, object]) -> dict[str, Any]:
    """Return fields of `Settings`, validated.

    Raises:
        ConfigError: There is no such field, or it does not take the value.
    """
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise ConfigError(f"{place}: {problem['msg']}", hint="its fields: help(explorer.Settings)") from error
    return {name: getattr(settings, name) for name in values}


def _joined(group: BaseModel, given: BaseModel) -> dict[str, object]:
    """Return what is set in a group of settings, with what the program gives in place of it."""
    return {name: getattr(one, name) for one in (group, given) for name in one.model_fields_set}


def explore(question: str, **options: Unpack[ExploreOptions]) -> Run:
    """Return a run of a question, ready to be awaited.

    Args:
        question: What to find out, in any language.
        **options: What a run may be given besides: see `ExploreOptions`.

    Returns:
        A run that has not begun: await it for its result, or iterate over its `events()`.

    Raises:
        ConfigError: A setting cannot be used.
        TypeError: There is no such option.
    """
    settings, hooks = _prepared("explore", options)
    run_id = hooks.run_id or free_run_id(settings.workspace, question, hooks.now())
    folder = settings.workspace / run_id
    return Run(lambda hooks: start(question, settings, hooks), replace(hooks, run_id=run_id), folder)


def explore_sync(question: str, **options: Unpack[ExploreOptions]) -> RunResult:
    """Take a question to its report, in a program without an event loop.

    Args:
        question: What to find out, in any language.
        **options: As for `explore`.

    Returns:
        The result, with status, report, sources and cost in US dollars.

    Raises:
        ConfigError: There is a running event loop, as in a notebook, or a setting cannot be used.
        ModelError: The provider is down or refuses; the run can be resumed.
        StorageError: The disk refused; what was acknowledged is safe.
    """
    return _without_loop(lambda: explore(question, **options))


def resume(run: "Run | str | Path", message: str = "", **options: Unpack[ExploreOptions]) -> Run:
    """Return a run that goes on where it stopped, or takes a message as a follow-up.

    Args:
        run: The run, its id (or the beginning of it), or its folder.
        message: What to ask further.
        **options: As for `explore`; without settings, those that a run of the user's own was started with hold.

    Returns:
        The same run, ready to be awaited; its records so far are kept.

    Raises:
        NotFoundError: There is no such run.
        TypeError: There is no such option.
    """
    settings, hooks = _prepared("resume", options)
    folder = _folder_of(run, settings)
    return Run(lambda hooks: resume_folder(folder, settings, message, hooks), hooks, folder)


async def fork(run: "Run | str | Path", at: int | None = None, settings: Settings | None = None) -> Run:
    """Make a new run of the first records of another, with the files as they were then.

    Args:
        run: The run, its id, or its folder.
        at: The last record to take over; None: all.
        settings: For the workspace in which a run is looked up by its id.

    Returns:
        The new run, next to the other one, ready for `resume`.

    Raises:
        NotFoundError: There is no such run.
        ConfigError: There is no such record.
        StorageError: The disk refused.
    """
    key = open_key(with_state_folder(settings or load_settings()).state_dir)
    forked = await fork_folder(_folder_of(run, settings), at, datetime.now(UTC), key)
    return Run(None, RunHooks(), forked.folder)


def open_run(run: str | Path, settings: Settings | None = None) -> Run:
    """Return a run that is there, to read its report, sources and records.

    Args:
        run: The run's id (or the beginning of it), or its folder.
        settings: For the workspace in which a run is looked up by its id.

    Returns:
        A run that can be read; to continue it, give it to `resume`.

    Raises:
        NotFoundError: There is no such run.
    """
    return Run(None, RunHooks(), _folder_of(run, settings))


@dataclass(frozen=True)
class Agent:
    """One agent with tools, without helpers and without a report.

    Example:
        agent = Agent(model="anthropic:claude-opus-5-5", tools=[count_stock])
        result = await agent.run("How many ropes are there?")
        print(result.words)
    """

    model: str = ""
    """Such as `openai:gpt-6.1-sol`; empty: what the settings say."""
    tools: Sequence[Tool] = ()
    _: KW_ONLY
    instructions: str = INSTRUCTIONS
    """The system prompt."""
    run_tools: Sequence[str] = ()
    """What it may call of the tools of every run, such as `web_search` and `write_file`."""
    settings: Settings | None = None
    client: LLMClient | None = None
    """Answers instead of the model."""
    output_type: type[BaseModel] | None = None
    """The form of the answer: see `Run.output`."""
    approve: Approve | None = None
    """Answers calls that an approval rule of the settings asks about."""

    def run(self, task: str) -> Run:
        """Return a run of a task, ready to be awaited.

        Args:
            task: What to do.

        Returns:
            A run that has not begun. The answer is the result's `words`.

        Raises:
            ConfigError: A setting cannot be used.
        """
        _check_lists(self.tools, self.run_tools)
        check_tools(self.tools)
        settings = self.settings or load_settings()
        if self.model:
            settings = settings.model_copy(update={"model": self.model})
        names = tuple(dict.fromkeys([*(tool.name for tool in self.tools), *self.run_tools]))
        agent = SingleAgent(instructions=self.instructions, tools=names)
        hooks = RunHooks(
            tools=self.tools,
            client=self.client,
            answer_form=self.output_type,
            single_agent=agent,
            approve=self.approve,
        )
        return explore(task, settings=settings, hooks=hooks)

    def run_sync(self, task: str) -> RunResult:
        """Do a task in a program without an event loop.

        Args:
            task: What to do.

        Returns:
            The result; its `words` are the answer.

        Raises:
            ConfigError: There is a running event loop, as in a notebook.
            ModelError: The provider is down or refuses.
        """
        return _without_loop(lambda: self.run(task))


def _check_lists(tools: object, run_tools: object) -> None:
    """Check that an agent's tools are given as lists: one tool, or one name, is easily written in the place of one.

    Raises:
        ConfigError: One is not a list.
    """
    if not isinstance(tools, Iterable):
        raise ConfigError("an agent's `tools` is a list of tools", hint="with one tool: tools=[my_tool]")
    if isinstance(run_tools, str) or not isinstance(run_tools, Iterable):
        given = repr(run_tools) if isinstance(run_tools, str) else '"web_search"'
        raise ConfigError(
            "an agent's `run_tools` is a list of names of tools", hint=f"with one tool: run_tools=[{given}]"
        )


def _without_loop(make: Callable[[], Run]) -> RunResult:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_awaited(make()))
    raise ConfigError("there is a running event loop, as in a notebook", hint="await the run: await explore(...)")


async def _awaited(run: Run) -> RunResult:
    return await run


def _prepared(function: str, options: ExploreOptions) -> tuple[Settings, RunHooks]:
    _check_options(function, options)
    hooks = options.get("hooks") or RunHooks()
    tools = (*hooks.tools, *options.get("tools", ()))
    check_tools(tools)
    form = options.get("output_type", hooks.answer_form)
    if form is not None:
        check_form(form)
    settings = with_state_folder(options.get("settings") or load_settings())
    _check_groups(settings)
    return settings, replace(
        hooks,
        tools=tools,
        client=options.get("client", hooks.client),
        answer_form=form,
        approve=options.get("approve", hooks.approve),
        plan_decision=options.get("plan_decision", hooks.plan_decision),
    )


def _check_options(function: str, options: ExploreOptions) -> None:
    """Check that each option is one: a limit or a model under a wrong name would silently not count.

    Raises:
        TypeError: One is not; says where it belongs.
    """
    for name in options.keys() - ExploreOptions.__annotations__.keys():
        if name in Settings.model_fields:
            where = f"it is a setting: settings=load_settings({name}=...)"
        elif name in Limits.model_fields:
            where = f"it is a limit: settings=load_settings(limits=Limits({name}=...))"
        else:
            where = f"it takes {', '.join(ExploreOptions.__annotations__)}"
        raise TypeError(f"{function}() has no option {name!r}; {where}")


def _check_groups(settings: Settings) -> None:
    """Check that each key and address belongs to something: with a key under a wrong name, a run would do without it.

    Raises:
        ConfigError: One does not.
    """
    installed = installed_extensions()
    for place in installed.unknown(settings):
        near = get_close_matches(place, [setting.name for setting in installed.settings], 1)
        hint = f"did you mean {near[0]}?" if near else "install the package that it belongs to, or leave it out"
        raise ConfigError(f"the setting {place} belongs to nothing that is installed", hint=hint)


def _folder_of(run: Run | str | Path, settings: Settings | None) -> Path:
    if isinstance(run, Run):
        return run.folder
    if isinstance(run, Path):
        return find_run(run.parent, str(run.absolute()))
    return find_run((settings or load_settings()).workspace, run)
