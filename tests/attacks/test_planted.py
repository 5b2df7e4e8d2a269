"""Files that look like ours, where agents or strangers can put them: none of them is read, and none is run."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from command import environment, explorer

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(sys.executable).with_name("explorer")
MODULES = ("sitecustomize", "usercustomize", "conftest", "signal", "yaml", "pydantic", "loguru", "httpx2", "explorer")
IMPORT_ALL = """
import os, pkgutil, sys

# A library of the fleet's queue asks for the width of Python's integers in this way; only fleet commands load it.
ITS_OWN = ("subprocess.Popen", ["file", "-b", os.path.realpath(sys.executable)])

def watch(event, arguments):
    if (event, arguments[1] if len(arguments) > 1 else "") == ITS_OWN:
        return
    if event in {"socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system"}:
        print("BROKEN", event, arguments)

sys.addaudithook(watch)
import explorer
import importlib

for module in pkgutil.walk_packages(explorer.__path__, "explorer."):
    if module.name not in {"explorer.__main__", "explorer.documents.parsing.worker"}:
        importlib.import_module(module.name)
print("explorer.run.session" in sys.modules)
"""


def hostile(folder: Path) -> Path:
    """A folder with modules that leave a trace when anything imports them."""
    folder.mkdir(exist_ok=True)
    trace = folder.parent / "trace"
    for name in MODULES:
        (folder / f"{name}.py").write_text(f"open({str(trace)!r}, 'a').write('{name}\\n')\n")
    (folder / "evil.pth").write_text(f"import sys; open({str(trace)!r}, 'a').write('pth')\n")
    (folder / "explorer").mkdir()
    (folder / "explorer" / "__init__.py").write_text(f"open({str(trace)!r}, 'a').write('package')\n")
    return trace


@pytest.mark.slow
def test_nothing_is_imported_from_where_it_is_started(tmp_path: Path) -> None:
    """The command runs in a hostile folder, parser processes and all, and nothing there is run."""
    if not SCRIPT.exists():
        pytest.skip("explorer is not installed as a command here")
    folder = tmp_path / "project"
    trace = hostile(folder)
    (folder / "notes.html").write_text("<p>Output rose by 12 % in May, says the log of the plant on the hill.</p>" * 9)
    words = ("--model", "offline", "--file", "notes.html", "How was May?")
    away = "http://127.0.0.1:9"
    settings = {"EXPLORER_HN_API_URL": away, "EXPLORER_HN_SEARCH_URL": away, "EXPLORER_TAVILY_URL": away}
    done = subprocess.run(
        [SCRIPT, *words], cwd=folder, env=environment(folder, settings), capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 3}, done.stderr
    assert "12 %" in next(folder.glob("workspace/*/inputs/notes.html.md")).read_text()
    assert not trace.exists(), trace.read_text()


def test_the_folder_has_teeth(tmp_path: Path) -> None:
    """The control: a Python that looks for modules where it is started runs them."""
    trace = hostile(tmp_path / "project")
    subprocess.run([sys.executable, "-c", "import explorer"], cwd=tmp_path / "project", check=False)
    assert trace.read_text() == "package"


@pytest.mark.slow
def test_settings_in_a_run_s_folder_are_not_ours(tmp_path: Path) -> None:
    """Whoever starts explorer inside of a run's folder gets the settings of the folder above all runs."""
    run = tmp_path / "workspace" / "20260810-120000-hostile-0001"
    inner = run / "deep" / "er"
    inner.mkdir(parents=True)
    (run / ".explorer").mkdir()
    (run / ".explorer" / "journal.jsonl").touch()
    (run / "deep" / ".explorer").mkdir()
    (run / "deep" / ".explorer" / "journal.jsonl").touch()
    for folder in (run, run / "deep", inner):
        (folder / ".env").write_text("EXPLORER_ALLOW_HOSTS=169.254.169.254\nOPENAI_BASE_URL=http://evil.test\n")
        (folder / "explorer.toml").write_text('shell = "unsafe"\nroles_dir = "roles"\n')
    (tmp_path / "workspace" / ".env").write_text("EXPLORER_LANG=sv\n")
    for folder in (run, run / "deep", inner):
        shown = explorer(
            "config", "show", "--output-format", "json", cwd=folder, settings={"EXPLORER_SHELL": ""}, is_fresh=True
        )
        assert shown.returncode == 0, shown.stderr
        assert "169.254" not in shown.stdout
        assert "evil.test" not in shown.stdout
        values = {one["name"]: (one["value"], one["origin"]) for one in json.loads(shown.stdout)}
        assert values["shell"] == ("auto", "default")
        assert values["language"] == ("sv", ".env EXPLORER_LANG"), "the folder of all runs is the user's own"


@pytest.mark.slow
def test_no_import_reaches_out() -> None:
    """All modules are imported without a connection, a lookup or a process."""
    done = subprocess.run([sys.executable, "-P", "-c", IMPORT_ALL], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_the_lock_has_hashes() -> None:
    """Every package of the lock that comes from an index has a hash for each of its files."""
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    assert len(packages) > 50
    foreign = [one for one in packages if "registry" in one["source"]]
    assert [one["name"] for one in packages if one not in foreign] == ["explorer"]
    for one in foreign:
        files = [*one.get("wheels", ()), *([one["sdist"]] if "sdist" in one else ())]
        assert files
        assert all(file["hash"].startswith("sha256:") for file in files), json.dumps(one["name"])
