"""Tools of files that the user names with `--tools`: code that runs with the user's rights."""

from pathlib import Path
from typing import Any

from explorer.cli.settings.options import CommonOptions
from explorer.run.extensions import tools_in_file
from explorer.schema.errors import ConfigError
from explorer.schema.settings import Settings
from explorer.schema.tool import Tool


def named_tools(options: CommonOptions, settings: Settings) -> list[Tool[Any]]:
    """Return the tools of the files that the command line names; no setting and no run can name one.

    Raises:
        ConfigError: A file cannot be used, or is where agents write or where what is explored lies.
    """
    paths = [Path(name).expanduser() for name in options.tools]
    for path in paths:
        _check_place(path, settings)
    return [tool for path in paths for tool in tools_in_file(path)]


def _check_place(path: Path, settings: Settings) -> None:
    for what, folder in (
        ("the workspace, where agents write", settings.workspace),
        ("the library of reports, where agents write", settings.reports_dir),
        ("the folder that is explored", settings.corpus),
    ):
        if folder is not None and path.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(f"{path} is in {what}, so it is not run", hint=f"move it out of {folder}")
