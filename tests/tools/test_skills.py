"""`load_skill`: a skill's method, the files of it, and copies for commands."""

from pathlib import Path

import pytest

from explorer.schema.errors import ToolError
from explorer.schema.skill_folder import SkillFolder, SkillOrigin
from explorer.schema.tool import ToolContext
from explorer.skills.catalog import find_skills
from explorer.text.rendering import ModelText
from explorer.tools.skills import PAGE_CHARS, LoadSkillArguments, LoadSkillTool
from explorer.workspace.workspace import Workspace

BODY = "Count the tides. Then run scripts/count.py."


class Stage:
    """A skill with three files, and a run's folder."""

    def __init__(self, folder: Path, *, has_shell: bool = True) -> None:
        self.skill = folder / "skills" / "tides"
        (self.skill / "scripts").mkdir(parents=True)
        (self.skill / "SKILL.md").write_text(f"---\nname: tides\ndescription: Finds tides.\n---\n{BODY}\n")
        (self.skill / "scripts" / "count.py").write_text("print('tides')\n")
        (self.skill / "long.md").write_text("".join(f"line {number} {'x' * 90}\n" for number in range(1, 801)))
        (self.skill / "scripts" / "back\\slash.py").write_text("print(2)\n")
        (self.skill / "picture.png").write_bytes(b"\x89PNG\0\xff")
        run = folder / "run"
        (run / ".explorer").mkdir(parents=True)
        self.workspace = Workspace(run)
        self.catalog = find_skills([SkillFolder(path=folder / "skills", origin=SkillOrigin.USER)])
        self.tool = LoadSkillTool(self.catalog, self.workspace, has_shell=has_shell)

    async def load(self, name: str = "tides", **more: object) -> ModelText:
        """What the model reads."""
        arguments = LoadSkillArguments.model_validate({"name": name, **more})
        result = await self.tool.execute(arguments, ToolContext(self.workspace))
        return result.text


async def test_a_skill_is_read_without_a_fence(tmp_path: Path) -> None:
    """Its text is the user's word, so that an agent may work by it; its files are named."""
    text = await Stage(tmp_path).load()
    assert text.startswith("# Skill tides: work by it.\n\nCount the tides.")
    assert "untrusted" not in text
    assert "<<scripts/count.py>>" in text


async def test_commands_find_copies_that_they_cannot_change(tmp_path: Path) -> None:
    """Text files are in the engine's folder of the run, where agents cannot write; without a shell there are none."""
    stage = Stage(tmp_path)
    assert ".explorer/skills/tides/" in await stage.load()
    assert stage.workspace.read_text(".explorer/skills/tides/scripts/count.py") == "print('tides')\n"
    assert not stage.workspace.exists(".explorer/skills/tides/picture.png")
    with pytest.raises(ToolError, match="engine's own"):
        stage.workspace.write_text(".explorer/skills/tides/scripts/count.py", "import os")
    other = Stage(tmp_path / "other", has_shell=False)
    assert "has no shell" in await other.load()
    assert not other.workspace.exists(".explorer/skills/tides/scripts/count.py")


async def test_a_long_file_is_read_page_by_page(tmp_path: Path) -> None:
    """Each page says where the next one begins, and together they are the file."""
    stage = Stage(tmp_path)
    first = await stage.load(file="./long.md")
    assert len(first) < PAGE_CHARS + 100
    following = int(first.rsplit("start_line=", 1)[1].rstrip(")"))
    second = await stage.load(file="long.md", start_line=following)
    last = await stage.load(file="long.md", start_line=int(second.rsplit("start_line=", 1)[1].rstrip(")")))
    lines = [line for page in (first, second, last) for line in page.split("\n(")[0].splitlines()]
    assert [int(line.split()[1]) for line in lines] == list(range(1, 801))


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("waves", {}, "there is no skill <<waves>>; there are: tides"),
        ("../tides", {}, "there is no skill"),
        ("tides", {"file": "../../run/report.md"}, "no file <<../../run/report.md>>"),
        ("tides", {"file": "/etc/passwd"}, "no file"),
        ("tides", {"file": "picture.png"}, "is not text"),
        ("tides", {"file": "long.md", "start_line": 900}, "has 800 lines"),
    ],
)
async def test_what_is_not_there_is_said(name: str, more: dict[str, object], words: str, tmp_path: Path) -> None:
    """Only the skill's own files are read, by the names that it has."""
    with pytest.raises(ToolError) as refused:
        await Stage(tmp_path).load(name, **more)
    assert words in refused.value.words


async def test_a_file_that_was_changed_is_not_read(tmp_path: Path) -> None:
    """What counts is what was there when the session began."""
    stage = Stage(tmp_path)
    (stage.skill / "long.md").write_text("Obey.")
    with pytest.raises(ToolError, match="changed since this session began"):
        await stage.load(file="long.md")
