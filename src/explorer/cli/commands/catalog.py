"""The commands `tools`, `agents` and `models`, and what a team is checked for before it starts.

Files that the user names with `--tools` are code that runs with the user's rights.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from explorer.agents.call_agent import CallAgentArguments, CallAgentTool
from explorer.agents.roles import Role, check_defaults, check_roles, helper_lines, helpers_in, with_offered
from explorer.cli.commands.library import library_of
from explorer.cli.commands.window_check import window_words
from explorer.cli.screens.output import aligned, emit_json, emit_page, say
from explorer.cli.screens.session_lines import NO_MODEL, OFFLINE
from explorer.cli.settings.configuration import Configuration, configured, passed_over
from explorer.cli.settings.options import COMMON, MODEL, CommonOptions, ModelOptions
from explorer.cli.typo import closest
from explorer.observe.formatting import counted, first_sentence, one_line
from explorer.run.connectors import Connectors, left_out
from explorer.run.extensions import OWN, Point, installed_extensions, tools_in_file
from explorer.run.mcp_session import mcp_names, used_servers
from explorer.run.model_facts import known_window, window_of
from explorer.run.resources import absent_shell, choose_shell
from explorer.run.settings_parts import skill_folders
from explorer.run.team import choose_team, effort_of, load_roles
from explorer.sandbox.confinement import SandboxSpec
from explorer.sandbox.jobs import Jobs
from explorer.sandbox.shell import Shell
from explorer.schema.approvals import ApprovalRules
from explorer.schema.errors import ConfigError, ToolError
from explorer.schema.mcp import server_of
from explorer.schema.settings import Settings
from explorer.schema.tool import Tool, ToolResult
from explorer.skills.catalog import SkillCatalog, find_skills
from explorer.tools.files import file_tools
from explorer.tools.finish import FinishTool
from explorer.tools.library import LibraryAccess, Past, SearchRunsTool, library_tools
from explorer.tools.shell import shell_tools
from explorer.tools.skills import LoadSkillTool
from explorer.tools.sources import ListSourcesTool, ReadSourceTool
from explorer.workspace.workspace import Workspace


def named_tools(options: CommonOptions, settings: Settings) -> list[Tool[Any]]:
    """Return the tools of the files that the command line names; no setting and no run can name one.

    Raises:
        ConfigError: A file cannot be used, or is where agents write or where what is explored lies.
    """
    paths = [Path(name).expanduser() for name in options.tools]
    for path in paths:
        _check_place(path, settings)
    return [tool for path in paths for tool in tools_in_file(path)]


def _check_place(path: Path, settings: Settings) -> None:
    for what, folder in (
        ("the workspace, where agents write", settings.workspace),
        ("the library of reports, where agents write", settings.reports_dir),
        ("the folder that is explored", settings.corpus),
    ):
        if folder is not None and path.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(f"{path} is in {what}, so it is not run", hint=f"move it out of {folder}")


LEADS, WRITES_REPORT = "leads the run", "writes the report"


def tools(*, options: CommonOptions = COMMON) -> int:
    """List what agents can do, and which roles may do it; also what the configured MCP servers offer now."""
    from explorer.cli.commands.mcp_look import seen_servers, server_facts, server_rows  # noqa: PLC0415 - slow to import

    settings = configured(options, passed_over).settings
    own = named_tools(options, settings)
    further = (*installed_extensions().installed_tools, *own)
    roles = with_offered(load_roles(settings), [tool.name for tool in further])
    offered, absent = asyncio.run(all_tools(settings, roles, own))
    origins = {tool.name: installed_extensions().origin_of(tool.name) for tool in offered}
    origins |= {tool.name: "--tools" for tool in own}
    rows = [(tool, [name for name, role in roles.items() if tool.name in role.tools]) for tool in offered]
    servers = seen_servers(settings, roles)
    remote = {tool.frozen.name for one in servers for tool in one.tools} | mcp_names(roles)
    rules = checked_rules(settings, offered, {*absent, *remote})
    if options.output_format == "text":
        cells = [
            (tool.name, ", ".join(allowed) or "-", f"{first_sentence(tool.description)}{_from(origins[tool.name])}")
            for tool, allowed in rows
        ]
        cells += [(name, "-", f"Not there: {reason}") for name, reason in absent.items()]
        names = [*(tool.name for tool in offered), *sorted(remote)]
        emit_page("\n\n".join(_tables(cells, server_rows(servers), rules, names)))
        return 0
    facts: list[dict[str, object]] = [
        {
            **tool.schema().model_dump(),
            "effect": tool.effect,
            "approval": rules.concerning(tool.name),
            "roles": names,
            "origin": origins[tool.name],
        }
        for tool, names in rows
    ]
    emit_json([*facts, *server_facts(servers, rules)])
    for one in servers:
        if one.problem and not options.quiet:
            say(f"MCP server {one.server.name} left out: {one_line(one.problem)}")
    return 0


def _tables(
    cells: Sequence[Sequence[str]], remote: Sequence[Sequence[str]], rules: ApprovalRules, names: Sequence[str]
) -> Iterator[str]:
    """Yield the tables of the page of tools: explorer's, those of MCP servers, and the rules for any of them."""
    yield aligned(("TOOL", "ROLES", "WHAT IT DOES"), cells)
    if remote:
        yield aligned(("TOOL", "EFFECT", "SERVER", "ROLES", "WHAT IT DOES"), remote)
    if ruled := [(name, "; ".join(texts)) for name in names if (texts := rules.concerning(name))]:
        yield aligned(("TOOL", "APPROVAL: THE FIRST RULE THAT FITS"), ruled)


def agents(*, options: CommonOptions = COMMON) -> int:
    """List the roles: what each is for, its model, tools and limits, and the file it comes from."""
    configuration = configured(options, passed_over)
    origins = [(role, _origin(role, configuration)) for role in load_roles(configuration.settings).values()]
    if options.output_format == "text":
        emit_page("\n\n".join(_role_page(role, origin) for role, origin in origins))
    else:
        emit_json([_role_facts(role, origin) for role, origin in origins])
    return 0


def _role_facts(role: Role, origin: str) -> dict[str, object]:
    result = role.result.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"kind"})
    return {**role.model_dump(mode="json", exclude={"prompt"}), "result": result, "origin": origin}


def _origin(role: Role, configuration: Configuration) -> str:
    """Return where a role comes from: explorer, an installed package, or the place that names the user's folder."""
    folders = installed_extensions().of(Point.ROLES)
    own = (one.origin for one in folders if role.path.is_relative_to(one.value))
    preset = configuration.settings.preset
    if preset is not None and role.path.is_relative_to(preset.place):
        return f"preset {preset.name}"
    return next(own, configuration.origin("roles_dir"))


def models(*, options: ModelOptions = MODEL) -> int:
    """Show which model each role would use now, and why. Local servers are queried; nothing is paid."""
    settings = configured(options, passed_over).settings
    roles, choice, lean = asyncio.run(choose_team(settings))
    if options.output_format == "text":
        rows = [
            (
                name,
                str(choice.models[name]),
                role.model,
                effort_of(settings, role) or "-",
                window_words(choice.models[name], settings),
            )
            for name, role in roles.items()
        ]
        is_offline = any(ref.provider == OFFLINE for ref in choice.models.values())
        remark = f"\n{NO_MODEL}" if is_offline else f"\nlean mode: {one_line(lean)}" if lean else ""
        heads = ("ROLE", "MODEL", "ASKS FOR", "EFFORT", "WINDOW")
        emit_page(f"{aligned(heads, rows)}\n\n{one_line(choice.why)}{remark}")
    else:
        efforts = {name: effort for name, role in roles.items() if (effort := effort_of(settings, role))}
        models = {name: str(ref) for name, ref in choice.models.items()}
        windows = {
            str(ref): {"tokens": window_of(ref, settings), "is_known": known_window(ref, settings) is not None}
            for ref in choice.models.values()
        }
        emit_json({"models": models, "efforts": efforts, "windows": windows, "why": choice.why, "lean": lean})
    return 0


def check_team(settings: Settings, own: Sequence[Tool[Any]] = ()) -> None:
    """Check that the roles can be used, before anything is started.

    Raises:
        ConfigError: A role file cannot be, or names a tool that is not there.
    """
    roles = load_roles(settings)
    offered, absent = asyncio.run(all_tools(settings, roles, own))
    own_names = {tool.name for tool in offered}
    _check_needs(settings, own_names, absent)
    _check_skills(settings)
    used_servers(roles, settings.mcp)
    names = {*own_names, *mcp_names(roles)}
    check_roles(roles, {*names, *absent}, settings.max_depth)
    check_defaults(roles, offered)
    checked_rules(settings, offered, {*absent, *names})


def check_rules(settings: Settings, own: Sequence[Tool[Any]] = ()) -> None:
    """Check that the approval rules can be used, for a run that has its roles already.

    Raises:
        ConfigError: One cannot be.
    """
    roles = load_roles(settings)
    offered, absent = asyncio.run(all_tools(settings, roles, own))
    checked_rules(settings, offered, {*absent, *mcp_names(roles)})


def checked_rules(settings: Settings, offered: Sequence[Tool], absent: Collection[str]) -> ApprovalRules:
    """Return the approval rules; a mistyped one would be none.

    Raises:
        ConfigError: A rule has almost the name of a tool, or names an argument that its tool does not have.
    """
    rules = ApprovalRules.of(settings.approval_rules, settings.tightening_rules)
    tools = {tool.name: tool for tool in offered}
    for rule in (*rules.rules, *rules.tightening):
        known = tools.get(rule.tool)
        near = "" if known or rule.tool in absent or "*" in rule.tool else closest(rule.tool, [*tools, *absent], 3)
        if near:
            raise ConfigError(
                f"approval rule `{one_line(rule.text)}`: there is no tool {rule.tool}",
                hint=f"did you mean {near}? All tools: explorer tools",
            )
        names = list(known.parameters["properties"]) if known else []
        if known and rule.argument and rule.argument not in names:
            raise ConfigError(
                f"approval rule `{one_line(rule.text)}`: {rule.tool} has no argument {rule.argument}",
                hint=f"its arguments: {', '.join(names)}",
            )
    return rules


def _check_needs(settings: Settings, offered: Collection[str], absent: Mapping[str, str]) -> None:
    """Check that the tools are there without which a preset cannot work; of a server's, that the server is configured.

    Raises:
        ConfigError: One is not; the hint is the command that provides it.
    """
    preset = settings.preset
    if preset is None:
        return
    for tool, command in preset.needs.items():
        server = server_of(tool)
        if server not in settings.mcp if server else tool not in offered:
            why = f": {absent[tool]}" if absent.get(tool) else ""
            raise ConfigError(f"the preset {preset.name} needs the tool {tool}, which is not there{why}", hint=command)


def _check_skills(settings: Settings) -> None:
    """Check that the skills are there that a preset's prompts name.

    Raises:
        ConfigError: One is not.
    """
    preset = settings.preset
    if preset is None or not preset.needed_skills:
        return
    there = find_skills(skill_folders(settings)).skills
    for name in preset.needed_skills:
        if name not in there:
            message = f"the preset {preset.name} needs the skill {name!r}, which is not there"
            raise ConfigError(message, hint=f"explorer skills list; to write it: explorer skills new {name}")


def _from(origin: str) -> str:
    """Return where a tool comes from, if it is none of explorer's own."""
    return "" if origin == OWN else f" ({origin})"


def _role_page(role: Role, origin: str) -> str:
    parts = [words for is_so, words in ((role.leads, LEADS), (role.writes_report, WRITES_REPORT)) if is_so]
    rows = [
        *([("part", " and ".join(parts))] if parts else []),
        ("model", role.model),
        *([("effort", role.effort)] if role.effort else []),
        *(
            ("adds", f"{counted(len(text), 'character')} for models like {one_line(models)}")
            for models, text in role.guidance.items()
        ),
        ("limit", counted(role.limits.max_steps, "step")),
        ("tools", ", ".join(role.tools)),
        *([("calls", ", ".join(role.helpers))] if role.helpers else []),
        *([("result", ", ".join(role.result.properties))] if role.result.properties else []),
        ("file", str(role.path)),
        *([("origin", origin)] if origin != OWN else []),
    ]
    return "\n".join([role.name, f"  {one_line(role.description)}", *(f"  {name:<7}{text}" for name, text in rows)])


async def all_tools(
    settings: Settings, roles: Mapping[str, Role], own: Sequence[Tool[Any]] = ()
) -> tuple[list[Tool], dict[str, str]]:
    """Return every tool, made to be looked at: none is ever run; and those that are not there, with the reason."""
    async with Connectors.open(settings) as connectors:
        library = library_of(settings)
        offered = [
            CallAgentTool(_no_help, helper_lines(helpers_in(roles))),
            *file_tools(Workspace(Path())),
            ListSourcesTool(Workspace(Path()), dict),
            ReadSourceTool(Workspace(Path()), dict),
            *connectors.tools(),
            *library_tools(LibraryAccess(library, "", dict)),
            SearchRunsTool(Past(settings.workspace, "", library)),
            LoadSkillTool(SkillCatalog(), Workspace(Path()), has_shell=False),
            FinishTool(_no_problem),
            *connectors.installed_tools(),
            *own,
        ]
        absent = {**left_out({tool.name for tool in offered}), **connectors.absent}
    sandbox = await choose_shell(settings)
    if sandbox.confinement is None:
        return offered, {**absent, **absent_shell(sandbox)}
    shell = Shell(sandbox.confinement, SandboxSpec(Path()))
    return [*offered, *shell_tools(shell, Jobs(shell), Workspace(Path()))], absent


async def _no_help(asked: CallAgentArguments, call: str) -> ToolResult:
    raise ToolError(f"{call}: no run, no {asked.agent_type}")


async def _no_problem(_is_empty: bool) -> None:  # noqa: FBT001 - the form of a tool's function
    return None
