"""Keys stay in the engine: forgotten by the environment, out of other processes' reach, never shown."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from command import explorer
from explorer.cli.secrecy import RedactingStream, keep_secret
from explorer.schema.settings import Secrets, Settings
from explorer.text.sanitize import REDACTED, Redactor

KEY = "sk-test-canary-0123456789"


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_key_in_pieces_is_not_shown(size: int) -> None:
    """However it is split over writes, what comes out is the mark, and nothing else is lost."""
    below = io.StringIO()
    stream = RedactingStream(below)
    stream.learn(Redactor([KEY]))
    text = f"failed with {KEY}, as sk-tes may\n"
    for start in range(0, len(text), size):
        stream.write(text[start : start + size])
    stream.flush()
    assert below.getvalue() == f"failed with {REDACTED}, as sk-tes may\n"


def test_the_environment_forgets_its_keys() -> None:
    """Every variable that holds a key or leads to a proxy is gone once the settings are read; others stay."""
    environment = {"ANTHROPIC_API_KEY": KEY, "REDDIT_CLIENT_SECRET": KEY, "EXPLORER_MODEL": "offline", "PATH": "/bin"}
    environment |= dict.fromkeys(("https_proxy", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE"), f"http://me:{KEY}@proxy")
    keep_secret(Settings(secrets=Secrets(anthropic_key=SecretStr(KEY))), environment)
    assert environment == {"EXPLORER_MODEL": "offline", "PATH": "/bin"}


PROGRAM = """
import ctypes, os, sys
from explorer.cli.settings.options import COMMON
from explorer.cli.settings.configuration import configured
settings = configured(COMMON).settings
dumpable = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
print(settings.secrets.openai_key.get_secret_value()[:7], os.environ.get("OPENAI_API_KEY"), dumpable)
"""


@pytest.mark.slow
def test_the_process_is_not_dumpable(tmp_path: Path) -> None:
    """The key is in the settings, not in the environment, and other processes of this user cannot look inside."""
    if sys.platform != "linux":
        pytest.skip("only Linux has this switch")

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={"OPENAI_API_KEY": KEY, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [KEY[:7], "None", "0"]


@pytest.mark.slow
def test_no_output_of_a_command_shows_a_key(tmp_path: Path) -> None:
    """Where a value repeats a key in an error message, the mark is shown."""
    done = explorer("show", "--workspace", KEY, cwd=tmp_path, settings={"OPENAI_API_KEY": KEY})
    assert done.returncode == 5
    assert KEY not in done.stdout + done.stderr
    assert REDACTED in done.stderr
