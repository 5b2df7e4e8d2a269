"""The tool that loads a skill: its method, and the files of it that the method names.

Skills are built in, the user's own, or in a folder that the user trusts, so their text needs no fence. What an agent
read of them is a result like any other: a resumed run has it, whatever happened to the files since.
"""

import asyncio
from collections.abc import Iterator

from pydantic import Field

from explorer.schema.errors import ToolError
from explorer.schema.tool import Arguments, Tool, ToolContext, ToolResult
from explorer.skills.catalog import SkillCatalog
from explorer.skills.skill import Skill
from explorer.skills.tree import SKILL_FILE, UnusableSkillError
from explorer.text.rendering import NOTHING, ModelText, by_user, codes, inline, own, render
from explorer.text.sanitize import visible
from explorer.workspace.access import is_path
from explorer.workspace.workspace import Workspace

PAGE_CHARS = 36_000
"""Limit of one result: a longer one would be cut in its middle."""
COPIES = ".explorer/skills"
"""Where commands find the files of a loaded skill, in the run's folder: they can read it and not write it."""
MAX_NAMED = 60


class LoadSkillArguments(Arguments):
    """Arguments of `load_skill`."""

    name: str
    file: str = Field(default="", description="A file that the skill names, such as references/sites.md")
    start_line: int = Field(default=1, ge=1, description="In a long file")


class LoadSkillTool(Tool[LoadSkillArguments]):
    """`load_skill`: loads a skill, or a file of one."""

    name = "load_skill"
    description = "Load a skill by its name, to work by it; with file, read one of its files."
    arguments = LoadSkillArguments
    activity = "loading the skill {name}"
    is_for_report = True
    pages_itself = True

    def __init__(self, catalog: SkillCatalog, workspace: Workspace, *, has_shell: bool) -> None:
        self._catalog = catalog
        self._workspace = workspace
        self._has_shell = has_shell

    async def execute(self, arguments: LoadSkillArguments, context: ToolContext) -> ToolResult:
        """Return the skill, or a page of one of its files."""
        skill = self._catalog.skills.get(arguments.name)
        if skill is None:
            known = codes(self._catalog.skills) or own("none")
            raise ToolError.of("there is no skill {name}; there are: {known}", name=arguments.name, known=known)
        path = arguments.file.strip().removeprefix("./")
        try:
            if path in {"", SKILL_FILE}:
                content = await asyncio.to_thread(self._whole, skill)
            else:
                content = await asyncio.to_thread(_page, skill, path, arguments.start_line)
        except UnusableSkillError as error:
            raise ToolError.of("{why}", why=str(error)) from error
        loaded = skill.name if path in {"", SKILL_FILE} else f"{skill.name}/{path}"
        facts = {"skill": loaded, "origin": str(skill.origin), "sha256": skill.files.get(path or SKILL_FILE, "")}
        return ToolResult(success=True, content=content, metadata=facts)

    def _whole(self, skill: Skill) -> ModelText:
        """Return the method, and which files belong to it."""
        head = own("# Skill {name}: work by it.", name=by_user(skill.name))
        return render(head, by_user(skill.body), *self._files(skill), between="\n\n")

    def _files(self, skill: Skill) -> Iterator[ModelText]:
        if not skill.others:
            return
        names = render(*map(inline, skill.others[:MAX_NAMED]), between=", ")
        yield own("Its files, for load_skill with file: {names}.", names=names)
        if not self._has_shell:
            yield own("This run has no shell, so no script of it can be run: do that part in another way, and say so.")
            return
        for path in skill.others:
            content, copy = skill.read(path), f"{COPIES}/{skill.name}/{path}"
            if b"\0" not in content and is_path(copy):
                self._workspace.write_own(copy, content.decode("utf-8", "replace"))
        place = own("{copies}/{name}/", copies=by_user(COPIES), name=by_user(skill.name))
        yield own("For commands of agents with execute_shell, they are in {place}, which is read-only.", place=place)


def _page(skill: Skill, path: str, start_line: int) -> ModelText:
    """Return lines of a text file of a skill, as many as fit.

    Raises:
        ToolError: There is no such file or line, or it is no text.
    """
    if path not in skill.files:
        names = render(*map(inline, skill.others[:MAX_NAMED]), between=", ") or own("none")
        raise ToolError.of("the skill has no file {path}; it has: {names}", path=path, names=names)
    try:
        lines = visible(skill.read(path).decode()).splitlines(keepends=True)
    except UnicodeDecodeError as error:
        raise ToolError.of("{path} is not text", path=path) from error
    if start_line > max(1, len(lines)):
        raise ToolError.of("{path} has {count} lines", path=path, count=len(lines))
    shown, size = list[str](), 0
    for line in lines[start_line - 1 :]:
        size += len(line)
        if size > PAGE_CHARS and shown:
            break
        shown.append(line[:PAGE_CHARS])
    following = start_line + len(shown)
    rest = own("({count} more lines: start_line={next})", count=len(lines) - following + 1, next=following)
    return render(by_user("".join(shown).strip("\n")), rest if following <= len(lines) else NOTHING) or own("(empty)")
