"""Folders in folders, so many that no path to the last one can be used."""

import os
from pathlib import Path


def nest(folder: Path, levels: int, name: str, *, mode: int = 0o755) -> None:
    """Nest folders of one name in a folder, with a file `x.md` in the innermost, which gets the mode."""
    place = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=place)
        below = os.open(name, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(os.open("x.md", os.O_CREAT | os.O_WRONLY, dir_fd=place))
    os.fchmod(place, mode)
    os.close(place)
