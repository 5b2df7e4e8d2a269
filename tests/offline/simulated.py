"""A tiny engine in memory: it answers a rule-driven client's calls from invented tools, helpers included."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from explorer.offline.client import next_turn
from explorer.schema.messages import CallResult, JsonObject, Message, Request, Results, ToolSchema, Turn, UserText
from explorer.text.sanitize import fence

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


Tool = Callable[[JsonObject], str]


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


def answered(turn: Turn, *texts: str, errors: Sequence[int] = ()) -> Results:
    """Results for a turn's calls, in order."""
    pairs = enumerate(zip(turn.calls, texts, strict=True))
    return Results(
        results=tuple(
            CallResult(id=call.id, name=call.name, content=text, is_error=index in errors)
            for index, (call, text) in pairs
        )
    )


def story_list(*stories: tuple[str, int, str, int, int, str], head: str = "Hacker News top stories, 1-3 of 3.") -> str:
    """A list of stories in the tools' form: (source, id, title, points, comments, url)."""
    lines: list[str] = []
    for number, (source, item, title, points, comments, url) in enumerate(stories, 1):
        site = f" ({url.split('/')[2]})" if url else ""
        facts = f"{points} points | {comments} comments | {points / 5:.1f} points/h | 5.0 h old"
        lines += [f"{number}. [{source}] {title}{site}"]
        lines += [f"   id {item} | {facts} | by someone | 2026-03-14T09:12:00Z | {url or 'text'}"]
    return f"{head}\n{fence(chr(10).join(lines))}"


def page(source: str, title: str, text: str, head: str = "by Ada | published 2026-03-13 | https://a.example/x") -> str:
    """A page in the tools' form."""
    return f"[{source}] {title}\n{head} | via direct\ncharacters 0-{len(text)} of {len(text)}\n{fence(text)}"


def thread(source: str, title: str, item: int, lines: Sequence[str], total: int | None = None) -> str:
    """A thread in the tools' form."""
    shown = sum(line.lstrip().startswith("- ") for line in lines)
    head = f'Comments on [{source}] "{title}" (story id {item}): {shown} of {total or shown} shown.'
    return f"{head}\n{fence(chr(10).join(lines))}" if lines else head


@dataclass
class Simulated:
    """One run: its files, its agents' histories, and the tools that reach outside."""

    outside: dict[str, Tool]
    files: dict[str, str] = field(default_factory=dict[str, str])
    histories: dict[str, list[Message]] = field(default_factory=dict[str, list[Message]])
    written: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    log: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Agent and tool of every call."""
    notes: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    """Words added to an agent's conversation after its n-th turn."""
    finished: list[JsonObject] = field(default_factory=list[JsonObject])
    refuse_finish: str = ""

    def say(self, agent: str, role: str, text: str) -> str:
        """Give an agent a task and run it to its end; returns its last words."""
        history = self.histories.setdefault(agent, [])
        history.append(UserText(text=text))
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
            history.append(UserText(text=note))
        return any(result.name == "finish_exploration" and not result.is_error for result in results)

    def _result(self, agent: str, call_id: str, name: str, arguments: JsonObject) -> CallResult:
        self.log.append((agent, name))
        try:
            content = self._run(agent, name, arguments)
        except FailedCall as failure:
            return CallResult(id=call_id, name=name, content=str(failure), is_error=True)
        return CallResult(id=call_id, name=name, content=content)

    def _run(self, agent: str, name: str, arguments: JsonObject) -> str:
        own: dict[str, Tool] = {
            "read_file": self._read,
            "write_file": lambda given: self._write(agent, given),
            "list_files": lambda _given: "\n".join(self._described(path) for path in self.files) or "No files.",
            "search_files": self._search,
            "call_agent": self._help,
            "finish_exploration": self._finish,
        }
        tool = own.get(name) or self.outside.get(name)
        if tool is None:
            raise FailedCall(f"{name} is not available")
        return tool(arguments)

    def _described(self, path: str) -> str:
        text = self.files[path]
        return f"{path} ({len(text.splitlines())} lines, {len(text.encode())} bytes)"

    def _read(self, arguments: JsonObject) -> str:
        path, start = str(arguments["filepath"]), int(arguments.get("start_line", 1))
        if path not in self.files:
            raise FailedCall(f"there is no file {path}")
        lines = self.files[path].splitlines()
        last = min(len(lines), start + 59)
        shown = [f"{number:>6}\t{line}" for number, line in enumerate(lines[start - 1 : last], start)]
        rest = [f"({len(lines) - last} more lines; read on with start_line={last + 1})"] if last < len(lines) else []
        return "\n".join([f"{path}, lines {start}-{last} of {len(lines)}", *shown, *rest])

    def _write(self, agent: str, arguments: JsonObject) -> str:
        path, content = str(arguments["filepath"]), str(arguments["content"])
        self.files[path] = self.files.get(path, "") + content if arguments.get("mode") == "append" else content
        paths = self.written.setdefault(agent, [])
        if path not in paths:
            paths.append(path)
        return f"Wrote {self._described(path)}."

    def _search(self, arguments: JsonObject) -> str:
        words = str(arguments["pattern"]).lower().split("|")
        found = [
            f"{path}:{number}: {line}"
            for path, text in self.files.items()
            for number, line in enumerate(text.splitlines(), 1)
            if any(word in line.lower() for word in words)
        ]
        return "\n".join(found) or "No matches."

    def _help(self, arguments: JsonObject) -> str:
        role = str(arguments["agent_type"])
        count = sum(agent.startswith(f"{role}-") for agent in self.histories)
        agent = str(arguments.get("agent_id") or f"{role}-{count + 1}")
        parts = [str(arguments["task_description"]).strip()]
        if arguments.get("output_dir"):
            parts.append(f"Write your files under `{arguments['output_dir']}/`.")
        if arguments.get("context_files"):
            lines = [f"- {self._described(str(path))}: x" for path in arguments["context_files"]]
            parts.append("Files for you (read them with read_file):\n" + "\n".join(lines))
        summary = self.say(agent, role, "\n\n".join(parts))
        files = [{"path": path, "title": "", "lines": 1, "bytes": 1} for path in self.written.get(agent, [])]
        return json.dumps({"agent_id": agent, "status": "complete", "summary": summary, "files": files})

    def _finish(self, arguments: JsonObject) -> str:
        if self.refuse_finish:
            problem, self.refuse_finish = self.refuse_finish, ""
            raise FailedCall(problem)
        self.finished.append(arguments)
        return "Finished."
