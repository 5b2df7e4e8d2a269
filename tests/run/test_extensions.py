"""What installed packages add: every kind of part, with its settings, without a change in explorer."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from command import explorer, explorer_here
from explorer.cli.settings.values import all_settings
from explorer.llm.models import ModelRef
from explorer.run.connectors import Connectors
from explorer.run.extensions import BUILT_IN, OWN, Point, installed_extensions
from explorer.run.hooks import RunHooks
from explorer.run.model_facts import known_cost, window_of
from explorer.run.run import start
from explorer.schema.messages import JsonObject
from explorer.schema.settings import Settings
from explorer.testing import ScriptedClient, says

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "examples" / "plugin"
KEY = "garden-key-0123456789"
ASKED = ("--model", "garden:almanac", "What can be harvested?")
Explorer = Callable[..., "subprocess.CompletedProcess[str]"]


COPY_OF_BRAVE = """
from dataclasses import replace
from explorer.sources.search.brave import ENGINE
PART = replace(ENGINE, name="part")
"""


COPY_OF_OPENAI = """
from dataclasses import replace
from explorer.llm.openai.vendor import VENDOR
PART = replace(VENDOR, name="part")
"""


ENGINE_THAT_FAILS = """
from explorer.schema.setting import NoSettings
from explorer.sources.search.port import SearchEngine

def _open(settings, access):
    raise KeyError(7)

PART = SearchEngine("part", NoSettings, _open)
"""


CLASS_WITHOUT_NAME = """
from explorer.schema.tool import Arguments, Tool

class PART(Tool):
    description = "Digs."
    arguments = Arguments
"""


def engine(settings: str, needs: str = "") -> str:
    """A module with a search engine of these settings."""
    imports = "from explorer.schema.setting import NoSettings\nfrom explorer.sources.search.port import SearchEngine\n"
    return f"{imports}PART = SearchEngine('part', {settings}, print, needs={needs!r})"


def forget() -> None:
    """Have the installed packages looked up again."""
    installed_extensions.cache_clear()
    all_settings.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] in {"explorer_garden", "broken_plugin"}]:
        del sys.modules[name]


def install(place: Path, package: Path, entry_points: dict[str, dict[str, str]], name: str) -> None:
    """Put a package with its metadata where Python finds it, as an installer does."""
    shutil.copytree(package, place / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    facts = place / f"{name.replace('-', '_')}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        line
        for group, parts in entry_points.items()
        for line in (f"[{group}]", *(f"{k} = {v}" for k, v in parts.items()))
    ]
    (facts / "entry_points.txt").write_text("\n".join(lines))


def install_part(
    site: Path, folder: Path, point: Point, code: str, files: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Install a package whose module has one part, called `PART`, and further files."""
    package = folder / "made" / "broken_plugin"
    package.mkdir(parents=True)
    for name, text in {"__init__.py": code, **files}.items():
        (package / name).write_text(text)
    install(site, package, {point: {"part": "broken_plugin:PART"}}, "broken-plugin")
    forget()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages that this process sees."""
    place = tmp_path / "site"
    place.mkdir()
    monkeypatch.setattr(sys, "path", [str(place), *sys.path])
    forget()
    yield place
    monkeypatch.undo()
    forget()


@pytest.fixture
def garden(site: Path) -> Path:
    """The example, installed."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    install(site, PLUGIN / "explorer_garden", project["entry-points"], project["name"])
    forget()
    return site


def by_process(site: Path, folder: Path) -> Explorer:
    """The command line in a process of its own, which sees the packages of a folder."""

    def run(*words: str, **settings: str) -> "subprocess.CompletedProcess[str]":
        return explorer(*words, cwd=folder, settings={"PYTHONPATH": str(site), **settings})

    return run


def check_run(run: Explorer, folder: Path) -> None:
    """A question that only the package's parts can answer, asked by the package's model, is answered and verified."""
    chosen = {"GARDEN_KEY": KEY, "EXPLORER_SEARCH": "almanac", "GARDEN_ALMANAC": "1899"}
    done = run(*ASKED, "--output-format", "json", **chosen)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["status"] == "complete"
    run_folder = next((folder / "workspace").glob("2*"))
    sources = [path.read_text() for path in sorted((run_folder / ".explorer" / "sources").glob("S*.md"))]
    assert [next(line.split(": ")[1] for line in text.splitlines() if line.startswith("via:")) for text in sources] == [
        "almanac",
        "garden",
        "garden",
    ]
    assert "Almanac 1899" in sources[0]
    claims = [json.loads(line) for line in (run_folder / ".explorer" / "claims.jsonl").read_text().splitlines()]
    assert {claim["verdict"] for claim in claims} == {"supported"}
    assert len(claims) == 2
    everything = b"".join(path.read_bytes() for path in run_folder.rglob("*") if path.is_file())
    assert KEY.encode() not in everything


def test_a_package_adds_every_kind_of_part(garden: Path, tmp_path: Path) -> None:
    """Its report cites what its tool, its engine and its site brought, and `verify` confirms it."""
    folder = tmp_path / "here"
    folder.mkdir()
    assert garden.is_dir()
    check_run(lambda *words, **settings: explorer_here(*words, cwd=folder, settings=settings), folder)


@pytest.mark.slow
def test_a_package_that_pip_installed_adds_every_kind_of_part(tmp_path: Path) -> None:
    """The same through an installer, and in a process of its own."""
    uv = shutil.which("uv")
    assert uv is not None
    site, folder = tmp_path / "site", tmp_path / "here"
    folder.mkdir()
    subprocess.run([uv, "pip", "install", "--quiet", "--no-deps", "--target", site, PLUGIN], cwd=ROOT, check=True)
    check_run(by_process(site, folder), folder)


@pytest.mark.slow
def test_what_a_package_adds_is_listed_with_its_origin(garden: Path, tmp_path: Path) -> None:
    """`tools`, `config show` and `doctor` show its parts and settings, and no key."""
    assert garden.is_dir()
    chosen = {"GARDEN_KEY": KEY, "EXPLORER_SEARCH": "almanac"}
    rows = json.loads(explorer_here("tools", "--output-format", "json", cwd=tmp_path).stdout)
    origins = {row["name"]: (row["origin"], row["roles"]) for row in rows}
    assert origins["look_at_bed"] == ("explorer-garden 1.0", ["gardener"])
    assert origins["read_file"][0] == OWN
    shown = explorer_here("config", "show", cwd=tmp_path, settings=chosen).stdout
    assert "services.almanac_edition" in shown
    assert "environment GARDEN_KEY" in shown
    assert KEY not in shown
    looked = explorer_here("doctor", cwd=tmp_path, settings=chosen).stdout
    assert "explorer-garden 1.0 adds tools look_at_bed; search almanac; sources garden; models garden" in looked
    missing = explorer_here(*ASKED, cwd=tmp_path)
    assert missing.returncode == 4
    assert "GARDEN_KEY" in missing.stderr


def test_a_folder_without_trust_neither_sets_up_a_package_nor_asks_its_vendor(garden: Path, tmp_path: Path) -> None:
    """A setting that says nothing of trust needs it, and a vendor is not asked by its name alone."""
    assert garden.is_dir()
    (tmp_path / ".env").write_text(f"EXPLORER_MODEL=garden:almanac\nGARDEN_ALMANAC=1999\nGARDEN_KEY={KEY}\n")
    refused = explorer_here("--dry-run", "q q", cwd=tmp_path, settings={"GARDEN_KEY": KEY})
    assert refused.returncode == 2
    assert ".env EXPLORER_MODEL, .env GARDEN_ALMANAC" in refused.stderr
    assert ".env GARDEN_KEY" in explorer_here("trust", "--dry-run", cwd=tmp_path).stdout
    taken = explorer_here("--trust-folder", "--dry-run", "q q", cwd=tmp_path)
    assert "garden:almanac" in taken.stdout


@pytest.mark.slow
def test_a_vendor_of_a_package_has_prices_and_words_for_effort(garden: Path, tmp_path: Path) -> None:
    """So a limit of money can be kept, and a word that it does not know is refused before anything is asked."""
    assert garden.is_dir()
    chosen = {"GARDEN_KEY": KEY}
    plan = explorer_here(
        "--dry-run", "--max-cost", "1", "--output-format", "json", *ASKED, cwd=tmp_path, settings=chosen
    )
    assert plan.returncode == 0, plan.stderr
    assert '"garden:almanac"' in plan.stdout
    refused = explorer_here("--effort", "max", *ASKED, cwd=tmp_path, settings=chosen)
    assert refused.returncode == 2
    assert "one of low, high" in refused.stderr
    with_price = known_cost(ModelRef("garden", "almanac"), Settings(), 1_000_000, 1_000_000)
    assert with_price == pytest.approx(2.0)
    assert window_of(ModelRef("garden", "almanac"), Settings()) == 32_000


AT_HAND = """
from contextlib import asynccontextmanager
from typing import Annotated
from explorer.testing import ScriptedClient, says
from explorer.llm.vendors import Server, Vendor
from explorer.schema.model_options import Tier
from explorer.schema.setting import TEXT, ExtensionSettings, Group, Setting


class PartSettings(ExtensionSettings):
    region: Annotated[str, Setting("PART_REGION", TEXT, "Region", Group.MODELS)] = ""

@asynccontextmanager
async def _open(settings, access):
    yield ScriptedClient({"orchestrator": [says("Done.")] * 4})

PART = Vendor(
    "part", PartSettings, _open, needs="region", prefixes=("part-batch",), bare_names=("party-",),
    server=lambda settings: Server(f"http://127.0.0.1:9/{settings.region}", models=dict.fromkeys(Tier, "party-1")),
)
"""


@pytest.mark.slow
def test_a_vendor_of_a_package_can_be_chosen_as_built_in_ones_are(site: Path, tmp_path: Path) -> None:
    """By what it needs, by its further prefixes, and by names that it claims; `doctor` asks where its server is."""
    install_part(site, tmp_path, Point.MODELS, AT_HAND)

    def chosen(*words: str, **settings: str) -> JsonObject:
        set_here = {"PART_REGION": "north", **settings}
        return json.loads(
            explorer_here("models", *words, "--output-format", "json", cwd=tmp_path, settings=set_here).stdout
        )

    assert (set(chosen()["models"].values()), chosen()["why"]) == ({"part:party-1"}, "PART_REGION is set")
    assert chosen(ANTHROPIC_API_KEY="k")["why"] == "ANTHROPIC_API_KEY is set"
    for asked, found in (("party-2", "part:party-2"), ("part-batch:x", "part-batch:x")):
        assert set(chosen("--model", asked)["models"].values()) == {found}
    looked = explorer_here("doctor", cwd=tmp_path, settings={"PART_REGION": "north"}).stdout
    assert [line[:5] for line in looked.splitlines() if line[5:].startswith(("part key ", "part "))] == [
        "ok   ",
        "warn ",
    ]


VENDOR_THAT_FAILS = AT_HAND.replace("    yield Scripted", "    raise KeyError(7)\n    yield Scripted")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "code", "what"),
    [
        (Point.MODELS, VENDOR_THAT_FAILS, "vendor of models part of broken-plugin 1.0 fails: KeyError: 7"),
        (Point.SEARCH, ENGINE_THAT_FAILS, "search engine part of broken-plugin 1.0 fails: KeyError: 7"),
        (
            Point.MODELS,
            VENDOR_THAT_FAILS.replace("raise KeyError(7)", "yield None"),
            "vendor of models part of broken-plugin 1.0 opens NoneType, which has no `generate`",
        ),
        (
            Point.SEARCH,
            ENGINE_THAT_FAILS.replace("raise KeyError(7)", "return None"),
            "search engine part of broken-plugin 1.0 opens NoneType, which is not a WebSearch",
        ),
    ],
)
def test_a_part_of_a_package_that_cannot_be_opened_is_named(
    site: Path, tmp_path: Path, point: Point, code: str, what: str
) -> None:
    """One line says which part and why, and no folder of a run is left behind."""
    install_part(site, tmp_path, point, code)
    chosen = {"PART_REGION": "north", "EXPLORER_SEARCH": "part" if point is Point.SEARCH else "auto"}
    model = "part:party-1" if point is Point.MODELS else "offline"
    done = explorer_here("How many?", "--model", model, cwd=tmp_path, settings=chosen)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "broken-plugin" in line]
    assert line == f"explorer: the {what}", done.stderr
    assert not list((tmp_path / "workspace").glob("2*"))


@pytest.mark.slow
def test_a_run_whose_vendor_is_gone_names_it(garden: Path, tmp_path: Path) -> None:
    """Its models are not looked for at OpenAI, whatever keys there are; another model can take over."""
    chosen = {"GARDEN_KEY": KEY, "EXPLORER_SEARCH": "almanac"}
    assert explorer_here(*ASKED, cwd=tmp_path, settings=chosen).returncode == 0
    shutil.rmtree(garden / "explorer_garden")
    for facts in garden.glob("*.dist-info"):
        shutil.rmtree(facts)
    forget()
    for keys in ({}, {"OPENAI_API_KEY": "sk-other"}):
        gone = explorer_here("resume", "latest", "And bed 3?", cwd=tmp_path, settings=keys)
        assert gone.returncode == 2
        assert "the run asks garden:almanac, and no vendor of models called 'garden' is installed" in gone.stderr
        assert "OPENAI" not in gone.stderr
    words = ("resume", "latest", "And bed 3?", "--model", "claude-x")
    taken_over = explorer_here(*words, cwd=tmp_path, settings={"EXPLORER_SEARCH": "auto"})
    assert "anthropic:claude-x needs a key" in taken_over.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "code", "why"),
    [
        (Point.TOOLS, "raise RuntimeError('no garden\\nhere')", "RuntimeError: no garden here"),
        (Point.TOOLS, "import sys\nsys.exit('install numpy')", "wants to end the program: install numpy"),
        (Point.TOOLS, "PART = 5", "is not a Tool"),
        (Point.TOOLS, "async def PART(): pass", "is a function: decorate it with `@tool`"),
        (Point.TOOLS, CLASS_WITHOUT_NAME, "has no `name`"),
        (Point.TOOLS, CLASS_WITHOUT_NAME + "    name = 'dig up'", "has the name 'dig up'"),
        (Point.ROLES, "PART = '/nowhere'", "is not a folder of role files: /nowhere"),
        (Point.SEARCH, engine("NoSettings", "key"), "needs='key', but its settings declare no such field"),
        (Point.SEARCH, engine("dict"), "settings that do not derive from ExtensionSettings: dict"),
        (Point.SEARCH, "PART = 5", "is not a SearchEngine"),
        (Point.SOURCES, "from explorer.sources.lobsters import SITE as PART", "is called 'lobsters'"),
        (
            Point.SOURCES,
            "from explorer.sources.page import Site\nPART = Site('part', ('a.example',))",
            "neither `open`",
        ),
        (Point.MODELS, "", "AttributeError"),
        (Point.MODELS, COPY_OF_OPENAI, "there is already a part called 'openai-chat'"),
        (
            Point.SEARCH,
            COPY_OF_BRAVE,
            "the variable EXPLORER_BRAVE_URL belongs to another setting",
        ),
    ],
)
def test_a_package_that_fails_is_named_in_one_line_and_left_out(
    site: Path, tmp_path: Path, group: Point, code: str, why: str
) -> None:
    """Nothing of it is used, and every command works."""
    install_part(site, tmp_path, group, code)
    done = explorer_here("agents", cwd=tmp_path)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("broken-plugin 1.0 was not loaded, and explorer works without it: ")
    assert why in line
    assert installed_extensions().outside == ()
    assert "broken-plugin 1.0" in explorer_here("doctor", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("role", "tools", "why"),
    [
        ("writer", "write_file", "it replaces the built-in role writer, which only --roles may do"),
        ("weeder", "write_file, pull_weeds", "its role weeder has tools that are not there: pull_weeds"),
    ],
)
def test_a_package_with_a_role_that_cannot_work_is_left_out(
    site: Path, tmp_path: Path, role: str, tools: str, why: str
) -> None:
    """A question is not refused for the role of a package, and no package changes what built-in roles do."""
    words = f"---\nname: {role}\ndescription: R.\ntools: [{tools}]\n---\nWork.\n"
    install_part(site, tmp_path, Point.ROLES, "def PART(): return __path__[0]", {"role.md": words})
    assert [failure.why for failure in installed_extensions().failures] == [why]
    assert installed_extensions().outside == ()


def test_built_in_parts_are_registered_like_those_of_packages() -> None:
    """Each entry point leads to what its group takes, under its own name."""
    forget()
    found = {(part.point, part.name): part for point in Point for part in installed_extensions().of(point)}
    assert {(Point(entry.group), entry.name) for entry in BUILT_IN} <= set(found)
    for (point, name), part in found.items():
        if point is Point.TOOLS:
            assert [tool.name for tool in part.value] == [name]
        else:
            assert part.value.is_dir() if point is Point.ROLES else part.value.name == name


CONNECTED = """
from explorer.schema.tool import Arguments, Tool, ToolResult

class Fetches(Tool[Arguments]):
    name = "fetches"
    description = "Fetches."
    arguments = Arguments

    def __init__(self, web):
        self.web = web

    @classmethod
    def connect(cls, connections):
        return cls(connections.web)

    async def execute(self, arguments, context):
        return ToolResult(success=True)

class Fails(Fetches):
    name = "fails"

    @classmethod
    def connect(cls, connections):
        raise KeyError("no such garden")

class Lacks(Fetches):
    name = "lacks"

    @classmethod
    def missing(cls, connections):
        return "no garden was given"

PART = (Fetches, Fails, Lacks)
"""


async def test_a_tool_of_a_package_gets_the_connections_of_the_run(site: Path, tmp_path: Path) -> None:
    """Such as the guarded fetcher; one that cannot be made is left out, and the run has all others."""
    install_part(site, tmp_path, Point.TOOLS, CONNECTED)
    async with Connectors.open(Settings(is_sample=True, workspace=tmp_path / "runs")) as connectors:
        (tool,) = connectors.installed_tools()
        assert (tool.name, vars(tool)["web"]) == ("fetches", connectors.web)
        assert "read_webpage" in [built_in.name for built_in in connectors.tools()]
        assert connectors.absent["lacks"] == "no garden was given"


def test_a_run_does_without_a_tool_that_its_package_cannot_make(site: Path, tmp_path: Path) -> None:
    """It was offered to all helpers before it was made: the run is not refused for it."""
    install_part(site, tmp_path, Point.TOOLS, CONNECTED)
    client = ScriptedClient({"orchestrator": [says("Nothing.")] * 3})
    settings = Settings(workspace=tmp_path / "runs", shell="off")
    result = asyncio.run(start("What grows?", settings, RunHooks(client=client)))
    assert result.words == "Nothing."
    rows = explorer_here("tools", cwd=tmp_path).stdout
    assert re.search(r"^fails +- +Not there: its package could not make it", rows, re.MULTILINE)
    assert re.search(r"^lacks +- +Not there: no garden was given", rows, re.MULTILINE)


SITE_THAT_FAILS = """
from contextlib import asynccontextmanager
from explorer.schema.setting import NoSettings
from explorer.sources.page import Site

@asynccontextmanager
async def _connect(settings, access):
    raise KeyError("no such garden")
    yield

PART = Site("part", ("a.example",), settings=NoSettings, connect=_connect)
"""


async def test_a_site_of_a_package_that_cannot_be_opened_is_left_out(site: Path, tmp_path: Path) -> None:
    """The run has all other sites and tools, and reads the pages of that site like any others."""
    install_part(site, tmp_path, Point.SOURCES, SITE_THAT_FAILS)
    assert "part" in [one.name for one in installed_extensions().sites]
    async with Connectors.open(Settings(is_sample=True, workspace=tmp_path / "runs")) as connectors:
        assert len(connectors.sites) == 3
        assert "get_comments" in [tool.name for tool in connectors.tools()]


TOOL_FILE = '''
from explorer.schema.tool import tool

@tool
async def count_words(text: str) -> str:
    """Count the words of a text."""
    return str(len(text.split()))
'''


def test_a_file_of_tools_is_run_when_the_user_names_it(tmp_path: Path) -> None:
    """Its tools are listed and roles may name them; nothing else than the flag can name a file."""
    (tmp_path / "mine.py").write_text(TOOL_FILE)
    rows = json.loads(explorer_here("tools", "--tools", "mine.py", "--output-format", "json", cwd=tmp_path).stdout)
    assert next(row["origin"] for row in rows if row["name"] == "count_words") == "--tools"
    roles = tmp_path / "roles"
    roles.mkdir()
    (roles / "counter.md").write_text("---\nname: counter\ndescription: C.\ntools: [count_words]\n---\nCount.\n")
    plan = ("--roles", "roles", "--model", "offline", "--dry-run", "How long?")
    assert "count_words" in explorer_here(*plan, cwd=tmp_path).stderr
    assert explorer_here("--tools", "mine.py", *plan, cwd=tmp_path).returncode == 0
    assert not [setting for setting in all_settings() if "tools" in setting.name]


COUNTING = """
from contextlib import asynccontextmanager
from explorer.testing import ScriptedClient, says
from explorer.llm.vendors import Vendor
from explorer.schema.setting import NoSettings

@asynccontextmanager
async def _open(settings, access):
    counts = says("", ("count_words", {"text": "one two three"}))
    yield ScriptedClient({"orchestrator": (counts, *[says("Three.")] * 3)})

PART = Vendor("part", NoSettings, _open)
"""


@pytest.mark.slow
def test_a_tool_of_a_named_file_is_called(site: Path, tmp_path: Path) -> None:
    """A role that names it gets its answers, and the recorded settings do not name the file."""
    install_part(site, tmp_path, Point.MODELS, COUNTING)
    (tmp_path / "mine.py").write_text(TOOL_FILE)
    roles = tmp_path / "roles"
    roles.mkdir()
    facts = "name: orchestrator\ndescription: Counts.\ntools: [count_words, write_file, finish_exploration]"
    (roles / "orchestrator.md").write_text(f"---\n{facts}\n---\nCount.\n")
    flags = ("--tools", "mine.py", "--roles", "roles", "--model", "part:any")
    explorer_here(*flags, "How many words?", cwd=tmp_path)
    journal = next((tmp_path / "workspace").glob("2*/.explorer/journal.jsonl"))
    finished = [json.loads(line) for line in journal.read_text().splitlines() if '"tool_finished"' in line]
    assert [(event["name"], event["content"]) for event in finished] == [("count_words", "<<3>>")]
    assert "mine.py" not in json.dumps(json.loads(journal.read_text().splitlines()[0]))


@pytest.mark.parametrize(
    ("place", "content", "why"),
    [
        ("none.py", None, "there is no file none.py"),
        ("mine.py", "1 / 0", "mine.py fails: ZeroDivisionError"),
        ("mine.py", "x = 1", "mine.py defines no tools"),
        ("workspace/20261122/mine.py", TOOL_FILE, "is in the workspace, where agents write"),
        ("papers/mine.py", TOOL_FILE, "is in the folder that is explored"),
    ],
)
def test_a_file_of_tools_that_cannot_be_used_is_refused(
    tmp_path: Path, place: str, content: str | None, why: str
) -> None:
    """With the reason, before anything is started; one that agents could have written is not even run."""
    (tmp_path / "papers").mkdir()
    if content is not None:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(content)
    done = explorer_here("tools", "--tools", place, cwd=tmp_path, settings={"EXPLORER_CORPUS": "papers"})
    assert done.returncode == 2
    assert why in done.stderr
