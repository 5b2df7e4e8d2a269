"""The house rules that neither the linter nor the type checker knows, and proof that the import contracts bite."""

import ast
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from string import Formatter

import pytest

from explorer import tools as tools_package
from explorer.agents.roles import PromptLoader, built_in_roles, load_role
from explorer.cli.settings.values import MODEL_VARIABLE, all_settings
from explorer.schema.events import ORCHESTRATOR
from explorer.schema.model_options import Tier
from explorer.schema.tool import Tool

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
TEST_FILES = sorted((ROOT / "tests").rglob("test_*.py"))
MAX_MODULE_LINES = 300
MAX_FUNCTION_LINES = 49
MAX_HELP_CPU_S = 0.35
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}
SDKS = {"anthropic", "openai", "tavily", "trafilatura", "httpx2"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _nodes(path: Path) -> Sequence[ast.AST]:
    return tuple(ast.walk(_tree(path)))


def _functions(path: Path) -> Iterator[Function]:
    return (node for node in _nodes(path) if isinstance(node, Function))


def _code_lines(path: Path) -> int:
    """Lines that hold code: no blank line, comment, docstring or import, which a module must not be split for."""
    text = path.read_text(encoding="utf-8")
    lines = {number for number, line in enumerate(text.splitlines(), 1) if line.strip()}
    lines -= {number for number, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith("#")}
    for node in _nodes(path):
        match node:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Import() | ast.ImportFrom():
                lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            case _:
                pass
    return len(lines)


def test_modules_are_short() -> None:
    """No module of the product or the examples has more than 300 lines of code, docstrings and imports not counted."""
    lengths = {_name(path): _code_lines(path) for path in [*SOURCES, *EXAMPLES]}
    assert {name: length for name, length in lengths.items() if length > MAX_MODULE_LINES} == {}


def test_functions_are_short() -> None:
    """No function of the product or the examples reaches 50 lines."""
    long = [
        f"{_name(path)}: {function.name}"
        for path in [*SOURCES, *EXAMPLES]
        for function in _functions(path)
        if (function.end_lineno or 0) - function.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert long == []


def test_names_say_what_things_are() -> None:
    """No module or folder of the product is a drawer for everything."""
    names = {part for path in SOURCES for part in path.relative_to(ROOT / "src").with_suffix("").parts}
    assert names & BANNED_NAMES == set()


def _tests(body: Sequence[ast.stmt]) -> Iterator[Function]:
    """What pytest collects: functions of the module and of its classes."""
    for node in body:
        if isinstance(node, Function) and node.name.startswith("test_"):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _tests(node.body)


RE_TEST = re.compile(r"^ *(?:async )?def test_\w+\(", re.MULTILINE)
RE_PARAMETERS = r"\([^()]*(?:\([^()]*\)[^()]*)*\)"
RE_SPEAKING_TEST = re.compile(rf'^ *(?:async )?def test_\w+{RE_PARAMETERS} -> [^\n]*:\n +r?"{{3}}.', re.MULTILINE)
"""A test in the form that the formatter gives it, up to the beginning of its docstring."""


def _may_have_silent_tests(path: Path) -> bool:
    """Whether a file has to be parsed to know, which for all of them takes a second."""
    text = path.read_text(encoding="utf-8")
    return len(RE_TEST.findall(text)) != len(RE_SPEAKING_TEST.findall(text))


def test_every_test_says_what_holds() -> None:
    """Every test function has a docstring."""
    silent = [
        f"{_name(path)}: {function.name}"
        for path in TEST_FILES
        if _may_have_silent_tests(path)
        for function in _tests(_tree(path).body)
        if ast.get_docstring(function) is None
    ]
    assert silent == []


def _public_classes() -> Iterator[tuple[str, str]]:
    """Every public class at the top of a module, with its module."""
    for path in SOURCES:
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, _name(path)


def test_a_class_name_has_one_meaning() -> None:
    """No two modules define public classes of one name."""
    places: dict[str, list[str]] = {}
    for name, module in _public_classes():
        places.setdefault(name, []).append(module)
    assert len(places) > 300
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def _caught(handler: ast.ExceptHandler) -> str:
    return ast.unparse(handler.type) if handler.type is not None else "everything"


def _handlers() -> Iterator[tuple[Path, ast.ExceptHandler]]:
    return ((path, node) for path in SOURCES for node in _nodes(path) if isinstance(node, ast.ExceptHandler))


def test_only_a_tool_is_guarded_against_everything() -> None:
    """`except Exception` is around a tool and around code of installed packages; what catches still more raises it."""
    broad = [_name(path) for path, handler in _handlers() if _caught(handler) in {"Exception", "everything"}]
    assert broad == ["src/explorer/agents/tool_calls.py", "src/explorer/run/extensions.py"]
    kept = [
        f"{_name(path)}:{handler.lineno}"
        for path, handler in _handlers()
        if _caught(handler) == "BaseException" and not isinstance(handler.body[-1], ast.Raise)
    ]
    assert kept == []


def _raises_in_groups(nodes: Iterable[ast.AST]) -> list[int]:
    """The lines of each `raise` inside an `except*`."""
    handlers = [handler for node in nodes if isinstance(node, ast.TryStar) for handler in node.handlers]
    inside = [node for handler in handlers for node in ast.walk(handler)]
    return [node.lineno for node in inside if isinstance(node, ast.Raise)]


def test_nothing_is_raised_inside_an_except_star() -> None:
    """Python 3.11 before 3.11.4 wraps what is raised there in a group, and nobody recognizes it: see `first_of`."""
    example = (
        "try:\n    pass\nexcept* KeyError as errors:\n    if errors:\n        raise errors.exceptions[0] from None\n"
    )
    assert _raises_in_groups(ast.walk(ast.parse(example))) == [5]
    able = [path for path in [*SOURCES, *EXAMPLES, *TEST_FILES] if "except*" in path.read_text(encoding="utf-8")]
    assert able
    found = {_name(path): _raises_in_groups(_nodes(path)) for path in able}
    assert {name: lines for name, lines in found.items() if lines} == {}


RE_MAKES_TEXT = re.compile(r"own|\w+Error\.of")


def _texts_for_models() -> Iterator[tuple[str, str, set[str | None]]]:
    """Literals that `own` and `ToolError.of` make texts for models of, each with its place and its values."""
    for path in SOURCES:
        for node in _nodes(path):
            if isinstance(node, ast.Call) and node.args and RE_MAKES_TEXT.fullmatch(ast.unparse(node.func)):
                words = node.args[0]
                if isinstance(words, ast.Constant) and isinstance(words.value, str):
                    yield f"{_name(path)}:{node.lineno}", words.value, {one.arg for one in node.keywords}


@pytest.mark.slow
def test_a_text_for_models_has_a_value_for_each_field() -> None:
    """Otherwise it fails when it is made, which for most errors is seldom; no type checker looks into such literals."""
    texts = list(_texts_for_models())
    fields = {text: {name for _, name, _, _ in Formatter().parse(text) if name is not None} for _, text, _ in texts}
    assert [place for place, text, values in texts if fields[text] != values] == []
    assert len(texts) > 300


def test_only_the_command_line_reads_the_environment() -> None:
    """Outside `cli/`, no module touches `os.environ` or `getenv`."""
    readers = [
        _name(path)
        for path in SOURCES
        if "cli" not in path.relative_to(ROOT / "src" / "explorer").parts
        for node in _nodes(path)
        if (isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv"})
        or (isinstance(node, ast.ImportFrom) and node.module == "os")
    ]
    assert readers == []


def test_the_docs_name_no_setting_that_is_not_there() -> None:
    """Every variable that README, docs or `.env.example` name is one that is read."""
    known = {setting.variable for setting in all_settings()}
    for path in [ROOT / "README.md", ROOT / ".env.example", *sorted((ROOT / "docs").glob("*.md"))]:
        named = set(re.findall(r"\bEXPLORER_[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8")))
        strangers = {name for name in named if name not in known and not name.startswith(MODEL_VARIABLE.rstrip("_"))}
        assert strangers == set(), path


def _tool_names() -> set[str]:
    names: set[str] = set()
    modules = [f"explorer.tools.{module.name}" for module in pkgutil.iter_modules(tools_package.__path__)]
    for module in [*modules, "explorer.agents.call_agent"]:
        members = vars(import_module(module)).values()
        found: list[type] = [member for member in members if inspect.isclass(member) and issubclass(member, Tool)]
        names |= {name for member in found if isinstance(name := getattr(member, "name", None), str)}
    return names


def test_every_role_file_loads_and_names_tools_that_exist() -> None:
    """Each built-in role has a prompt, a description and a tier, and each tool it may call exists."""
    paths = sorted(built_in_roles().glob("*.md"))
    assert {path.stem for path in paths} >= {ORCHESTRATOR, "searcher", "analyzer", "writer"}
    for path in paths:
        role = load_role(path)
        assert role.name == path.stem
        assert len(role.prompt.split()) > 50, path
        assert set(role.tools) <= _tool_names(), path
        assert role.model in set(Tier), path
    assert next(iter(PromptLoader([built_in_roles()]).roles())) == ORCHESTRATOR


@pytest.mark.slow
def test_no_module_waits_for_itself() -> None:
    """The modules' imports, lazy ones included, form no circle."""
    import grimp  # noqa: PLC0415 - each of the workers would import it, and one needs it

    graph = grimp.build_graph("explorer", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()
    assert len(imports) == len(SOURCES)


def test_html_is_read_where_it_is_confined() -> None:
    """No module besides that of a parser imports Python's own reader of HTML."""
    readers = {_name(path) for path in SOURCES if "html.parser" in path.read_text(encoding="utf-8")}
    readers -= {"src/explorer/text/sanitize.py"}  # it makes HTML fit to be read
    assert readers == {"src/explorer/documents/parsing/comment_html.py"}


VIOLATIONS = {
    "imports point down": ("schema/errors.py", "from explorer.cli import app"),
    "no package below the run knows the settings": (
        "workspace/workspace.py",
        "from explorer.schema import settings",
    ),
    "what strangers wrote is parsed behind the parser": (
        "sources/github.py",
        "from explorer.documents.parsing import comment_html",
    ),
    "the core knows no vendor": ("agents/loop.py", "import httpx2"),
    "tools do not know each other": ("tools/files.py", "from explorer.tools import web"),
    "the vendors' adapters do not know each other": ("llm/openai/chat.py", "from explorer.offline import client"),
}
"""By contract: a module and an import that breaks it."""


def _contracts() -> set[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]}


def _lint(folder: Path) -> str:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    environment = {name: value for name, value in os.environ.items() if name not in {"FORCE_COLOR", "PYTHONPATH"}}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return f"{done.stdout}\nexit {done.returncode}"


def _copy(folder: Path) -> None:
    shutil.copytree(ROOT / "src" / "explorer", folder / "explorer", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)


def _section(output: str, contract: str) -> str:
    """What the linter explains about one broken contract."""
    return re.split(r"\n\S[^\n]*\n-+\n", output.split(f"\n{contract}\n-", 1)[1])[0]


@pytest.mark.slow
def test_each_import_contract_bites(tmp_path: Path) -> None:
    """A copy of the package keeps all contracts; with one forbidden import for each, each is broken by that one."""
    assert set(VIOLATIONS) == _contracts()
    _copy(tmp_path)
    output = _lint(tmp_path)
    assert [contract for contract in VIOLATIONS if f"{contract} KEPT" not in output] == []
    assert "exit 0" in output
    for module, violation in VIOLATIONS.values():
        path = tmp_path / "explorer" / module
        path.write_text(f"{path.read_text(encoding='utf-8')}\n{violation}\n", encoding="utf-8")
    output = _lint(tmp_path)
    assert "exit 1" in output
    for contract, (module, violation) in VIOLATIONS.items():
        assert f"{contract} BROKEN" in output
        importer = f"explorer.{module.removesuffix('.py').replace('/', '.')}"
        words = violation.split()
        imported = f"{words[1]}.{words[3]}" if words[0] == "from" else words[1]
        assert f"{importer} -> {imported}" in _section(output, contract)


@pytest.mark.slow
def test_a_module_without_a_layer_is_noticed(tmp_path: Path) -> None:
    """The layers are exhaustive: a new module has to be given its place."""
    _copy(tmp_path)
    (tmp_path / "explorer" / "stray.py").write_text('"""Nobody said where this belongs."""\n', encoding="utf-8")
    output = _lint(tmp_path)
    assert "explorer.stray" in output
    assert "exit 1" in output


def _bare_environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}


@pytest.mark.slow
def test_quick_commands_import_no_sdk(tmp_path: Path) -> None:
    """What is typed while thinking pays for no SDK."""
    program = (
        "import sys; from explorer.__main__ import main\n"
        "for words in (['--help'], ['--version'], ['runs'], ['config', 'show']):\n"
        "    sys.argv = ['explorer', *words]\n"
        f"    print(words, main(), sorted({SDKS!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=_bare_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line for line in done.stdout.splitlines() if line.startswith("['")] == [
        "['--help'] 0 []",
        "['--version'] 0 []",
        "['runs'] 0 []",
        "['config', 'show'] 0 []",
    ]


def _help_cpu_s(home: Path) -> float:
    """User and system time of one `explorer --help`, as the kernel counted it for that process."""
    with Path(os.devnull).open("wb") as nowhere:
        child = os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "explorer", "--help"],
            _bare_environment(home),
            file_actions=[(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1)],
        )
        _, status, usage = os.wait4(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return usage.ru_utime + usage.ru_stime


@pytest.mark.slow
def test_help_is_instant(tmp_path: Path) -> None:
    """`explorer --help` takes less than 0.35 s of processor time: the best of three, the machine may be busy."""
    assert min(_help_cpu_s(tmp_path) for _ in range(3)) < MAX_HELP_CPU_S
