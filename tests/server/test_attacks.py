"""What is tried against the web page: other sites, other names, no token, too much. Each with a control."""

from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from explorer.server.security import COOKIE, POLICY, ServerAccess
from made_runs import A, two_runs
from server.site_stage import HERE, GatedClient, active_parts, browsing, plain

TOKEN = "0123456789abcdef-token"
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"
FORM = {"question": "What is there?"}
ELSEWHERE = "https://evil.example"


HOSTS: list[tuple[dict[str, str], int]] = [
    ({"host": "evil.example"}, 421),
    ({"host": "localhost.evil.example:80"}, 421),
    ({"host": "127.0.0.1.evil.example"}, 421),
    ({"host": "192.168.1.7"}, 421),
    ({"host": "user@127.0.0.1"}, 421),
    ({"host": ""}, 421),
    ({"host": "127.0.0.1:1"}, 200),
    ({"host": "localhost"}, 200),
    ({"host": "[::1]:8777"}, 200),
]


async def test_the_server_answers_to_its_own_address_only(tmp_path: Path) -> None:
    """A name of somebody else's that leads to this machine reaches nothing, on pages, files and data."""
    async with browsing(tmp_path) as browser:
        for (headers, code), path in product(HOSTS, ("/", "/static/page.js", "/api/openapi.json")):
            answer = await browser.get(path, headers=headers)
            assert answer.status_code == code, (path, headers, answer.text[:200])


SITES: list[tuple[dict[str, str], int]] = [
    ({"sec-fetch-site": "cross-site", "origin": ELSEWHERE}, 403),
    ({"sec-fetch-site": "same-site"}, 403),
    ({"origin": ELSEWHERE}, 403),
    ({"origin": "null"}, 403),
    ({"origin": "http://127.0.0.1:1"}, 403),
    ({}, 403),
    (HERE, 303),
]


async def test_a_page_of_another_site_orders_nothing(tmp_path: Path) -> None:
    """No run is started by a form of another site, or by one whose site is not known."""
    async with browsing(tmp_path, GatedClient()) as browser:
        for headers, code in SITES:
            answer = await browser.client.post("/runs", data=FORM, headers=headers, follow_redirects=False)
            assert answer.status_code == code, headers
            assert len(list((tmp_path / "workspace").glob("*"))) == (1 if code == 303 else 0), headers


async def test_without_the_token_nothing_is_shown(tmp_path: Path) -> None:
    """The first address sets a cookie that no script reads and no other site sends; a wrong token does nothing."""
    (tmp_path / "workspace").mkdir()
    async with browsing(tmp_path, access=ServerAccess(token=TOKEN)) as browser:
        for path in ("/", "/static/page.js", "/api/openapi.json", "/?token=wrong", "/?token="):
            assert (await browser.get(path)).status_code == 401, path
        assert "<form" in (await browser.get("/", headers={"accept": "text/html"})).text
        answer = await browser.get(f"{browser.address}//evil.example/?token={TOKEN}", follow_redirects=False)
        assert answer.headers["location"] == "/evil.example/"
        cookie = f"{COOKIE}_{urlsplit(browser.address).port}"
        first = await browser.get(f"/?q=ropes&token={TOKEN}", follow_redirects=False)
        assert first.headers["location"] == "/?q=ropes"
        kept = first.headers["set-cookie"]
        assert kept.startswith(f"{cookie}={TOKEN}")
        assert "HttpOnly" in kept
        assert "samesite=strict" in kept.lower()
        async with httpx2.AsyncClient(base_url=browser.address, cookies={cookie: TOKEN}, trust_env=False) as known:
            assert (await known.get("/")).status_code == 200
        browser.client.cookies.clear()
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert (await browser.get("/", headers=bearer)).status_code == 200
        assert (await browser.get("/", headers={"authorization": "Bearer wrong"})).status_code == 401
        assert (await browser.client.post("/runs", data=FORM, headers=HERE)).status_code == 401


async def test_a_word_for_once_opens_one_browser(tmp_path: Path) -> None:
    """What a browser is started with, and others of the machine see, is worth nothing once the page was opened."""
    access = ServerAccess(token=TOKEN)
    async with browsing(tmp_path, access=access) as browser:
        address = access.address(f"{browser.address}/", is_for_once=True)
        assert TOKEN not in address
        assert access.address(browser.address) == f"{browser.address}?token={TOKEN}"
        first = await browser.get(address, follow_redirects=False)
        assert TOKEN in first.headers["set-cookie"]
        browser.client.cookies.clear()
        assert (await browser.get(address, follow_redirects=False)).status_code == 401


async def test_a_link_of_another_site_leads_to_the_page(tmp_path: Path) -> None:
    """The browser keeps the cookie back there, so that a page leads on to it; it leads nowhere else, and only once."""
    elsewhere = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    async with browsing(tmp_path, access=ServerAccess(token=TOKEN)) as browser:
        for path, leads in ((f"/?token={TOKEN}&q=a%26b&p=1", "/?q=a%26b&amp;p=1"), ("//x%22%3E", "/x%22%3E")):
            page = await browser.page(browser.address + path, headers=elsewhere)
            browser.client.cookies.clear()
            assert f'content="0; url={leads}"' in page
            assert active_parts(page) == ["meta"]
        assert (await browser.get("/", headers={"sec-fetch-site": "same-origin"})).status_code == 401
        refused = await browser.client.post("/runs", data=FORM, headers=elsewhere)
        assert refused.status_code == 403


async def test_too_much_is_not_taken(tmp_path: Path) -> None:
    """A request that says or sends more than is allowed starts nothing."""
    async with browsing(tmp_path, GatedClient()) as browser:
        said = await browser.client.post("/runs", data={"question": "x" * 25_000_000}, headers=HERE)
        assert said.status_code == 413

        async def chunks() -> AsyncIterator[bytes]:
            yield b"question="
            for _ in range(30):
                yield b"x" * 1_000_000

        form = {"content-type": "application/x-www-form-urlencoded"}
        try:
            sent = await browser.client.post("/runs", content=chunks(), headers=HERE | form)
            assert sent.status_code >= 400
        except httpx2.HTTPError:
            pass
        many = [("files", (f"{number}.txt", b"x", "text/plain")) for number in range(21)]
        refused = await browser.send("/runs", 400, question="What is there?", files=many)
        assert "21 files are too many" in plain(refused.text)
        assert not list((tmp_path / "workspace").glob("*"))


async def test_numbers_without_end_are_no_numbers(tmp_path: Path) -> None:
    """`int` refuses some thousands of digits, with an error that nobody foresaw."""
    async with browsing(tmp_path, GatedClient()) as browser:
        run = await browser.ask("What is there?")
        long = "9" * 5000
        for path in (f"/runs/{run}/live", f"/api/runs/{run}/events"):
            headers = {"last-event-id": long, "accept": "text/event-stream"}
            async with browser.client.stream("GET", path, headers=headers) as answer:
                assert answer.status_code == 200, path
        for path in (f"/runs/{run}?at={long}", f"/?show={long}", f"/api/runs/{run}/events?after={long}"):
            assert (await browser.get(path)).status_code == 400, path


async def test_every_answer_binds_the_browser(tmp_path: Path) -> None:
    """No script but the server's own runs, no page of others frames it, nothing is guessed to be HTML."""
    await two_runs(tmp_path / "workspace")
    async with browsing(tmp_path) as browser:
        for path in ("/", f"/runs/{A}", "/nothing", "/static/page.js", "/api/openapi.json"):
            headers = (await browser.get(path)).headers
            assert headers["content-security-policy"] == POLICY, path
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "same-origin"
        assert "unsafe" not in POLICY
        text = await browser.page(f"/runs/{A}")
        assert not active_parts(text)


def test_the_look_for_active_parts_finds_them() -> None:
    """The control of the tests that look for them: each kind is found where it is."""
    kinds = [SCRIPT, "<a href='javascript:x'>", "<svg><script/></svg>", "<!-- x -->", "<a href='//evil.example/'>"]
    kinds += [
        "<img src='https://evil.example/a.png'>",
        "<p style='x'>",
        "<iframe>",
        "<base href=x>",
        "<form action=//x>",
    ]
    assert all(active_parts(f"<p>{kind}</p>") for kind in kinds)
    assert not active_parts('<script src="/static/page.js" defer></script><a href="https://rope.example/">x</a>')
