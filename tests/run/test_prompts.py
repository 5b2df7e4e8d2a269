"""What the built-in roles see, turn by turn, and whether their prompts and their tools fit each other."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from engine_stage import NOON, compare_with_golden
from explorer.agents.roles import PromptLoader, Role, built_in_roles
from explorer.run.hooks import RunHooks
from explorer.run.run import start
from explorer.schema.messages import JsonObject, Message, Request, Results, ToolSchema, Turn, UserText
from explorer.schema.settings import Settings
from explorer.skills.catalog import HEADING
from explorer.testing import ScriptedClient, says

ROLES = PromptLoader([built_in_roles()]).roles()
PLAIN = frozenset({"read_file", "write_file", "edit_file", "list_files", "search_files", "list_sources"})
"""Tools of which the description says all: no prompt has to."""
PLAN = """# Plan: which machine boots again?
For: a reader of the day's news. Form: two sentences.
- [ ] What boots -> searcher
"""
PAGE = Path(__file__).resolve().parents[2] / "docs" / "prompts.md"
MAX_SHOWN = 1_500
FOUND = "# What boots\n\nA minicomputer boots from paper tape again [S31].\n"
REPORT = "# What boots\n\nA minicomputer boots from paper tape again [S31]. It rose by 99 % [S31].\n"
TASK = "Goal: which old machine boots again? Look in today's top stories. Result: boots/what.md. Effort: 2 lookups."
Call = tuple[str, JsonObject]


def asks(role: str, task: str, **more: object) -> Call:
    """A call of a helper."""
    return ("call_agent", {"agent_type": role, "task_description": task, **more})


LEAD: Sequence[Turn] = (
    says("I am going to look at today's stories."),
    says(
        "",
        ("write_file", {"filepath": "plan.md", "content": PLAN}),
        asks("searcher", TASK, output_dir="boots"),
        asks("searcher", "Read the notes.", context_files=["inputs/notes.md", "inputs/gone.md"]),
        asks("reader", "Read."),
    ),
    says(
        "",
        (
            "edit_file",
            {"filepath": "plan.md", "old_string": "- [ ] What boots", "new_string": "- [x] What boots [S31]"},
        ),
        asks("analyzer", "Is it one source or two?", context_files=["boots/what.md"]),
        ("read_source", {"source_id": "S31", "find": "paper tape"}),
    ),
    says("", asks("writer", "Two sentences for a reader of the day's news.", context_files=["boots/what.md"])),
    says("", ("read_file", {"filepath": "report.md"})),
    says("", ("finish_exploration", {"summary": "It boots."})),
    says("", asks("writer", "Take out the 99 %: no source has it.", agent_id="writer-1")),
    says("", ("finish_exploration", {"summary": "A minicomputer boots from paper tape."})),
)
"""An orchestrator that follows its prompt, after a turn in which it only announces something."""
WRITER: Sequence[Turn] = (
    says("", ("write_file", {"filepath": "report.md", "content": REPORT})),
    says("Two sentences [S31].\nNot known: who built it."),
    says("", ("edit_file", {"filepath": "report.md", "old_string": " It rose by 99 % [S31].", "new_string": ""})),
    says("Corrected [S31].\nNot known: who built it."),
)


def searcher(request: Request) -> Turn:
    """Look at the day's stories, write one down, and answer; calls that cannot be made are seen, too."""
    turns = sum(isinstance(message, Turn) for message in request.history)
    steps = (
        says(
            "",
            ("get_hn_stories", {"story_type": "top", "limit": 30}),
            ("read_webpage", {"url": "https://composed.example/?q=1"}),
            ("read_file", {"path": "boots/what.md"}),
        ),
        says("", ("write_file", {"filepath": "boots/what.md", "content": FOUND})),
        says("It boots [S31].\nNot known: who built it."),
    )
    return steps[turns]


SCRIPTS = {
    "orchestrator": LEAD,
    "searcher": searcher,
    "analyzer": [says("", ("read_file", {"filepath": "boots/what.md"})), says("One source [S31].\nNot known: more.")],
    "writer": WRITER,
}


async def requests_of(folder: Path) -> list[Request]:
    """All requests of a run on the sample day."""
    client = ScriptedClient(dict(SCRIPTS))
    hooks = RunHooks(client=client, run_id="run", now=lambda: NOON, files={"notes.md": b"The tape was found in May.\n"})
    settings = Settings(workspace=folder / "workspace", reports_dir=folder / "library", is_sample=True, shell="off")
    result = await start("Which old machine boots again?", settings, hooks)
    assert (result.status, result.reason) == ("complete", "")
    return client.requests


def shown_tool(schema: ToolSchema) -> str:
    """A tool as its role sees it: name, description, and the arguments a line each."""
    wanted = schema.parameters.get("required", ())
    lines = [f"### {schema.name}", "", schema.description, ""]
    for name, field in schema.parameters["properties"].items():
        rest = {key: value for key, value in field.items() if key != "description"}
        said = f": {field['description']}" if "description" in field else ""
        mark = "" if name in wanted else ", optional"
        lines.append(f"- {name} ({json.dumps(rest, ensure_ascii=False)}{mark}){said}")
    return "\n".join(lines)


def shown_message(message: Message) -> Iterator[str]:
    """A message as its reader sees it, without what differs from run to run; long results cut."""
    match message:
        case UserText(text=text):
            yield f"#### user\n\n{text}"
        case Turn(text=text, calls=calls):
            said = "\n".join(f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)}" for call in calls)
            yield f"#### the model\n\n{text}\n{said}".rstrip()
        case Results(results=results):
            for result in results:
                head = f"#### {'error' if result.is_error else 'result'} of {result.name}"
                text = result.content
                yield f"{head}\n\n" + (text if len(text) < MAX_SHOWN else f"{text[:700]}\n...\n{text[-300:]}")


def seen_by(role: Role, requests: Sequence[Request]) -> str:
    """All that a role's first agent saw, as a page."""
    last = [request for request in requests if request.agent == ("orchestrator" if role.leads else f"{role.name}-1")][
        -1
    ]
    assert last.system.startswith(role.prompt)
    parts = [
        f"# What the {role.name} sees",
        f"System text: prompts/{role.name}.md, as it is, and then:",
        last.system.removeprefix(role.prompt).strip(),
        "## Tools",
        *map(shown_tool, last.tools),
        "## Conversation",
        *(text for message in last.history for text in shown_message(message)),
    ]
    page = re.sub(r"\b[0-9a-f]{16}\b", "#", "\n\n".join(parts)) + "\n"
    return re.sub(r"(Left for all agents of the run:) \d+ turns, \d+ minutes", r"\1 # turns, # minutes", page)


def sizes(role: Role, requests: Sequence[Request]) -> tuple[int, int]:
    """The bytes of a role's prompt, and those of its tools."""
    tools = next(one.tools for one in requests if one.role == role.name)
    return len(role.prompt.encode()), sum(len(tool.model_dump_json().encode()) for tool in tools)


async def test_what_each_role_sees_is_known(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Tools, first message, notes, results, errors and sizes of each role, in a run that follows the prompts."""
    requests = await requests_of(tmp_path)
    rows = re.findall(r"^\| (\w+) \| ([\d,]+) \| ([\d,]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    documented = {name: [int(size.replace(",", "")) for size in both] for name, *both in rows}
    for role in ROLES.values():
        compare_with_golden(request, f"seen_by_{role.name}.md", seen_by(role, requests))
        assert documented[role.name] == pytest.approx(sizes(role, requests), abs=100)


@pytest.mark.parametrize("role", ROLES.values(), ids=ROLES)
async def test_prompts_and_tools_fit(role: Role) -> None:
    """Each tool that a prompt names is one of its role, and each tool that needs a word has one in the prompt."""
    tools = {tool for one in ROLES.values() for tool in one.tools}
    named = set(re.findall(r"`(\w+)`", role.prompt + HEADING)) & tools
    assert named <= set(role.tools)
    assert set(role.tools) - named - PLAIN == set()
