"""The Dockerfiles: what they copy is there, what they run works in a folder of its own, and runs as nobody special.

No Docker engine is needed, and none is tried: base images, `pip install uv` and `useradd` are taken as they are.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = ("Dockerfile", "deploy/Dockerfile")
each_file = pytest.mark.parametrize("file", FILES)


@dataclass
class Stage:
    """One stage of the file."""

    image: str
    steps: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def all(self, instruction: str) -> list[str]:
        """Return what follows an instruction, wherever it is used."""
        return [words for name, words in self.steps if name == instruction]


def stages(file: str) -> list[Stage]:
    """Read a file."""
    found: list[Stage] = []
    for line in (ROOT / file).read_text().splitlines():
        instruction, _, words = line.partition(" ")
        if not line or line.startswith("#"):
            continue
        assert instruction.isupper(), line
        if instruction == "FROM":
            found.append(Stage(words.split()[0]))
        else:
            found[-1].steps.append((instruction, words))
    return found


def ignored(name: str) -> bool:
    """Whether `.dockerignore` keeps a top-level name from the build; the last pattern that fits decides."""
    is_ignored = False
    for pattern in (ROOT / ".dockerignore").read_text().split():
        if fnmatch(name, pattern.removeprefix("!")):
            is_ignored = not pattern.startswith("!")
    return is_ignored


@each_file
def test_what_is_copied_is_there_and_no_secret_is(file: str) -> None:
    """Each source of a COPY is in the checkout and in the build's context; keys and runs are not."""
    build, image = stages(file)
    copied = [name for words in build.all("COPY") for name in words.split()[:-1]]
    assert copied
    assert [name for name in copied if not (ROOT / name).exists() or ignored(name)] == []
    assert all(ignored(name) for name in (".env", "explorer.toml", "workspace", ".git", ".venv", "tests"))
    # An environment is bound to its path and its Python.
    assert image.all("COPY") == ["--from=build /opt/explorer /opt/explorer"]
    assert build.image == image.image


@each_file
def test_the_command_runs_without_rights(file: str) -> None:
    """Nothing after USER needs root, and the user can write where runs are kept."""
    _, image = stages(file)
    names = [name for name, _ in image.steps]
    (user,) = image.all("USER")
    (made,) = image.all("RUN")
    assert user not in {"root", "0"}
    assert names.index("RUN") < names.index("USER") < names.index("ENTRYPOINT")
    assert image.all("WORKDIR")[0] in made.partition(f"chown {user} ")[2].split()


@pytest.mark.slow
@pytest.mark.timeout(300)
@each_file
def test_what_it_runs_works(tmp_path: Path, file: str) -> None:
    """The build's steps in a folder of its own, then the entry point: its help, and a whole run."""
    if shutil.which("uv") is None:
        pytest.skip("uv is not on the PATH")
    build, image = stages(file)
    context = tmp_path / build.all("WORKDIR")[0].lstrip("/")
    context.mkdir()
    variables = {name: os.environ[name] for name in ("PATH", "HOME", "SSL_CERT_FILE") if name in os.environ}
    variables |= {"UV_PYTHON": sys.executable, "LANG": "C.UTF-8"}
    for instruction, words in build.steps:
        if instruction == "ENV":
            pairs = (pair.split("=", 1) for pair in shlex.split(words))
            variables |= {name: f"{tmp_path}{value}" if value.startswith("/") else value for name, value in pairs}
        elif instruction == "COPY":
            *names, target = words.split()
            for name in names:
                place = context / target
                is_tree = (ROOT / name).is_dir()
                shutil.copytree(ROOT / name, place) if is_tree else shutil.copy(ROOT / name, place)
        elif instruction == "RUN" and not words.startswith("pip install"):
            done = subprocess.run(shlex.split(words), cwd=context, env=variables, capture_output=True, check=False)
            assert done.returncode == 0, (words, done.stderr.decode())
    shutil.rmtree(context)
    data = tmp_path / image.all("WORKDIR")[0].lstrip("/")
    data.mkdir()
    (path,) = image.all("ENV")
    place = shlex.split(path)[0].removeprefix("PATH=").partition(":")[0]
    entry, words = (json.loads(image.all(name)[0]) for name in ("ENTRYPOINT", "CMD"))
    here = {"PATH": f"{tmp_path}{place}", "HOME": str(data), "LANG": "C.UTF-8"}

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [tmp_path / place.lstrip("/") / entry[0], *entry[1:], *arguments]
        return subprocess.run(command, cwd=data, env=here, capture_output=True, text=True, check=True, timeout=100)

    assert "ask a question, get a cited report" in run("--help").stdout
    assert "explorer" in run(*words, *(() if "--help" in words else ("--help",))).stdout
    assert "# Notable on Hacker News" in run("demo", "-q", "--no-shell").stdout
    assert list(data.glob("workspace/*/report.md"))
