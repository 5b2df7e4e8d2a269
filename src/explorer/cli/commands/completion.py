"""The command `completion`: a script that completes commands and flags in a shell."""

import re
from typing import Annotated, Literal

from cyclopts import Parameter

from explorer.cli.app import build_app
from explorer.cli.screens.output import emit

NAME = "explorer"
TAKES_PATH = ("--workspace", "--roles", "--tools", "--output", "-o", "--file", "--corpus")
"""Flags whose value is a file or a folder."""
ZSH_END = f"""
# Loaded from a folder of $fpath, or sourced.
if [[ "${{funcstack[1]}}" == _{NAME} ]]; then
  _{NAME} "$@"
else
  compdef _{NAME} {NAME}
fi
"""


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell that the script is for.")], /
) -> int:
    """Print a script that completes commands, flags and files in bash, zsh or fish.

    Example: `source <(explorer completion bash)`
    """
    emit(script_for(shell).removesuffix("\n"))
    return 0


def script_for(shell: Literal["bash", "zsh", "fish"]) -> str:
    """Return the script of cyclopts, changed so that files are completed where they are wanted."""
    script = build_app().generate_completion(prog_name=NAME, shell=shell)
    if shell == "bash":
        # Where the script has no word to offer, bash offers files.
        return script.replace(f"complete -F _{NAME} {NAME}", f"complete -o bashdefault -o default -F _{NAME} {NAME}")
    if shell == "zsh":
        flags = "|".join(map(re.escape, TAKES_PATH))
        with_files = re.sub(rf"^( *'\*?(?:{flags})\[.*\]:[\w-]+)(?=' \\$)", r"\1:_files", script, flags=re.MULTILINE)
        return with_files.replace(f"_cyclopts_{NAME}", f"_{NAME}") + ZSH_END
    return script
