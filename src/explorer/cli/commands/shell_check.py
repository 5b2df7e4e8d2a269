"""What `doctor` says of the commands of agents: what confines them, and which of their bounds the kernel enforces."""

from explorer.cli.commands.probes import CheckResult
from explorer.sandbox.confinement import SandboxTier
from explorer.sandbox.control_group import is_available
from explorer.sandbox.selection import Sandbox

EXACT = "memory and processes of a command: by a control group, exactly"
AT_INTERVALS = (
    "memory of a command: of each process exactly, of all together every 0.1 s; "
    "for an exact bound: systemd-run --user --scope -p Delegate=yes explorer ..."
)
FOLDER = "bytes added to the run's folder: every 0.5 s"


def check_shell(sandbox: Sandbox) -> list[CheckResult]:
    """Check what confines the commands of agents, by a test of it, and what limits them."""
    if sandbox.confinement is None:
        level = "warn" if sandbox.fix else "ok"
        return [CheckResult("shell", level, f"agents have no shell: {sandbox.because}", sandbox.fix)]
    limits = CheckResult("shell limits", "ok", f"{EXACT if is_available() else AT_INTERVALS}; {FOLDER}")
    if sandbox.confinement.tier is SandboxTier.UNCONFINED:
        fix = "leave it out, or set EXPLORER_SHELL=auto"
        return [CheckResult("shell", "warn", sandbox.why, fix), limits]
    return [CheckResult("shell", "ok", f"{sandbox.why} ({sandbox.confinement.walls})"), limits]
