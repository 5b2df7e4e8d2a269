"""What `doctor` says of the processes that parse: one is started, and reports what confines it."""

import asyncio
import sys

from explorer.cli.commands.probes import CheckResult
from explorer.documents.parsing.document import ConfinementReport
from explorer.documents.parsing.parser import Parser
from explorer.schema.errors import ToolError

GET_SECCOMP = "use a kernel with seccomp filters; in a container, allow the call seccomp in its security profile"
GET_LINUX = "on this system, read pages and PDF of strangers in the container image (docs/docker.md)"


def check_parser() -> CheckResult:
    """Check what confines the processes that parse HTML, PDF, office files, feeds and archives."""
    try:
        return parser_result(asyncio.run(_confinement()))
    except ToolError as error:
        return CheckResult("parser", "fail", error.message, "install explorer again: its packages are not complete")


async def _confinement() -> ConfinementReport:
    async with Parser() as parser:
        return await parser.confinement()


def parser_result(found: ConfinementReport) -> CheckResult:
    """Return what a confinement means for the user."""
    landlock = f"Landlock ABI {found.landlock}" if found.landlock else "no Landlock in this kernel"
    if found.holds:
        return CheckResult("parser", "ok", f"no network, no files, seccomp ({landlock})")
    if not found.has_seccomp:
        walls = f"{landlock} and rlimits only" if found.landlock else "rlimits only"
        return CheckResult(
            "parser", "warn", f"{walls}: {found.why}", GET_SECCOMP if sys.platform == "linux" else GET_LINUX
        )
    words = f"it is confined, and could still: {', '.join(found.open)}"
    return CheckResult("parser", "fail", words, "report it as SECURITY.md says, with the version of your kernel")
