"""The services behind `search_site`, on loopback, with the rules that their documents state, and their errors."""

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from sources.loopback import Answer, Handler, Route, as_json

OPENALEX_FIELDS = {
    *("id", "doi", "display_name", "publication_date", "type", "cited_by_count", "authorships", "primary_location"),
    *("open_access", "is_retracted", "abstract_inverted_index"),
}
ARXIV_ENTRY = """<entry><id>http://arxiv.org/abs/2401.01234v2</id><title>Glue  of
 the stars</title><published>2024-01-02T10:00:00Z</published><summary>We glue.</summary>
<author><name>Ada Stone</name></author><author><name>Bo Reed</name></author></entry>"""
ARXIV_ERROR = """<entry><id>http://arxiv.org/api/errors#incorrect_query</id><title>Error</title>
<summary>incorrect query</summary></entry>"""
FEED = "<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'><title>arXiv Query</title>{entries}</feed>"
REPOSITORY = {
    "full_name": "ada/glue",
    "html_url": "https://github.com/ada/glue",
    "description": "Glues things",
    "stargazers_count": 42,
    "pushed_at": "2026-08-01T00:00:00Z",
    "created_at": "2020-01-01T00:00:00Z",
}
ISSUE = {
    "html_url": "https://github.com/ada/glue/issues/7",
    "title": "It does not stick",
    "body": "On glass.",
    "state": "closed",
    "closed_at": "2026-02-02T00:00:00Z",
    "comments": 1,
    "created_at": "2026-02-01T00:00:00Z",
    "user": {"login": "bo"},
}
QUESTION = {
    "question_id": 11,
    "title": "Why is glue &quot;wet&quot;?",
    "link": "https://stackoverflow.com/questions/11/why",
    "body": "<p>It <b>drips</b>.</p>",
    "score": 5,
    "answer_count": 1,
    "accepted_answer_id": 12,
    "tags": ["glue"],
    "creation_date": 1_704_000_000,
    "owner": {"display_name": "Bo"},
}
ANSWER = {"answer_id": 12, "body": "<p>Because.</p>", "score": 9, "is_accepted": True, "owner": {"display_name": "Ada"}}
WORK = {
    "id": "https://openalex.org/W123",
    "doi": "https://doi.org/10.1/glue",
    "display_name": "On glue",
    "publication_date": "2023-05-01",
    "type": "article",
    "cited_by_count": 7,
    "authorships": [{"author": {"display_name": "Ada Stone"}}],
    "primary_location": {"source": {"display_name": "Glue Letters"}},
    "open_access": {"oa_url": None},
    "is_retracted": False,
    "abstract_inverted_index": {"Glue": [0], "sticks": [1, 3], "and": [2]},
}
KEY = "key-of-the-user"


@dataclass
class Services:
    """What the services remember of their caller."""

    searches: dict[str, int] = field(default_factory=dict[str, int])
    backoff: int = 0

    @property
    def routes(self) -> Mapping[str, Route]:
        """All of them on one server."""
        return {
            "/api/query": self.arxiv,
            "/w/api.php": self.wikipedia,
            "/works": self.openalex,
            "/works/W123": self.openalex_work,
            "/search/repositories": self.github_search,
            "/search/issues": self.github_search,
            "/repos/ada/glue": self.github,
            "/repos/ada/glue/readme": self.github,
            "/repos/ada/glue/issues/7": self.github,
            "/repos/ada/glue/issues/7/comments": self.github,
            "/2.3/search/advanced": self.stackexchange,
            "/2.3/questions/11": self.stackexchange,
            "/2.3/questions/11/answers": self.stackexchange,
        }

    def _count(self, service: str) -> int:
        self.searches[service] = self.searches.get(service, 0) + 1
        return self.searches[service]

    def arxiv(self, asked: Handler) -> Answer:
        """The Atom API: a query or ids, at most 2,000 results, errors as an entry."""
        given = _given(asked)
        is_wrong = (
            not given.get("search_query") or int(given["max_results"]) > 2_000 or "all:)" in given["search_query"]
        )
        entries = ARXIV_ERROR if is_wrong else ARXIV_ENTRY
        return Answer(FEED.format(entries=entries).encode(), 200, "application/atom+xml; charset=utf-8")

    def wikipedia(self, asked: Handler) -> Answer:
        """The action API: a User-Agent with a contact; errors have status 200."""
        if "@" not in (asked.headers.get("User-Agent") or ""):
            return Answer(b"Please set a user-agent and respect our robot policy", 403, "text/plain")
        given = _given(asked)
        if given.get("format") != "json" or given.get("generator") != "search" or int(given["gsrlimit"]) > 500:
            return as_json({"error": {"code": "badvalue", "info": "Unrecognized value for parameter"}})
        pages = [
            {"title": "Second", "fullurl": "https://en.wikipedia.org/wiki/Second", "extract": "Two.", "index": 2},
            {
                "title": "Glue",
                "fullurl": "https://en.wikipedia.org/wiki/Glue",
                "extract": "Sticky.",
                "index": 1,
            },
        ]
        return as_json({"batchcomplete": True, "query": {"pages": pages}})

    def openalex(self, asked: Handler) -> Answer:
        """Works: ten searches a day without a key, at most 100 results, known fields and filters only."""
        given = _given(asked)
        if given.get("api_key") != KEY and self._count("openalex") > 10:
            return as_json({"error": "Rate limit exceeded", "message": "Insufficient budget. Use an API key."}, 429)
        wrong = set(given.get("select", "").split(",")) - OPENALEX_FIELDS
        if wrong or int(given.get("per_page", "25")) > 100:
            return as_json({"error": "Invalid query parameters error.", "message": f"{wrong} is not valid"}, 403)
        return as_json({"meta": {"count": 1}, "results": [WORK]})

    def openalex_work(self, asked: Handler) -> Answer:
        """One work."""
        del asked
        return as_json(WORK)

    def github_search(self, asked: Handler) -> Answer:
        """Search: 10 a minute without a token; a search of issues names their kind."""
        if refused := _refused_by_github(asked):
            return refused
        has_token = asked.headers.get("Authorization") == f"Bearer {KEY}"
        if not has_token and self._count("github") > 10:
            spent = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1790000000"}
            return Answer(b'{"message": "API rate limit exceeded for 127.0.0.1."}', 403, "application/json", spent)
        path, given = urlsplit(asked.path).path, _given(asked)
        if path.endswith("repositories"):
            return as_json({"total_count": 1, "incomplete_results": True, "items": [REPOSITORY]})
        if not {"is:issue", "is:pr", "is:pull-request"} & set(given["q"].split()):
            return as_json({"message": "Query must include 'is:issue' or 'is:pull-request'"}, 422)
        return as_json({"total_count": 1, "incomplete_results": False, "items": [ISSUE]})

    def github(self, asked: Handler) -> Answer:
        """Repositories and issues."""
        if refused := _refused_by_github(asked):
            return refused
        readme = {"encoding": "base64", "content": base64.encodebytes(b"# Glue\n\nIt sticks.").decode()}
        said = {"body": "Clean it first.", "created_at": "2026-02-02T00:00:00Z", "user": {"login": "ada"}}
        found = {"glue": REPOSITORY, "readme": readme, "7": ISSUE, "comments": [said]}
        return as_json(found[urlsplit(asked.path).path.rpartition("/")[2]])

    def stackexchange(self, asked: Handler) -> Answer:
        """Questions: a site is required, `backoff` is waited for, and all answers are compressed."""
        given = _given(asked)
        if given.get("site") not in {"stackoverflow", "superuser"}:
            return _zipped({"error_id": 400, "error_message": "No site found", "error_name": "bad_parameter"}, 400)
        if given.get("filter") != "withbody":
            return _zipped({"error_id": 400, "error_message": "Invalid filter", "error_name": "bad_parameter"}, 400)
        if self.backoff and self._count("stackexchange") > 1:
            words = "too many requests from this IP, more requests available in 80000 seconds"
            return _zipped({"error_id": 502, "error_message": words, "error_name": "throttle_violation"}, 400)
        items = [ANSWER] if "answers" in asked.path else [QUESTION]
        waits = {"backoff": self.backoff} if self.backoff else {}
        return _zipped({"items": items, "has_more": False, "quota_max": 300, "quota_remaining": 299, **waits}, 200)


def _given(asked: Handler) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(asked.path).query).items()}


def _refused_by_github(asked: Handler) -> Answer | None:
    if not asked.headers.get("User-Agent"):
        return Answer(b"Request forbidden by administrative rules.", 403, "text/plain")
    if asked.headers.get("X-GitHub-Api-Version") not in {"2022-11-28", "2026-03-10"}:
        return as_json({"message": "Unsupported API version"}, 400)
    return None


def _zipped(value: object, status: int) -> Answer:
    return Answer(gzip.compress(json.dumps(value).encode()), status, "application/json", {"Content-Encoding": "gzip"})
