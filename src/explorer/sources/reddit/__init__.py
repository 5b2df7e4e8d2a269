"""Reddit, through its API, an archive, or its feeds: its settings, and how these routes are opened."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from pydantic import SecretStr

from explorer.schema.setting import ExtensionSettings, address_of, key_of
from explorer.sources.http.caller import Caller
from explorer.sources.page import Site, SiteAccess, SiteProblem, ThreadReader

REDDIT_HOSTS = ("reddit.com", "redd.it")
"""The hosts of Reddit, with every host below them: old, new, np, ..."""


class RedditSettings(ExtensionSettings):
    """The address of Reddit, and the user's own app there."""

    url: Annotated[
        str,
        address_of("EXPLORER_REDDIT_URL", "Replaces all of Reddit's hosts and its archive", default="the public ones"),
    ] = ""
    id: Annotated[
        SecretStr,
        key_of("REDDIT_CLIENT_ID", "Client id for Reddit's API; without one an archive and the feeds are read"),
    ] = SecretStr("")
    secret: Annotated[SecretStr, key_of("REDDIT_CLIENT_SECRET", "Client secret for Reddit's API")] = SecretStr("")


@asynccontextmanager
async def _connect(settings: RedditSettings, access: SiteAccess) -> AsyncGenerator[ThreadReader]:
    from explorer.sources.reddit.api import Access  # noqa: PLC0415 - every command reads the settings
    from explorer.sources.reddit.reddit import Reddit  # noqa: PLC0415

    identity, secret = settings.id.get_secret_value(), settings.secret.get_secret_value()
    own = Access(settings.url, identity, secret, access.caller)
    async with Reddit.open(access, own) as reddit:
        yield reddit


def _problem(settings: RedditSettings, caller: Caller) -> SiteProblem | None:
    if not settings.id.get_secret_value() or "(by /u/" in caller.reddit_user_agent:
        return None
    return SiteProblem(
        "Reddit's rules ask every app for its user's name, and none is set", "set EXPLORER_CONTACT=/u/NAME"
    )


SITE = Site("reddit", REDDIT_HOSTS, settings=RedditSettings, connect=_connect, problem=_problem)
