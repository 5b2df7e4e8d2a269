from pathlib import Path

import pytest

from explorer.agents.roles import (
    MAX_ROLE_FILE_BYTES,
    PromptLoader,
    built_in_roles,
    leading_role,
    load_role,
    report_writers,
)
from explorer.schema.errors import ConfigError

GOOD = "---\nname: reader\ndescription: Reads.\ntools: [read_file]\n---\nYou read.\n"
FAULTS = {
    "no frontmatter": ("You read.\n", "has no frontmatter"),
    "no end of the frontmatter": ("---\nname: reader\n", "has no frontmatter"),
    "empty": ("", "has no frontmatter"),
    "bad YAML": (GOOD.replace("[read_file]", "[read_file"), "it is not YAML: "),
    "a list": ("---\n- a\n- b\n---\nYou read.\n", "it is not a list of fields"),
    "no name": (GOOD.replace("name: reader\n", ""), "field `name`: Field required"),
    "a name with spaces": (
        GOOD.replace("name: reader", "name: The Reader"),
        "field `name`: String should match pattern",
    ),
    "a number as name": (GOOD.replace("name: reader", "name: 5"), "field `name`: Input should be a valid string"),
    "no description": (GOOD.replace("description: Reads.\n", ""), "field `description`: Field required"),
    "no tools": (GOOD.replace("tools: [read_file]\n", ""), "field `tools`: Field required"),
    "tools as one word": (GOOD.replace("[read_file]", "read_file"), "field `tools`: Input should be a valid tuple"),
    "an unknown field": (
        GOOD.replace("tools:", "colour: red\ntools:"),
        "field `colour`: Extra inputs are not permitted",
    ),
    "no steps": (
        GOOD.replace("tools:", "limits: {max_steps: 0}\ntools:"),
        "field `limits.max_steps`: Input should be greater",
    ),
    "an unknown limit": (GOOD.replace("tools:", "limits: {steps: 5}\ntools:"), "field `limits.steps`: Extra inputs"),
    "no prompt": (GOOD.replace("You read.", "  "), "has no prompt below its frontmatter"),
}


def write(folder: Path, name: str, text: str | bytes) -> Path:
    """A role file."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def fault_of(path: Path) -> ConfigError:
    """What is said about a role file that cannot be used: one line, the file's name in it, and a way on."""
    with pytest.raises(ConfigError) as caught:
        load_role(path)
    message = caught.value.message
    assert str(path) in message
    assert "\n" not in message
    assert str(path) in caught.value.hint
    assert caught.value.exit_code == 2
    return caught.value


@pytest.mark.parametrize(("text", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_each_fault_is_told_in_one_line(text: str, words: str, tmp_path: Path) -> None:
    """The file and the field are named, so that it can be mended without looking anything up."""
    assert words in fault_of(write(tmp_path, "reader.md", text)).message


def test_files_that_are_no_text_are_told(tmp_path: Path) -> None:
    """Not UTF-8, too big, not there, a folder: each in one line."""
    assert "cannot be read: 'utf-8' codec" in fault_of(write(tmp_path, "latin.md", GOOD.encode() + b"\xff")).message
    big = write(tmp_path, "big.md", GOOD + "x" * MAX_ROLE_FILE_BYTES)
    assert "is over 262144 bytes" in fault_of(big).message
    assert "cannot be read" in fault_of(tmp_path / "missing.md").message
    (tmp_path / "folder.md").mkdir()
    assert "cannot be read" in fault_of(tmp_path / "folder.md").message


def test_a_role_is_read_as_it_stands(tmp_path: Path) -> None:
    """Name, description, tools in order, model, limits, prompt; what is left out has its usual value."""
    role = load_role(write(tmp_path, "reader.md", GOOD))
    assert (role.name, role.description, role.tools, role.prompt) == ("reader", "Reads.", ("read_file",), "You read.")
    assert (role.model, role.limits.max_steps) == ("balanced", 25)
    full = GOOD.replace("tools: [read_file]", "tools: [b, a]\nmodel: anthropic:claude-x\nlimits:\n  max_steps: 7")
    role = load_role(write(tmp_path, "full.md", full + "\n---\nA rule in the prompt stays.\n"))
    assert (role.tools, role.model, role.limits.max_steps) == (("b", "a"), "anthropic:claude-x", 7)
    assert role.prompt == "You read.\n\n---\nA rule in the prompt stays."
    assert role.digest != load_role(tmp_path / "reader.md").digest


@pytest.mark.parametrize(
    ("model", "prompt"),
    [
        ("openai:some-qwen3-30b", "You read.\n\nOne language."),
        ("openai:QWEN-GPT-2", "You read.\n\nOne language.\n\nAct."),
        ("anthropic:claude-x", "You read."),
    ],
)
def test_guidance_is_for_the_models_that_it_names(tmp_path: Path, model: str, prompt: str) -> None:
    """Each pattern that a model's name matches adds its text, in the order of the file; other models get the prompt."""
    guidance = 'guidance: {"*qwen*, *llama*": " One language.\\n", "*gpt-*": Act.}\ntools:'
    assert load_role(write(tmp_path, "reader.md", GOOD.replace("tools:", guidance))).prompt_for(model) == prompt


def test_files_written_on_other_systems_are_read(tmp_path: Path) -> None:
    """A byte order mark and Windows line ends make no difference."""
    plain = load_role(write(tmp_path, "reader.md", GOOD))
    odd = load_role(write(tmp_path, "odd.md", b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()))
    assert odd.model_copy(update={"path": plain.path}) == plain


def test_later_folders_replace_roles_by_name(tmp_path: Path) -> None:
    """A user's file wins over a built-in one whatever it is called; the role that leads comes first."""
    first, second = tmp_path / "built-in", tmp_path / "own"
    first.mkdir()
    second.mkdir()
    for name in ("writer", "chief", "reader"):
        leads = "\nleads: true" if name == "chief" else ""
        write(first, f"{name}.md", GOOD.replace("name: reader", f"name: {name}{leads}"))
    write(second, "my_writer.md", GOOD.replace("name: reader", "name: writer").replace("You read.", "You write."))
    write(second, "notes.txt", "not a role")
    roles = PromptLoader([first, second]).roles()
    assert list(roles) == ["chief", "reader", "writer"]
    assert roles["writer"].prompt == "You write."
    assert roles["reader"].prompt == "You read."


@pytest.mark.parametrize(
    ("name", "more", "writers"),
    [
        ("chronicler", "writes_report: true\n", {"writer", "chronicler"}),
        ("chronicler", "", {"writer"}),
        ("writer", "", {"writer"}),
        ("writer", "writes_report: false\n", set[str]()),
        ("orchestrator", "writes_report: true\n", {"writer"}),
    ],
)
def test_a_role_file_says_who_writes_the_report(tmp_path: Path, name: str, more: str, writers: set[str]) -> None:
    """By a field; without it a role is what the one was that it replaces, as in files that are older than the field."""
    write(tmp_path, f"{name}.md", GOOD.replace("name: reader\n", f"name: {name}\n{more}"))
    assert report_writers(PromptLoader([built_in_roles(), tmp_path]).roles()) == writers


def test_folders_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    """No folder, and none or two that lead."""
    with pytest.raises(ConfigError, match="nowhere is not a folder of role files"):
        PromptLoader([tmp_path / "nowhere"]).roles()
    write(tmp_path, "reader.md", GOOD)
    with pytest.raises(ConfigError, match="no role leads the run"):
        PromptLoader([tmp_path]).roles()
    for name in ("a", "b"):
        write(tmp_path, f"{name}.md", GOOD.replace("name: reader", f"name: {name}\nleads: true"))
    with pytest.raises(ConfigError, match=r"two roles lead the run: .*/a\.md and .*/b\.md"):
        PromptLoader([tmp_path]).roles()


@pytest.mark.parametrize(
    ("name", "more", "lead"),
    [
        ("orchestrator", "", "orchestrator"),
        ("chief", "leads: true\n", "chief"),
        ("chief", "", "orchestrator"),
        ("writer", "leads: true\n", "writer"),
    ],
)
def test_a_role_file_says_who_leads(tmp_path: Path, name: str, more: str, lead: str) -> None:
    """By a field, whatever the name; who led before is then no role any more, and only one leads."""
    write(tmp_path, f"{name}.md", GOOD.replace("name: reader\n", f"name: {name}\n{more}"))
    roles = PromptLoader([built_in_roles(), tmp_path]).roles()
    assert [role.name for role in roles.values() if role.leads] == [lead]
    assert next(iter(roles)) == leading_role(roles).name == lead
    assert ("orchestrator" in roles) == (lead == "orchestrator")


def test_nobody_leads_when_the_file_says_so(tmp_path: Path) -> None:
    """Taken from the built-in role and given to no other: said before anything is started."""
    write(tmp_path, "orchestrator.md", GOOD.replace("name: reader\n", "name: orchestrator\nleads: false\n"))
    with pytest.raises(ConfigError, match="no role leads the run"):
        PromptLoader([built_in_roles(), tmp_path]).roles()


def test_the_built_in_roles_load() -> None:
    """They are where the engine looks for them, the orchestrator first, its helpers with it."""
    roles = PromptLoader([built_in_roles()]).roles()
    assert next(iter(roles)) == "orchestrator"
    assert {"searcher", "analyzer", "writer"} <= set(roles)
