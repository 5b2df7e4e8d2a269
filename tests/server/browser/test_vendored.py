"""What these tests bring of others."""

import hashlib
import tomllib
from pathlib import Path

HERE = Path(__file__).parent


def test_the_checker_of_accessibility_is_as_it_was_published() -> None:
    """Its package, its licence and its digest are beside it, and no other script is there."""
    listed = tomllib.loads((HERE / "vendored.toml").read_text())
    for name, facts in listed.items():
        assert hashlib.sha256((HERE / name).read_bytes()).hexdigest() == facts["sha256"]
        assert "Mozilla Public License, version 2.0" in (HERE / facts["licence"].split()[0]).read_text()
    assert {path.name for path in HERE.glob("*.js")} == set(listed)
