"""A limit on processes that holds for root too, by the kernel's control groups, where they may be made."""

import os
from contextlib import suppress
from pathlib import Path

HIERARCHIES = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))
"""Version 1's own hierarchy of this controller, and version 2's one for all."""
JOIN = 'echo 0 > "$1" && shift && exec "$@"'


class ProcessGroup:
    """One control group with a limit on its processes; `None`-like where none can be made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def make(cls, name: str, processes: int) -> "ProcessGroup | None":
        """Make one; None where this user may not, which is usual: for ordinary users `ulimit` holds."""
        if os.geteuid() != 0:
            return None
        for hierarchy in HIERARCHIES:
            folder = hierarchy / name
            try:
                folder.mkdir()
                (folder / "pids.max").write_text(str(processes))
            except OSError:
                with suppress(OSError):
                    folder.rmdir()
                continue
            return cls(folder)
        return None

    def joining(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """The command that enters the group, then becomes the one given."""
        return ("/bin/sh", "-c", JOIN, "sh", str(self._folder / "cgroup.procs"), *arguments)

    def remove(self) -> None:
        """Remove it, once it is empty."""
        with suppress(OSError):
            self._folder.rmdir()
