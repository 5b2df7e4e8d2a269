"""What is installed from the wheel works on its own, without the checkout."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def _uv() -> str:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not on the PATH")
    return uv


def _run(command: Sequence[str | Path], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the checkout as it stands."""
    folder = tmp_path_factory.mktemp("wheel")
    _run([_uv(), "build", "--quiet", "--wheel", "--out-dir", folder], ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands of a fresh environment that holds the wheel and what it asks for."""
    place = tmp_path_factory.mktemp("fresh") / "venv"
    _run([_uv(), "venv", "--quiet", "--python", sys.executable, place], ROOT)
    _run([_uv(), "pip", "install", "--quiet", "--python", place / "bin" / "python", wheel], ROOT)
    return place / "bin"


@pytest.mark.slow
def test_the_wheel_holds_all_that_runs_need(wheel: Path) -> None:
    """Prompts, sample data and the typing marker travel in the wheel, and no test does."""
    names = set(zipfile.ZipFile(wheel).namelist())
    prompts = {f"explorer/_prompts/{path.name}" for path in (ROOT / "prompts").glob("*.md")}
    samples = {
        f"explorer/offline/sample_day/{path.name}" for path in (ROOT / "src/explorer/offline/sample_day").glob("*.json")
    }
    files = (path.relative_to(ROOT / "presets") for path in (ROOT / "presets").rglob("*.*") if path.is_file())
    presets = {f"explorer/_presets/{path.as_posix()}" for path in files}
    assert prompts
    assert samples
    assert presets
    assert prompts | samples | presets | {"explorer/py.typed"} <= names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"explorer"}


@pytest.mark.slow
def test_the_installed_demo_needs_nothing_around_it(installed: Path, tmp_path: Path) -> None:
    """From an empty folder with an empty environment, `explorer demo` ends with 0 and leaves a cited report."""
    done = subprocess.run(
        [installed / "explorer", "demo"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (report,) = tmp_path.glob("workspace/*/report.md")
    text = report.read_text(encoding="utf-8")
    assert "status: complete" in text
    assert "## References" in text
    assert done.stdout.strip() in text


@pytest.mark.slow
def test_the_installed_package_is_not_the_checkout(installed: Path, tmp_path: Path) -> None:
    """The fresh environment imports its own copy, and its roles lie inside it."""
    program = "from explorer.agents.roles import built_in_roles; print(built_in_roles())"
    environment = {"HOME": str(tmp_path), "PATH": os.defpath}
    done = subprocess.run(
        [installed / "python", "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert Path(done.stdout.strip()).is_relative_to(installed.parent)
