"""Prints figures of the package's structure, of this checkout or next to those of an earlier commit.

uv run python scripts/structure.py [--compare REV] [--json] [--names] [--packages]
"""

import argparse
import ast
import io
import json
import re
import subprocess
import tarfile
import tempfile
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "explorer"
EXTENSIONS = {
    "a tool": "read_webpage",
    "a site read as threads": "lobsters",
    "a search engine": "brave",
    "a model vendor": "anthropic",
    "a role": "analyzer",
    "a setting": "max_outage",
}
"""By extension point, a member: the files that name it, but for its own, are those that a further one has to change."""
CORE = frozenset(
    [
        "cli",
        "run",
        "agents",
        "tools",
        "offline",
        "observe",
        "reports",
        "sources",
        "sandbox",
        "documents",
        "llm",
        "journal",
        "workspace",
        "text",
        "schema",
    ]
)
"""The packages of the layout before there were extensions, MCP, a web page and a fleet."""
NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def sources(root: Path) -> dict[str, Path]:
    """Return every module of the package, by its dotted name below the package; the package itself is empty."""
    top = root / "src" / PACKAGE
    found: dict[str, Path] = {}
    for path in sorted(top.rglob("*.py")):
        parts = path.relative_to(top).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def code_lines(text: str) -> int:
    """Count the lines that hold code: no blank line, no comment, no docstring."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=last):
                docstrings |= set(range(first, (last or first) + 1))
            case _:
                pass
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the top-level names of the package that a module imports, late imports included."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), level=0, names=names):
                parts = module.split(".")
                if parts[0] == PACKAGE:
                    yield from parts[1:2] or [alias.name for alias in names]
            case ast.Import(names=names):
                yield from (alias.name.split(".")[1] for alias in names if alias.name.startswith(f"{PACKAGE}."))
            case _:
                pass


def public_classes(tree: ast.Module) -> Iterator[str]:
    """Yield the names of the public classes that a module defines at its top."""
    yield from (node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))


def layers(root: Path) -> int:
    """Count the layers of the import contract."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return sum(len(contract["layers"]) for contract in contracts if contract["type"] == "layers")


def named_in(root: Path, word: str) -> list[str]:
    """Return the files of the product and its documents that name a word, but for those that are named after it."""
    places = [*(root / "src").rglob("*.py"), *(root / "docs").glob("*.md"), *(root / "prompts").glob("*.md")]
    places += [root / "README.md", root / ".env.example", root / "pyproject.toml"]
    history = {"decisions.md", "vendor_rules.md"}
    found = [path for path in places if path.is_file() and path.name not in history]
    pattern = re.compile(rf"(?<![a-z]){word}(?![a-z])", re.IGNORECASE)
    names = [path.relative_to(root).as_posix() for path in found if pattern.search(path.read_text(encoding="utf-8"))]
    return sorted(name for name in names if not pattern.search(name))


def duplicates(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Return the public class names that more than one module defines, with these modules."""
    defined: defaultdict[str, list[str]] = defaultdict(list)
    for module, tree in trees.items():
        for name in public_classes(tree):
            defined[name].append(module)
    return {name: modules for name, modules in sorted(defined.items()) if len(modules) > 1}


def packages(root: Path) -> Iterator[tuple[str, int, int]]:
    """Yield each top-level name with its modules and lines of code; then the sum of those in `CORE`."""
    counted: defaultdict[str, list[int]] = defaultdict(list)
    for module, path in sources(root).items():
        counted[module.split(".")[0] or PACKAGE].append(code_lines(path.read_text(encoding="utf-8")))
    for name, lines in sorted(counted.items()):
        yield name, len(lines), sum(lines)
    core = [lines for name, lines in counted.items() if name in CORE]
    yield f"the {len(core)} of the core", sum(map(len, core)), sum(map(sum, core))


def edges(trees: Mapping[str, ast.Module]) -> set[tuple[str, str]]:
    """Return which top-level name imports which other one."""
    pairs = {(module.split(".")[0], other) for module, tree in trees.items() for other in imported(tree)}
    tops = {module.split(".")[0] for module in trees if module}
    return {(one, other) for one, other in pairs if one in tops and other in tops and one != other}


def figures(root: Path) -> dict[str, int]:
    """Measure one checkout."""
    texts = {module: path.read_text(encoding="utf-8") for module, path in sources(root).items()}
    trees = {module: ast.parse(text) for module, text in texts.items()}
    counted = {
        "top-level names": len({module.split(".")[0] for module in trees} - {"", "__main__"}),
        "layers": layers(root),
        "edges between top-level names": len(edges(trees)),
        "edges between those of the core": sum(set(pair) <= CORE for pair in edges(trees)),
        "modules": len(trees),
        "lines of code": sum(map(code_lines, texts.values())),
        "duplicate public class names": len(duplicates(trees)),
    }
    places = {f"files that name {point} ({word})": len(named_in(root, word)) for point, word in EXTENSIONS.items()}
    return counted | places


def earlier_figures(revision: str) -> dict[str, int]:
    """Measure an earlier commit."""
    command = ["git", "archive", revision]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        return figures(Path(folder))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", metavar="REV", help="a commit: its figures are printed first")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--names", action="store_true", help="the duplicate class names, with their modules")
    parser.add_argument("--packages", action="store_true", help="the modules and lines of code by top-level name")
    options = parser.parse_args()
    now = figures(ROOT)
    if options.json:
        print(json.dumps(now, indent=1))
        return
    before = earlier_figures(options.compare) if options.compare else {}
    for name, value in now.items():
        earlier = f"{before[name]:>7,} -> " if before else ""
        print(f"{name:<50}{earlier}{value:>7,}")
    if options.packages:
        for name, modules, lines in packages(ROOT):
            print(f"{name:<50}{modules:>7,} modules {lines:>9,} lines")
    if options.names:
        trees = {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in sources(ROOT).items()}
        for name, modules in duplicates(trees).items():
            print(f"  {name}: {', '.join(modules)}")


if __name__ == "__main__":
    main()
