"""The control of all tests with a browser: what would be wrong on a page is noticed."""

import pytest

from server.browser.browser_stage import SiteProcess, Visitor

pytestmark = pytest.mark.slow
INLINE = "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}))"
IMAGE = "document.body.append(Object.assign(document.createElement('img'), {src: 'http://127.0.0.2:9/a.png'}))"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("console.error('it is broken')", "error: it is broken"),
        ("setTimeout(() => { throw new Error('nobody catches it') })", "not caught: nobody catches it"),
        (INLINE, "policy violated: script-src-elem inline"),
        (IMAGE, "policy violated: img-src http://127.0.0.2:9/a.png"),
        ("setTimeout(() => { location.href = 'http://127.0.0.2:9/' })", "request to http://127.0.0.2:9/"),
        ("fetch('/nothing')", "404"),
    ],
)
def test_what_is_wrong_on_a_page_is_noticed(
    offline_site: SiteProcess, visitor: Visitor, script: str, words: str
) -> None:
    """An error, one that nothing catches, a script and an image that the policy forbids, requests elsewhere, a gap."""
    page = visitor.open(offline_site)
    assert visitor.complaints == []
    page.evaluate(f"() => {{ {script} }}")
    visitor.wait_for(page, words)
    visitor.expected.append("")
