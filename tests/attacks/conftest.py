"""What the tests with hostile texts share."""

from pathlib import Path

import pytest

from attacks.world import SECRETS, VARIABLES
from explorer.sandbox.selection import candidates, choose_sandbox


@pytest.fixture(scope="session")
def attestations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what this machine's sandboxes are worth, so that not every run tries them anew."""
    return tmp_path_factory.mktemp("attestations")


@pytest.fixture
async def memory(attestations: Path) -> Path:
    """The folder, filled; the test is skipped where there is no sandbox."""
    if not candidates():
        pytest.skip("this machine has no sandbox")
    await choose_sandbox(attestations, beside=attestations)
    return attestations


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six variables of the environment hold a secret."""
    for name in VARIABLES:
        monkeypatch.setenv(name, SECRETS["env"])
