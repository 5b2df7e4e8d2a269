"""`completion` prints scripts that complete commands, flags, values and files, in the shells that this machine has."""

import shutil
import subprocess
from pathlib import Path

import pytest

from command import explorer_here

ASK = """
complete_line() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _explorer
  echo "${COMPREPLY[@]}"
}
"""
LINES = {
    ("explorer", "re"): "resume repl report",
    ("explorer", "runs", ""): "list rm gc export import",
    ("explorer", "show", "--ti"): "--timeline",
    ("explorer", "--output-format", "stre"): "stream-json",
    ("explorer", "completion", ""): "bash zsh fish",
    ("explorer", "--file", "no"): "",
}
"""What follows a line. Where the script has nothing to offer, the shell offers files."""


def script(shell: str, folder: Path) -> Path:
    """Write down what the command prints."""
    done = explorer_here("completion", shell, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    path = folder / f"explorer.{shell}"
    path.write_text(done.stdout)
    return path


@pytest.mark.slow
def test_bash_completes_lines(tmp_path: Path) -> None:
    """The script is loaded by a real bash and asked as bash asks it; `complete` is told to fall back to files."""
    path = script("bash", tmp_path)
    asked = "\n".join("complete_line " + " ".join(f"'{word}'" for word in words) for words in LINES)
    program = f"source {path}\n{ASK}\n{asked}\ncomplete -p explorer\n"
    done = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, check=True, timeout=20)
    *offered, registered = done.stdout.splitlines()
    assert dict(zip(LINES, offered, strict=True)) == LINES
    assert "-o default" in registered
    assert done.stderr == ""


@pytest.mark.slow
def test_zsh_completes_files_and_can_be_loaded_both_ways(tmp_path: Path) -> None:
    """Flags that take a path complete files; the script works from a folder of $fpath and when it is sourced."""
    path = script("zsh", tmp_path)
    text = path.read_text()
    assert text.startswith("#compdef explorer\n")
    assert text.rstrip().endswith("compdef _explorer explorer\nfi")
    for flag in ("--file", "--workspace", "--corpus", "--tools", "--roles", "--output"):
        line = next(line for line in text.splitlines() if f"{flag}[" in line)
        assert line.endswith(":_files' \\"), line
    assert "--model[" in text
    assert not any("--model[" in line and "_files" in line for line in text.splitlines())
    if shutil.which("zsh"):
        subprocess.run(["zsh", "-f", "-n", str(path)], check=True, timeout=20)


@pytest.mark.slow
def test_fish_completes_commands_and_flags(tmp_path: Path) -> None:
    """Asked by `complete -C` where fish is installed."""
    path = script("fish", tmp_path)
    text = path.read_text()
    assert "complete -c explorer" in text
    if shutil.which("fish"):
        program = f"source {path}; complete -C 'explorer show --ti'"
        done = subprocess.run(["fish", "-N", "-c", program], capture_output=True, text=True, check=True, timeout=20)
        assert done.stdout.startswith("--timeline")


@pytest.mark.parametrize("shell", ["csh", ""])
def test_another_shell_is_refused(shell: str, tmp_path: Path) -> None:
    """With the names of those there are."""
    done = explorer_here("completion", *([shell] if shell else []), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "explorer completion --help" in done.stderr
