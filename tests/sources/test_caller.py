"""Who asks: the User-Agent in the forms that Wikimedia and Reddit ask for, and what `doctor` says of it."""

import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from explorer.cli.commands.doctor import check_contact
from explorer.cli.settings.configuration import read_configuration
from explorer.cli.settings.layers import NO_FLAGS
from explorer.network.guard import Guard
from explorer.schema.errors import ConfigError
from explorer.schema.settings import Secrets, Settings
from explorer.schema.version import __version__
from explorer.sources.http.caller import LIBRARY, PRODUCT, Caller
from explorer.sources.reddit.api import Access, RedditSession
from sources.loopback import as_json, serving


@pytest.mark.parametrize(
    ("contact", "agent", "reddit"),
    [
        ("", f"{PRODUCT} {LIBRARY}", "(no contact given)"),
        ("me@example.org", f"{PRODUCT} (me@example.org) {LIBRARY}", "(contact: me@example.org)"),
        (
            "https://example.org/; /u/some_one",
            f"{PRODUCT} (https://example.org/; /u/some_one) {LIBRARY}",
            "(by /u/some_one)",
        ),
        ("u/some-one", f"{PRODUCT} (u/some-one) {LIBRARY}", "(by /u/some-one)"),
        (
            "https://www.reddit.com/user/x",
            f"{PRODUCT} (https://www.reddit.com/user/x) {LIBRARY}",
            "(contact: https://www.reddit.com/user/x)",
        ),
    ],
)
def test_forms(contact: str, agent: str, reddit: str) -> None:
    """Client, version, contact and library; on Reddit platform, app, version and name; nothing is made up."""
    caller = Caller(contact=contact)
    assert caller.user_agent == agent
    assert caller.reddit_user_agent == f"{sys.platform}:explorer:v{__version__} {reddit}"


async def test_reddit_is_told_who_asks() -> None:
    """The header that leaves is in Reddit's form."""
    with serving({"/x": as_json({})}) as site:
        session = RedditSession(Guard(["127.0.0.1"]), Access(site.url, caller=Caller(contact="/u/some_one")))
        await session.get("/x", {})
        await session.aclose()
    assert site.asked[0].headers["user-agent"].endswith(" (by /u/some_one)")


def test_what_may_be_a_contact(tmp_path: Path) -> None:
    """An address or a name; what would end the parentheses or the line is refused."""
    for good in ("me@example.org", "https://example.org/me", "/u/some_one", "u/some_one", "me@example.org; /u/x_y_z"):
        environment = {"HOME": str(tmp_path), "EXPLORER_CONTACT": good}
        assert read_configuration(NO_FLAGS, environment, tmp_path).settings.contact == good
    for bad in (
        "me",
        "me@example.org) Mozilla/5.0 (x",
        "a@b.example\r\nX: y",
        "\u00fc@example.org",
        "x" * 300 + "@a.b",
    ):
        with pytest.raises(ConfigError, match="EXPLORER_CONTACT"):
            read_configuration(NO_FLAGS, {"HOME": str(tmp_path), "EXPLORER_CONTACT": bad}, tmp_path)


def test_the_doctor_says_what_is_missing() -> None:
    """No contact is a warning with its reason; Reddit's app wants a name of Reddit's."""
    app = Secrets(reddit_id=SecretStr("app-of-mine"))
    assert check_contact(Settings(contact="me@example.org")).level == "ok"
    assert "Wikimedia" in check_contact(Settings()).words
    assert check_contact(Settings(contact="me@example.org", secrets=app)).fix == "set EXPLORER_CONTACT=/u/NAME"
    assert check_contact(Settings(contact="/u/some_one", secrets=app)).level == "ok"
