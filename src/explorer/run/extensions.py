"""What explorer can be extended with: search engines, sites, tools, models and roles, registered by entry points.

Built-in parts are entry points like those of an installed package. A package that fails to load, in any of its parts,
is left out as a whole, and says so in one line.
"""

from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, TypeVar, cast

from explorer.llm.vendors import RESERVED_PREFIXES, ModelAccess, Vendor
from explorer.schema.errors import ConfigError, ExplorerError
from explorer.schema.messages import LLMClient
from explorer.schema.setting import ExtensionSettings, NoSettings, Setting, declared_settings, extension_settings
from explorer.schema.settings import Settings
from explorer.schema.tool import Tool
from explorer.schema.toolbox import check_tools, tool_problem
from explorer.sources.page import Site
from explorer.sources.search.port import SearchAccess, SearchEngine, WebSearch
from explorer.text.sanitize import single_line

OWN = "explorer"
"""The origin of built-in parts."""
MAX_REASON_CHARS = 200
T = TypeVar("T")
S = TypeVar("S", bound=ExtensionSettings)


class Point(StrEnum):
    """What can be extended: the group of an entry point."""

    TOOLS = "explorer.tools"
    """A `Tool`, a class of tools that a run makes by `connect`, or a sequence of them."""
    SEARCH = "explorer.search"
    """A `SearchEngine`."""
    SOURCES = "explorer.sources"
    """A `Site`."""
    MODELS = "explorer.models"
    """A `Vendor`."""
    ROLES = "explorer.roles"
    """A function without arguments that returns the folder of role files."""


BUILT_IN = (
    EntryPoint("tavily", "explorer.sources.search.tavily:ENGINE", Point.SEARCH),
    EntryPoint("brave", "explorer.sources.search.brave:ENGINE", Point.SEARCH),
    EntryPoint("exa", "explorer.sources.search.exa:ENGINE", Point.SEARCH),
    EntryPoint("searxng", "explorer.sources.search.searxng:ENGINE", Point.SEARCH),
    EntryPoint("ddgs", "explorer.sources.search.ddgs:ENGINE", Point.SEARCH),
    EntryPoint("hn", "explorer.sources.hackernews:SITE", Point.SOURCES),
    EntryPoint("reddit", "explorer.sources.reddit:SITE", Point.SOURCES),
    EntryPoint("lobsters", "explorer.sources.lobsters:SITE", Point.SOURCES),
    EntryPoint("arxiv", "explorer.sources.arxiv:SITE", Point.SOURCES),
    EntryPoint("wikipedia", "explorer.sources.wikipedia:SITE", Point.SOURCES),
    EntryPoint("openalex", "explorer.sources.openalex:SITE", Point.SOURCES),
    EntryPoint("github", "explorer.sources.github:SITE", Point.SOURCES),
    EntryPoint("stackexchange", "explorer.sources.stackexchange:SITE", Point.SOURCES),
    EntryPoint("anthropic", "explorer.llm.anthropic.vendor:VENDOR", Point.MODELS),
    EntryPoint("openai", "explorer.llm.openai.vendor:VENDOR", Point.MODELS),
    EntryPoint("get_hn_stories", "explorer.tools.hackernews:HnStoriesTool", Point.TOOLS),
    EntryPoint("get_hn_comments", "explorer.tools.hackernews:HnCommentsTool", Point.TOOLS),
    EntryPoint("search_hn", "explorer.tools.hackernews:HnSearchTool", Point.TOOLS),
    EntryPoint("get_hn_user", "explorer.tools.hackernews:HnUserTool", Point.TOOLS),
    EntryPoint("get_reddit_posts", "explorer.tools.reddit:RedditPostsTool", Point.TOOLS),
    EntryPoint("get_comments", "explorer.tools.comments:GetCommentsTool", Point.TOOLS),
    EntryPoint("web_search", "explorer.tools.web:TavilySearchTool", Point.TOOLS),
    EntryPoint("search_site", "explorer.tools.web:SearchSiteTool", Point.TOOLS),
    EntryPoint("read_webpage", "explorer.tools.web:ReadWebpageTool", Point.TOOLS),
    EntryPoint("search_corpus", "explorer.tools.corpus:SearchCorpusTool", Point.TOOLS),
    EntryPoint("read_document", "explorer.tools.corpus:ReadDocumentTool", Point.TOOLS),
    EntryPoint("roles", "explorer.agents.roles:built_in_roles", Point.ROLES),
)


WITH_SETTINGS = (Point.SOURCES, Point.SEARCH, Point.MODELS)
"""Points whose parts declare settings."""

ToolPart = Tool[Any] | type[Tool[Any]]
"""A tool, or a class that a run makes one of."""


@dataclass(frozen=True)
class Extension:
    """One registered part."""

    point: Point
    name: str
    origin: str
    """The package with its version; `explorer` for built-in parts."""
    value: Any
    """What the point's documentation says."""

    @property
    def settings(self) -> tuple[Setting, ...]:
        """What it lets the user set."""
        model: type[ExtensionSettings] = getattr(self.value, "settings", NoSettings)
        return extension_settings(self.name, model) if self.point in WITH_SETTINGS else ()


@dataclass(frozen=True)
class LoadFailure:
    """A package that is left out."""

    origin: str
    why: str

    def __str__(self) -> str:
        """Return what is wrong, in one line."""
        return f"{self.origin} was not loaded, and explorer works without it: {self.why}"


class UnusablePartError(Exception):
    """What a package registers is not what the point takes."""


@dataclass(frozen=True)
class Extensions:
    """All parts that were loaded, the built-in ones first."""

    outside: tuple[Extension, ...] = ()
    """Extensions of installed packages."""
    failures: tuple[LoadFailure, ...] = ()

    def of(self, point: Point) -> tuple[Extension, ...]:
        """Return the parts registered at a point."""
        own = (Extension(point, entry.name, OWN, _own(entry)) for entry in BUILT_IN if entry.group == point)
        return (*own, *(one for one in self.outside if one.point == point))

    @property
    def engines(self) -> Sequence[SearchEngine[Any]]:
        """The search engines, in the order in which they are asked."""
        return [one.value for one in self.of(Point.SEARCH)]

    @property
    def sites(self) -> Sequence[Site]:
        """The sites whose pages are read in a better way than as HTML."""
        return [one.value for one in self.of(Point.SOURCES)]

    @property
    def vendors(self) -> Mapping[str, Vendor[Any]]:
        """The vendors of models by name, in the order in which they are chosen."""
        return {one.name: one.value for one in self.of(Point.MODELS)}

    @property
    def built_in_tools(self) -> list[ToolPart]:
        """The tools that bring evidence."""
        return [part for one in self.of(Point.TOOLS) if one.origin == OWN for part in one.value]

    @property
    def installed_tools(self) -> list[ToolPart]:
        """The tools of installed packages."""
        return [part for one in self.outside if one.point == Point.TOOLS for part in one.value]

    @property
    def role_folders(self) -> list[Path]:
        """The folders of role files, the built-in one first."""
        return [one.value for one in self.of(Point.ROLES)]

    @property
    def settings(self) -> tuple[Setting, ...]:
        """What the parts let the user set."""
        parts = (part for point in WITH_SETTINGS for part in self.of(point))
        return tuple(setting for part in parts for setting in part.settings)

    def unknown(self, settings: Settings) -> list[str]:
        """Return the values in the settings that belong to no part: mistyped, or of a package that is not there."""
        known = {setting.name for setting in self.settings}
        groups = {"services": settings.services.model_extra, "secrets": settings.secrets.model_extra}
        places = (f"{group}.{name}" for group, values in groups.items() for name in values or {})
        return sorted(place for place in places if place not in known)

    def origin_of(self, tool: str) -> str:
        """Return where a tool comes from."""
        found = (one.origin for one in self.outside if one.point == Point.TOOLS and tool in {t.name for t in one.value})
        return next(found, OWN)


@cache
def _own(entry: EntryPoint) -> Any:  # noqa: ANN401 - by the entry's group
    value = entry.load()
    return value() if entry.group == Point.ROLES else as_tools(value) if entry.group == Point.TOOLS else value


@cache
def installed_extensions() -> Extensions:
    """Load what installed packages register; once a process, since what is installed does not change."""
    packages: dict[str, list[EntryPoint]] = {}
    # Asked for once: each question reads the list of every installed package.
    found = entry_points()
    for point in Point:
        for entry in found.select(group=point):
            packages.setdefault(_origin(entry), []).append(entry)
    loaded, failures = Extensions(), list[LoadFailure]()
    for origin, entries in sorted(packages.items()):
        try:
            parts = [_loaded(entry, origin) for entry in entries]
            _check_names(parts, loaded)
        except UnusablePartError as error:
            failures.append(LoadFailure(origin, str(error)))
        else:
            loaded = Extensions((*loaded.outside, *parts))
    return Extensions(loaded.outside, tuple(failures))


def _origin(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


def _loaded(entry: EntryPoint, origin: str) -> Extension:
    """Import one part of a package.

    Raises:
        UnusablePartError: Its code fails, or it is not what its point takes.
    """
    point = Point(entry.group)
    value = made(lambda: _checked(point, entry.name, entry.load()), entry.value)
    return Extension(point, entry.name, origin, _safe_to_open(value, f"{entry.name} of {origin}"))


def _safe_to_open(value: object, what: str) -> object:
    """Return a vendor or a search engine whose failure to open is an error with a name and a remedy."""
    if isinstance(value, Vendor):
        return replace(cast("Vendor[Any]", value), open=partial(_opened_vendor, cast("Vendor[Any]", value), what))
    if isinstance(value, SearchEngine):
        return replace(
            cast("SearchEngine[Any]", value), open=partial(_opened_engine, cast("SearchEngine[Any]", value), what)
        )
    return value


@asynccontextmanager
async def _opened_vendor(vendor: Vendor[S], what: str, settings: S, access: ModelAccess) -> AsyncGenerator[LLMClient]:
    async with AsyncExitStack() as stack:
        with _opening(f"the vendor of models {what}", "choose another model: explorer models"):
            client = await stack.enter_async_context(vendor.open(settings, access))
            if not callable(getattr(client, "generate", None)):
                raise UnusablePartError(f"opens {type(client).__name__}, which has no `generate`")
        yield client


def _opened_engine(engine: SearchEngine[S], what: str, settings: S, access: SearchAccess) -> WebSearch:
    with _opening(f"the search engine {what}", "choose another one: EXPLORER_SEARCH (explorer doctor)"):
        opened = cast("object", engine.open(settings, access))
        if not isinstance(opened, WebSearch):
            raise UnusablePartError(f"opens {type(opened).__name__}, which is not a WebSearch")
        return opened


@contextmanager
def _opening(what: str, remedy: str) -> Generator[None]:
    """Open a part of a package.

    Raises:
        ExplorerError: The part raised it, with a remedy of its own.
        ConfigError: It fails in any other way.
    """
    try:
        with foreign_code(what):
            yield
    except UnusablePartError as error:
        if isinstance(error.__cause__, ExplorerError):
            raise error.__cause__ from None
        raise ConfigError(str(error), hint=remedy) from error


def made(make: Callable[[], T], what: str) -> T:
    """Run foreign code that makes a part.

    Raises:
        UnusablePartError: It fails, in whatever way, or makes no such part.
    """
    with foreign_code(what):
        try:
            return make()
        except SystemExit as error:
            # Such as `sys.exit("install numpy")`: it would end each command, and the program that embeds explorer.
            raise UnusablePartError(f"wants to end the program: {error}") from error


@contextmanager
def foreign_code(what: str) -> Generator[None]:
    """Run code of an installed package.

    Raises:
        UnusablePartError: It fails, in whatever way.
    """
    try:
        yield
    except UnusablePartError as error:
        raise UnusablePartError(f"{what} {error}") from error
    except Exception as error:
        words = single_line(f"{type(error).__name__}: {error}", MAX_REASON_CHARS)
        raise UnusablePartError(f"{what} fails: {words}") from error


def _checked(point: Point, name: str, value: object) -> object:
    """Return what was registered in the form that its users take."""
    if point == Point.TOOLS:
        return as_tools(value)
    if point == Point.ROLES:
        folder = Path(str(value() if callable(value) else value))
        if not folder.is_dir():
            raise UnusablePartError(f"is not a folder of role files: {folder}")
        for path in folder.glob("*.md"):
            _check_role(path)
        return folder
    kind = {Point.SEARCH: SearchEngine, Point.SOURCES: Site, Point.MODELS: Vendor}[point]
    if not isinstance(value, kind):
        raise UnusablePartError(f"is not a {kind.__name__}")
    if value.name != name:
        raise UnusablePartError(f"is called {value.name!r}, but its entry point {name!r}")
    if isinstance(value, Site) and value.open is None and value.connect is None:
        raise UnusablePartError("has neither `open` nor `connect`")
    _check_fields(cast("SearchEngine[Any] | Site | Vendor[Any]", value))
    return cast("object", value)


def _check_fields(part: SearchEngine[Any] | Site | Vendor[Any]) -> None:
    """Check that a part's settings are some, and have the fields that it names.

    Raises:
        UnusablePartError: They are not, or do not have one.
    """
    if not issubclass(part.settings, ExtensionSettings):
        raise UnusablePartError(f"has settings that do not derive from ExtensionSettings: {part.settings.__name__}")
    declared = {setting.name for setting in declared_settings(part.settings)}
    for role in ("needs", "url", "model"):
        name = getattr(part, role, "")
        if name and name not in declared:
            raise UnusablePartError(f"has {role}={name!r}, but its settings declare no such field")


def _check_role(path: Path) -> None:
    from explorer.agents.roles import load_role  # noqa: PLC0415 - few packages have roles, and reading them costs

    try:
        load_role(path)
    except ConfigError as error:
        raise UnusablePartError(f"has a role that cannot be used: {error.message}") from error


def as_tools(value: object) -> tuple[ToolPart, ...]:
    """Return the tools and classes of tools that a value stands for."""
    if isinstance(value, Iterable):
        return tuple(tool for one in cast("Iterable[object]", value) for tool in as_tools(one))
    is_class = isinstance(value, type) and issubclass(cast("type[object]", value), Tool)
    if problem := tool_problem(cast("object", value), is_class=is_class):
        raise UnusablePartError(problem)
    return (cast("ToolPart", value),)


def _check_names(parts: Sequence[Extension], loaded: Extensions) -> None:
    """Check that no part takes the name or the variable of another, and that its roles can be used.

    Raises:
        UnusablePartError: One does, or they cannot.
    """
    variables = {setting.variable for setting in (*declared_settings(Settings), *loaded.settings)}
    for part in parts:
        taken = {name for one in loaded.of(part.point) for name in _names(one)} | RESERVED_PREFIXES
        if part.point != Point.TOOLS and (clash := sorted({*_names(part)} & taken)):
            raise UnusablePartError(f"there is already a part called {clash[0]!r} at {part.point}")
        for setting in part.settings:
            if setting.variable in variables:
                raise UnusablePartError(f"the variable {setting.variable} belongs to another setting")
            variables.add(setting.variable)
    if any(part.point == Point.ROLES for part in parts):
        _check_roles(parts, loaded)


def _check_roles(parts: Sequence[Extension], loaded: Extensions) -> None:
    """Check that no role replaces a built-in one, and that each names tools that there are.

    Raises:
        UnusablePartError: One does, or does not.
    """
    from explorer.agents.roles import PromptLoader, built_in_roles, load_role  # noqa: PLC0415 - as above

    own = PromptLoader([built_in_roles()]).roles()
    tools = {name for role in own.values() for name in role.tools}
    tools |= {tool.name for part in (*loaded.outside, *parts) if part.point == Point.TOOLS for tool in part.value}
    folders = [part.value for part in parts if part.point == Point.ROLES]
    for role in (load_role(path) for folder in folders for path in sorted(folder.glob("*.md"))):
        if role.name in own:
            raise UnusablePartError(f"it replaces the built-in role {role.name}, which only --roles may do")
        if missing := sorted({*role.tools} - tools):
            raise UnusablePartError(f"its role {role.name} has tools that are not there: {', '.join(missing)}")


def _names(part: Extension) -> tuple[str, ...]:
    """Return the names that a part takes: those of a vendor are the prefixes of its models."""
    return part.value.all_prefixes if part.point == Point.MODELS else (part.name,)


def tools_in_file(path: Path) -> list[Tool]:
    """Run a file of Python and return the tools that it defines.

    Raises:
        ConfigError: It cannot be run, or defines none, or one that cannot be used.
    """
    if not path.is_file():
        raise ConfigError(f"there is no file {path}", hint="give a file of Python: --tools FILE.py")
    spec = spec_from_file_location(f"explorer_tools_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is not a file of Python", hint="give a file of Python: --tools FILE.py")
    module, loader = module_from_spec(spec), spec.loader
    try:
        made(lambda: loader.exec_module(module), str(path))
        tools = made(lambda: list(_defined_tools(vars(module).values(), module.__name__)), str(path))
    except UnusablePartError as error:
        raise ConfigError(str(error), hint=f"correct {path}, or leave out --tools") from error
    check_tools(tools)
    if not tools:
        hint = "decorate an async function with `@tool`, or derive a `Tool`"
        raise ConfigError(f"{path} defines no tools", hint=hint)
    return tools


def _defined_tools(values: Iterable[object], module: str) -> Iterator[Tool[Any]]:
    """Yield the tools among a module's names; of classes those that it defines itself."""
    for value in values:
        if isinstance(value, Tool):
            yield cast("Tool[Any]", value)
        elif isinstance(value, type) and issubclass(value, Tool) and value.__module__ == module:
            yield cast("Tool[Any]", value())
