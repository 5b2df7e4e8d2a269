"""What agents do, in a few words for people."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

from explorer.cli.screens.number_format import counted
from explorer.cli.screens.sanitize import one_line
from explorer.schema.events import ToolFinished
from explorer.schema.messages import JsonObject, ToolCall

DOING_CHARS = 60
FENCE = re.compile(r"<<(untrusted|end) [0-9a-f]{16}>>")
COUNTS = re.compile(r"(\d[\d,]*) (?:of [\d,]+ )?(shown|hit|result)s?\b")
STORIES = re.compile(r"stories, (\d+)-(\d+) of")
READ = re.compile(r"^(characters|.*, lines) (\d+-\d+ of \d+)", re.MULTILINE)

Wording = Callable[[JsonObject], str]


def _quoted(verb: str, key: str) -> Wording:
    return lambda given: f'{verb} "{given.get(key, "")}"'


def _named(verb: str, key: str) -> Wording:
    return lambda given: f"{verb} {given.get(key, '')}".rstrip()


def _reading_page(given: JsonObject) -> str:
    url = str(given.get("url", ""))
    return f"reading {_host(url) or url}"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


WORDINGS: dict[str, Wording] = {
    "read_webpage": _reading_page,
    "web_search": _quoted("searching the web for", "query"),
    "search_hn": _quoted("searching Hacker News for", "query"),
    "get_hn_stories": lambda given: f"looking at Hacker News {given.get('story_type', 'top')} stories",
    "get_hn_comments": _named("reading the comments on", "story_id"),
    "get_hn_user": _named("looking up the Hacker News user", "name"),
    "get_reddit_posts": _named("looking at posts of r/", "subreddit"),
    "get_comments": _named("reading the comments on", "post_id"),
    "search_corpus": _quoted("searching your folder for", "query"),
    "read_document": _named("reading", "path"),
    "search_runs": _quoted("searching earlier runs for", "query"),
    "list_sources": lambda _: "listing the sources",
    "read_source": _named("reading the source", "source_id"),
    "read_report": _named("reading the report", "report"),
    "create_report": _named("adding to the library:", "title"),
    "append_report": _named("adding to the library's", "report"),
    "execute_shell": _named("running", "command"),
    "get_shell_output": _named("looking at the job", "bash_id"),
    "kill_shell": _named("ending the job", "bash_id"),
    "read_file": _named("reading", "filepath"),
    "write_file": _named("writing", "filepath"),
    "edit_file": _named("editing", "filepath"),
    "list_files": lambda given: f"listing {given.get('path') or 'the files'}",
    "search_files": _quoted("searching the files for", "pattern"),
    "call_agent": lambda given: f"asks {given.get('agent_type', 'a helper')}: {given.get('task_description', '')}",
    "finish_exploration": lambda _: "finishing",
}


def doing(call: ToolCall) -> str:
    """What a call does: `reading lantern-db.example`."""
    wording = WORDINGS.get(call.name)
    words = wording(call.arguments) if wording and call.arguments is not None else call.name
    return one_line(words, DOING_CHARS)


def asked(call: ToolCall) -> str:
    """A call as it was asked: its name and its first argument, `get_hn_comments 123`."""
    first = next(iter(call.arguments.values()), "") if call.arguments else ""
    return one_line(f"{call.name} {first if isinstance(first, str | int | float) else ''}", DOING_CHARS)


def outcome(event: ToolFinished) -> str:
    """What a call brought: `50 comments`, `12 lines`, or why it failed."""
    if not event.success:
        return one_line(f"failed: {event.content}", DOING_CHARS * 2)
    if event.files:
        return ", ".join(counted(file.lines, "line") for file in event.files)
    return _counted(event) or one_line(FENCE.sub("", event.content).partition("\n")[0], DOING_CHARS)


def _counted(event: ToolFinished) -> str:
    head = event.content[:500]
    if event.name in {"read_webpage", "read_file"}:
        match = READ.search(head)
        return f"{match[1].rpartition(' ')[2]} {match[2]}" if match else ""
    if event.name == "get_hn_stories" and (match := STORIES.search(head)):
        return f"{int(match[2]) - int(match[1]) + 1} stories"
    # The last one: a title or a query before it may hold figures of its own.
    counts = COUNTS.findall(head.partition("\n")[0])
    if not counts:
        return ""
    number, word = counts[-1]
    is_thread = event.name in {"get_hn_comments", "get_comments"}
    return counted(int(number.replace(",", "")), "comment" if is_thread else word)
