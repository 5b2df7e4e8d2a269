"""macOS: `sandbox-exec` with a profile of our own. Written from its documentation, and never run by its authors."""

import signal
from dataclasses import dataclass

from explorer.sandbox.confinement import Launch, SandboxSpec, SandboxTier, environment, limiting

PROFILE = """\
(version 1)
(deny default)
(allow process-fork)
(allow process-exec)
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* (subpath "/usr") (subpath "/bin") (subpath "/sbin") (subpath "/System")
  (subpath "/Library/Frameworks")
  (subpath "/private/var/db/timezone") (subpath "/opt/homebrew") (literal "/dev/null") (literal "/dev/urandom")
  (literal "/dev/random") (literal "/dev/zero") {readable})
(allow file-write* (literal "/dev/null") (subpath "{folder}"))
(allow file-read* (subpath "{folder}"))
(deny file-write* (subpath "{folder}/.explorer"))
(deny network*)
"""


@dataclass(frozen=True)
class Seatbelt:
    """Confines commands with the program `sandbox-exec`. Untested: it counts only if its attestation holds."""

    program: str
    tier: SandboxTier = SandboxTier.SEATBELT
    writable: str = "the run's folder, which is the current one (but not .explorer/)"

    def launch(self, command: str, place: SandboxSpec) -> Launch:
        """Prepare to run a command with bash."""
        readable = " ".join(f'(subpath "{_quoted(str(folder))}")' for folder in place.readable)
        profile = PROFILE.format(folder=_quoted(str(place.folder)), readable=readable)
        shell = ("/bin/bash", "-c", f'{limiting(place.limits)} && exec /bin/bash -c "$1"', "bash", command)
        arguments = (self.program, "-p", profile, *shell)
        return Launch(arguments, environment(str(place.folder), place.readable), place.folder, signal.SIGKILL)


def _quoted(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')
