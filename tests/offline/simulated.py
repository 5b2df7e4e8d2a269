"""A tiny engine in memory: it answers a rule-driven client's calls from invented tools, helpers included."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from explorer.offline.client import next_turn
from explorer.offline.script_state import ToolAnswer
from explorer.schema.messages import (
    CallResult,
    JsonObject,
    Message,
    Request,
    Results,
    TaskData,
    ToolSchema,
    Turn,
    UserText,
)
from explorer.schema.reasons import NoteReason
from explorer.schema.tool import ToolResult
from explorer.sources.hackernews import items
from explorer.sources.threads import Comment, LeadLine, Thread, ThreadText, places
from explorer.text.rendering import block, own

TOOLS_OF_ROLE = {
    "orchestrator": (
        "call_agent",
        "read_file",
        "list_files",
        "search_files",
        "write_file",
        "edit_file",
        "finish_exploration",
    ),
    "searcher": (
        "get_hn_stories",
        "get_reddit_posts",
        "get_comments",
        "search_hn",
        "web_search",
        "read_webpage",
        "read_file",
        "write_file",
    ),
    "analyzer": ("read_file", "list_files", "search_files", "write_file"),
    "writer": ("read_file", "list_files", "search_files", "write_file", "edit_file"),
}
MAX_TURNS = 40


class FailedCall(Exception):  # noqa: N818 - it stands for a result, not for a fault
    """The call's result is an error with this text."""

    def __init__(self, text: str, data: JsonObject | None = None) -> None:
        super().__init__(text)
        self.data = data or {}


Tool = Callable[[JsonObject], str | ToolResult]


def request(role: str, history: Sequence[Message], tools: Sequence[str] | None = None) -> Request:
    """A request with the role's tools."""
    names = TOOLS_OF_ROLE.get(role, ("read_file", "write_file")) if tools is None else tools
    schemas = tuple(ToolSchema(name=name, description=name, parameters={"type": "object"}) for name in names)
    return Request(
        agent=f"{role}-1",
        role=role,
        model="offline",
        system="",
        tools=schemas,
        history=tuple(history),
        max_output_tokens=1000,
    )


def answer(result: ToolResult) -> ToolAnswer:
    """A tool's result as a script gets it."""
    data = {name: value for name, value in result.metadata.items() if name != "sources"}
    return ToolAnswer(result.content, not result.success, data, tuple(result.metadata.get("sources", ())))


Story = tuple[str, int, str, int, int, str]
"""Source, id, title, points, comments and address."""


def story_list(*stories: Story, words: str = "Hacker News top stories.") -> ToolResult:
    """A list of stories as the tools give it; the words are any."""
    facts = [
        {
            "source": source,
            "id": item,
            "page": f"https://news.ycombinator.com/item?id={item}",
            "title": title,
            "url": url,
            "points": points,
            "comments": comments,
            "points_per_hour": points / 5,
            "age_hours": 5.0,
            "author": "someone",
            "time": "2026-03-14T09:12:00Z",
        }
        for source, item, title, points, comments, url in stories
    ]
    return ToolResult(success=True, content=words, metadata={"shown": len(facts), "stories": facts})


def page(source: str, title: str, text: str, **facts: Any) -> ToolResult:
    """A page as the tools give it."""
    known: JsonObject = {
        "title": title,
        "url": "https://a.example/x",
        "author": "Ada",
        "published": "2026-03-13",
        "flags": [],
    }
    extent = {"first": 0, "last": len(text), "total": len(text)}
    return ToolResult(
        success=True, content=f"A page.\n{block(text)}", metadata={"sources": [source], **known, **extent, **facts}
    )


Said = tuple[int, str, str, str]
"""A comment: level, author, text, and its state where it is gone."""


def thread(source: str, comments: Sequence[Said], total: int | None = None, text: str = "") -> ToolResult:
    """A thread as the tools give it."""
    lead = (LeadLine(text, "The words: ", is_of_author=True),) if text else ()
    made = _tree(list(comments), 0)
    whole = Thread(items.Story(1, "T"), made, len(comments) if total is None else total)
    read = ThreadText(whole, "https://a.example/", "hackernews", own('"T"'), lead)
    data = places(read)
    content = f"Comments.\n{block(read.body)}" if read.body else "Comments."
    return ToolResult(
        success=True,
        content=content,
        metadata={"sources": [source], "shown": whole.shown, "total": read.total, **data},
    )


def _tree(comments: list[Said], level: int) -> tuple[Comment, ...]:
    """Take comments of a level, with their replies, off the front."""
    made: list[Comment] = []
    while comments and comments[0][0] == level:
        _, author, text, state = comments.pop(0)
        made.append(Comment(str(len(comments)), author, None, text, state, replies=_tree(comments, level + 1)))
    return tuple(made)


@dataclass
class Simulated:
    """One run: its files, its agents' histories, and the tools that reach outside."""

    outside: dict[str, Tool]
    files: dict[str, str] = field(default_factory=dict[str, str])
    histories: dict[str, list[Message]] = field(default_factory=dict[str, list[Message]])
    written: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    log: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Agent and tool of every call."""
    notes: dict[tuple[str, int], NoteReason | str] = field(default_factory=dict[tuple[str, int], NoteReason | str])
    """What is added to an agent's conversation after its n-th turn: a note, or words of the user."""
    summaries: list[str] = field(default_factory=list[str])
    """What helpers ended with, in their order."""
    finished: list[JsonObject] = field(default_factory=list[JsonObject])
    refuse_finish: JsonObject = field(default_factory=dict[str, Any])
    """Data of an error that the first attempt to finish brings."""

    def ask(self, question: str, files: tuple[tuple[str, str], ...] = (), **settings: Any) -> None:
        """Start a run."""
        self.say("orchestrator", "orchestrator", TaskData(words=question, files=files, settings=settings))

    def say(self, agent: str, role: str, said: TaskData | NoteReason | str) -> str:
        """Give an agent a task, or say something to it, and run it to its end; returns its last words."""
        history = self.histories.setdefault(agent, [])
        history.append(_words(said))
        for _ in range(MAX_TURNS):
            asked = request(role, history)
            turn = next_turn(asked)
            assert turn == next_turn(asked)
            history.append(turn)
            if not turn.calls:
                return turn.text
            ends = self._answer(agent, turn)
            if ends:
                return ""
        raise AssertionError(f"{agent} took more than {MAX_TURNS} turns")

    def _answer(self, agent: str, turn: Turn) -> bool:
        results = tuple(self._result(agent, call.id, call.name, call.arguments or {}) for call in turn.calls)
        history = self.histories[agent]
        history.append(Results(results=results))
        turns = sum(isinstance(message, Turn) for message in history)
        if note := self.notes.get((agent, turns)):
            history.append(_words(note))
        return any(result.name == "finish_exploration" and not result.is_error for result in results)

    def _result(self, agent: str, call_id: str, name: str, arguments: JsonObject) -> CallResult:
        self.log.append((agent, name))
        try:
            made = self._run(agent, name, arguments)
        except FailedCall as failure:
            return CallResult(id=call_id, name=name, content=str(failure), is_error=True, data=failure.data)
        given = answer(ToolResult(success=True, content=made) if isinstance(made, str) else made)
        return CallResult(id=call_id, name=name, content=given.text, data=given.data, sources=given.sources)

    def _run(self, agent: str, name: str, arguments: JsonObject) -> str | ToolResult:
        own: dict[str, Tool] = {
            "read_file": self._read,
            "write_file": lambda given: self._write(agent, given),
            "list_files": lambda _given: ToolResult(success=True, content="Files.", metadata={"paths": [*self.files]}),
            "search_files": self._search,
            "call_agent": self._help,
            "finish_exploration": self._finish,
        }
        tool = own.get(name) or self.outside.get(name)
        if tool is None:
            raise FailedCall(f"{name} is not available")
        return tool(arguments)

    def _read(self, arguments: JsonObject) -> ToolResult:
        path, start = str(arguments["filepath"]), int(arguments.get("start_line", 1))
        if path not in self.files:
            raise FailedCall(f"there is no file {path}")
        lines = self.files[path].splitlines()
        last = min(len(lines), start + 59)
        shown = [f"{number:>6}\t{line}" for number, line in enumerate(lines[start - 1 : last], start)]
        metadata = {"path": path, "first": start, "last": last, "total": len(lines), "cut": 0}
        return ToolResult(success=True, content="\n".join(["Lines.", *shown]), metadata=metadata)

    def _write(self, agent: str, arguments: JsonObject) -> str:
        path, content = str(arguments["filepath"]), str(arguments["content"])
        self.files[path] = self.files.get(path, "") + content if arguments.get("mode") == "append" else content
        paths = self.written.setdefault(agent, [])
        if path not in paths:
            paths.append(path)
        return "Done."

    def _search(self, arguments: JsonObject) -> ToolResult:
        words = str(arguments["pattern"]).lower().split("|")
        found = {
            path: sum(any(word in line.lower() for word in words) for line in text.splitlines())
            for path, text in self.files.items()
        }
        matches = {path: count for path, count in found.items() if count}
        return ToolResult(success=True, content="Matches.", metadata={"matches": matches})

    def _help(self, arguments: JsonObject) -> ToolResult:
        role = str(arguments["agent_type"])
        count = sum(agent.startswith(f"{role}-") for agent in self.histories)
        agent = str(arguments.get("agent_id") or f"{role}-{count + 1}")
        task = TaskData(
            words=str(arguments["task_description"]).strip(),
            files=tuple((str(path), "") for path in arguments.get("context_files", ())),
            folder=str(arguments.get("output_dir", "")),
        )
        self.summaries.append(self.say(agent, role, task))
        files = list(self.written.get(agent, []))
        metadata = {"agent_id": agent, "status": "complete", "output_files": files}
        return ToolResult(success=True, content="It is done.", metadata=metadata)

    def _finish(self, arguments: JsonObject) -> str:
        if self.refuse_finish:
            problem, self.refuse_finish = self.refuse_finish, {}
            raise FailedCall("No.", problem)
        self.finished.append(arguments)
        return "Finished."


def _words(said: TaskData | NoteReason | str) -> UserText:
    match said:
        case TaskData():
            return UserText(text="Do it.", task=said)
        case NoteReason():
            return UserText(text="Something is noted.", reason=said)
        case _:
            return UserText(text=said)
