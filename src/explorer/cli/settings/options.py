"""The flags, as plain dataclasses; what a setting's flag is called and says comes from the setting."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from explorer.cli.settings.values import CORE
from explorer.schema.setting import Group as Heading

OutputFormat = Literal["text", "json", "stream-json"]

GROUPS = {
    Heading.MODELS: Group("Models and roles", sort_key=2),
    Heading.LIMITS: Group('Limits per question ("none" removes one)', sort_key=3),
    Heading.PLANS: Group("Plans", sort_key=4),
    Heading.FILES: Group("Input and output", sort_key=5),
}
MODELS, LIMITS, INPUT_OUTPUT = GROUPS[Heading.MODELS], GROUPS[Heading.LIMITS], GROUPS[Heading.FILES]
FLAGS = {flag.name: (setting, flag) for setting in CORE for flag in setting.flags}


def flag_of(name: str) -> Parameter:
    """Return the flag that a setting declares."""
    setting, flag = FLAGS[name]
    is_switch = bool(flag.value)
    words = (flag.help if is_switch else setting.help, flag.note)
    return Parameter(
        name=name,
        metavar=flag.metavar or None,
        group=GROUPS[setting.group],
        help="".join(f"{text}. " for text in words if text).rstrip(),
    )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """Flags of every command."""

    workspace: Annotated[str | None, flag_of("--workspace")] = None
    preset: Annotated[
        str | None,
        Parameter(
            name="--preset",
            metavar="NAME",
            group=MODELS,
            help="A whole explorer as a configuration: see `explorer presets list`. Or its folder, with a slash.",
        ),
    ] = None
    roles: Annotated[tuple[str, ...], flag_of("--roles")] = ()
    skills: Annotated[str | None, flag_of("--skills")] = None
    tools: Annotated[
        tuple[str, ...],
        Parameter(
            name="--tools",
            metavar="FILE.py",
            group=MODELS,
            help="A Python file with tools of your own; it runs as you. Repeatable.",
        ),
    ] = ()
    approval: Annotated[tuple[str, ...], flag_of("--approval")] = ()
    output_format: Annotated[
        OutputFormat,
        Parameter(
            name="--output-format",
            metavar="FORMAT",
            show_choices=False,
            group=INPUT_OUTPUT,
            help="Format of stdout: text, json, or stream-json (one record per line).",
        ),
    ] = "text"
    trust: Annotated[
        bool,
        Parameter(
            name="--trust",
            group=INPUT_OUTPUT,
            help="Trust this folder as its files and skills are now; remembered until one changes.",
        ),
    ] = False
    trust_folder: Annotated[
        bool,
        Parameter(
            name="--trust-folder",
            group=INPUT_OUTPUT,
            help="Take all settings of this folder's files, for this command.",
        ),
    ] = False
    ignore_folder: Annotated[
        bool,
        Parameter(
            name="--ignore-folder",
            group=INPUT_OUTPUT,
            help="Leave out settings of this folder's files that need trust.",
        ),
    ] = False
    verbose: Annotated[
        int,
        Parameter(
            name=["--verbose", "-v"],
            count=True,
            group=INPUT_OUTPUT,
            help="Log to stderr; -vv: everything, with tracebacks.",
        ),
    ] = 0
    quiet: Annotated[
        bool, Parameter(name=["--quiet", "-q"], group=INPUT_OUTPUT, help="Print only errors to stderr.")
    ] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ModelOptions(CommonOptions):
    """Flags of the commands that choose models."""

    model: Annotated[tuple[str, ...], flag_of("--model")] = ()
    effort: Annotated[tuple[str, ...], flag_of("--effort")] = ()
    lean: Annotated[bool, flag_of("--lean")] = False
    no_lean: Annotated[bool, flag_of("--no-lean")] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class QuestionOptions(ModelOptions):
    """Flags of a question, whether it is explored here or by a worker of a fleet."""

    max_steps: Annotated[str | None, flag_of("--max-steps")] = None
    max_cost: Annotated[str | None, flag_of("--max-cost")] = None
    max_tokens: Annotated[str | None, flag_of("--max-tokens")] = None
    max_tool_calls: Annotated[str | None, flag_of("--max-tool-calls")] = None
    max_time: Annotated[str | None, flag_of("--max-time")] = None
    max_outage: Annotated[str | None, flag_of("--max-outage")] = None
    max_agents: Annotated[str | None, flag_of("--max-agents")] = None
    plan: Annotated[str | None, flag_of("--plan")] = None
    initial_queries: Annotated[str | None, flag_of("--initial-queries")] = None
    max_rounds: Annotated[str | None, flag_of("--max-rounds")] = None
    reflect: Annotated[bool, flag_of("--reflect")] = False
    lang: Annotated[str | None, flag_of("--lang")] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions(QuestionOptions):
    """Flags of the commands that run something."""

    judge: Annotated[str | None, flag_of("--judge")] = None
    no_shell: Annotated[bool, flag_of("--no-shell")] = False
    unsafe_shell: Annotated[bool, flag_of("--unsafe-shell")] = False
    output: Annotated[
        str | None,
        Parameter(
            name=["--output", "-o"],
            metavar="FILE",
            group=INPUT_OUTPUT,
            help="Also write the report to FILE: .md, .html, .pdf, .docx, .json.",
        ),
    ] = None
    notify: Annotated[
        tuple[str, ...],
        Parameter(
            name="--notify",
            metavar="TARGET",
            group=INPUT_OUTPUT,
            help="Say when the run ends: desktop, or a URL that gets a webhook; repeatable.",
        ),
    ] = ()
    overwrite: Annotated[
        bool, Parameter(name="--overwrite", group=INPUT_OUTPUT, help="Let -o replace a file that exists.")
    ] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class GivenOptions(RunOptions):
    """Flags of the commands that start runs about what the user gives them."""

    files: Annotated[
        tuple[str, ...],
        Parameter(
            name="--file",
            metavar="PATH",
            group=INPUT_OUTPUT,
            help="A file the question is about: text, HTML, PDF, Office, EPUB; repeatable.",
        ),
    ] = ()
    corpus: Annotated[str | None, flag_of("--corpus")] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AskOptions(GivenOptions):
    """Flags of a question."""

    since_run: Annotated[
        str | None,
        Parameter(
            name="--since-run", metavar="RUN", group=INPUT_OUTPUT, help="Report what is new since an earlier run."
        ),
    ] = None
    go_on: Annotated[
        bool,
        Parameter(
            name=["--continue", "-c"], group=INPUT_OUTPUT, help="Continue the latest run with a follow-up question."
        ),
    ] = False
    dry_run: Annotated[
        bool,
        Parameter(
            name="--dry-run", group=LIMITS, help="Print models, limits and worst-case cost only; no model is asked."
        ),
    ] = False
    is_literal: Annotated[bool, Parameter(name="--literal", show=False)] = False
    """The words stood behind `--`: they are a question, whatever they look like."""
    from_stdin: Annotated[bool, Parameter(name="--stdin", show=False)] = False
    """The question was `-`."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class McpServeOptions(RunOptions):
    """Flags of the MCP server."""

    corpus: Annotated[str | None, flag_of("--corpus")] = None
    http: Annotated[bool, Parameter(name="--http", help="Serve HTTP on 127.0.0.1, with a token, instead of stdio.")] = (
        False
    )
    port: Annotated[int, Parameter(name="--port", metavar="N", help="Port of --http; 0: a free one.")] = 8765
    max_runs: Annotated[int, Parameter(name="--max-runs", metavar="N", help="Runs at work at the same time.")] = 2
    max_total_cost: Annotated[
        str,
        Parameter(
            name="--max-total-cost",
            metavar="USD",
            help="Maximum cost of a day's runs by all servers of this workspace; `none`: each run has its own limit.",
        ),
    ] = "none"
    approval_wait: Annotated[
        str,
        Parameter(
            name="--approval-wait",
            metavar="TIME",
            help="How long a call that an approval rule asks about waits for the client's user; 0: it is refused.",
        ),
    ] = "10m"


COMMON = CommonOptions()
MODEL = ModelOptions()
RUN = RunOptions()
GIVEN = GivenOptions()
ASK = AskOptions()


def wanted_format(tokens: list[str]) -> OutputFormat:
    """Return the output format asked for, read from the bare tokens: errors of the parser itself obey it too."""
    flags = tokens[: tokens.index("--")] if "--" in tokens else tokens
    values = [value for name, value in pairwise(flags) if name == "--output-format"]
    values += [token.partition("=")[2] for token in flags if token.startswith("--output-format=")]
    if "stream-json" in values:
        return "stream-json"
    return "json" if "json" in values else "text"


MCP_SERVE = McpServeOptions()
