"""The page of a fleet, with the queue of a real database."""

from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra fleet is not installed")

from explorer.cli.commands.fleet import DATABASE_FILE, open_queue
from explorer.cli.commands.serve import fleet_of
from explorer.fleet.limits import LimitName, SharedLimitBook
from explorer.fleet.runs import NewRun
from server.site_stage import browsing, offline_settings, plain


async def test_the_fleet_is_shown_where_there_is_one(tmp_path: Path) -> None:
    """Without a database there is no link and a page that says how to begin; with one, its queue."""
    settings = offline_settings(tmp_path)
    assert fleet_of(settings) is None
    async with browsing(tmp_path) as browser:
        assert 'href="/fleet"' not in await browser.page("/")
        assert "explorer submit" in plain(await browser.page("/fleet", 404))
    (settings.workspace / DATABASE_FILE).parent.mkdir(parents=True)
    with open_queue(settings) as queue:
        queue.prepare()
        queue.submit(NewRun(question="What do <b>masts</b> cost?", settings={}))
        over, _new = queue.submit(NewRun(question="What did they cost?", settings={}))
        queue.cancel(over)
        book = SharedLimitBook(queue.database)
        book.put(LimitName("tenant", "<a>", "usd", "day"), 12.5)
        book.put_rate("openai-0123456789", 5, 1.0)
    async with browsing(tmp_path, fleet=fleet_of(settings)) as browser:
        assert 'href="/fleet"' in await browser.page("/")
        page = await browser.page("/fleet")
        assert "What do &lt;b&gt;masts&lt;/b&gt; cost?" in page
        assert "1 waiting, 0 at work" in plain(page)
        assert "No worker is at work" in plain(page)
        assert f'href="/runs/{over}"' in page.partition("Ended lately")[2]
        assert "$12.50 a day for tenant &lt;a&gt;" in page
        assert "openai-0123456789 5 requests a second open" in " ".join(plain(page).split())
