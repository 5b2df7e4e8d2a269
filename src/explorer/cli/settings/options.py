"""The flags, as plain dataclasses: nothing here is slow to import."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

from cyclopts import Group, Parameter

OutputFormat = Literal["text", "json", "stream-json"]

MODELS = Group("Models and roles", sort_key=2)
LIMITS = Group('Limits ("none" lifts one)', sort_key=3)
INPUT_OUTPUT = Group("Input and output", sort_key=4)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """Flags of every command."""

    workspace: Annotated[
        str | None, Parameter(name="--workspace", group=INPUT_OUTPUT, help="The folder that holds the runs.")
    ] = None
    roles: Annotated[
        str | None,
        Parameter(name="--roles", group=MODELS, help="Your own role files, over the built-in ones."),
    ] = None
    output_format: Annotated[
        OutputFormat, Parameter(name="--output-format", group=INPUT_OUTPUT, help="What stdout carries.")
    ] = "text"
    verbose: Annotated[
        int,
        Parameter(
            name=["--verbose", "-v"],
            count=True,
            negative="",
            show_default=False,
            group=INPUT_OUTPUT,
            help="Log to stderr; twice: everything, with tracebacks.",
        ),
    ] = 0
    quiet: Annotated[
        bool,
        Parameter(
            name=["--quiet", "-q"],
            negative="",
            show_default=False,
            group=INPUT_OUTPUT,
            help="Nothing on stderr but errors.",
        ),
    ] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ModelOptions(CommonOptions):
    """Flags of the commands that choose models."""

    model: Annotated[
        tuple[str, ...],
        Parameter(
            name="--model",
            negative="",
            show_default=False,
            group=MODELS,
            help="For all roles, or `searcher=NAME` for one; repeatable. "
            "auto, offline, anthropic:NAME, openai:NAME, or a bare NAME.",
        ),
    ] = ()
    effort: Annotated[
        tuple[str, ...],
        Parameter(
            name="--effort",
            negative="",
            show_default=False,
            group=MODELS,
            help="How much models reason: none, minimal, low, medium, high, xhigh or max, or "
            "`writer=high` for one role; repeatable. Otherwise as the vendor has it.",
        ),
    ] = ()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions(ModelOptions):
    """Flags of the commands that run something."""

    max_steps: Annotated[
        str | None,
        Parameter(name="--max-steps", group=LIMITS, help="Model turns of all agents together."),
    ] = None
    max_cost: Annotated[
        str | None,
        Parameter(name="--max-cost", group=LIMITS, help="US dollars of all agents together."),
    ] = None
    max_tokens: Annotated[
        str | None, Parameter(name="--max-tokens", group=LIMITS, help="Input and output tokens of all agents together.")
    ] = None
    max_tool_calls: Annotated[
        str | None, Parameter(name="--max-tool-calls", group=LIMITS, help="Tool calls of all agents together.")
    ] = None
    max_time: Annotated[
        str | None, Parameter(name="--max-time", group=LIMITS, help="Wall-clock time: 90, 90s, 10m, 2h.")
    ] = None
    max_outage: Annotated[
        str | None,
        Parameter(
            name="--max-outage",
            group=LIMITS,
            help="How long a model that stopped answering is waited for: 90, 90s, 10m, 2h.",
        ),
    ] = None
    max_agents: Annotated[str | None, Parameter(name="--max-agents", group=LIMITS, help="Helpers a run may start.")] = (
        None
    )
    judge: Annotated[
        str | None,
        Parameter(name="--judge", group=MODELS, help="A model that judges whether sources carry the cited sentences."),
    ] = None
    no_shell: Annotated[
        bool,
        Parameter(
            name="--no-shell", negative="", show_default=False, group=MODELS, help="Agents cannot run commands at all."
        ),
    ] = False
    unsafe_shell: Annotated[
        bool,
        Parameter(
            name="--unsafe-shell",
            negative="",
            show_default=False,
            group=MODELS,
            help="Agents run commands without a sandbox, as you: the report says so.",
        ),
    ] = False
    lang: Annotated[
        str | None,
        Parameter(name="--lang", group=INPUT_OUTPUT, help="Language of the report; otherwise the question's."),
    ] = None
    output: Annotated[
        str | None,
        Parameter(
            name=["--output", "-o"],
            group=INPUT_OUTPUT,
            help="Also write the report to this file: .md, .markdown, .txt.",
        ),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AskOptions(RunOptions):
    """Flags of a question."""

    files: Annotated[
        tuple[str, ...],
        Parameter(
            name="--file",
            negative="",
            show_default=False,
            group=INPUT_OUTPUT,
            help="A file the question is about: text, HTML, PDF; repeatable.",
        ),
    ] = ()
    corpus: Annotated[
        str | None,
        Parameter(name="--corpus", group=INPUT_OUTPUT, help="A folder of your own to search: text, HTML, PDF."),
    ] = None
    since_run: Annotated[
        str | None,
        Parameter(name="--since-run", group=INPUT_OUTPUT, help="An earlier run: report what is new since then."),
    ] = None
    go_on: Annotated[
        bool,
        Parameter(
            name=["--continue", "-c"],
            negative="",
            show_default=False,
            group=INPUT_OUTPUT,
            help="Go on with the latest run; the words are a follow-up.",
        ),
    ] = False
    dry_run: Annotated[
        bool,
        Parameter(
            name="--dry-run",
            negative="",
            show_default=False,
            group=LIMITS,
            help="Only tell models, limits and the most it can cost; asks no model.",
        ),
    ] = False
    is_literal: Annotated[bool, Parameter(name="--literal", negative="", show=False)] = False
    """The words stood behind `--`: they are a question, whatever they look like."""
    from_stdin: Annotated[bool, Parameter(name="--stdin", negative="", show=False)] = False
    """The question was `-`."""


COMMON = CommonOptions()
MODEL = ModelOptions()
RUN = RunOptions()
ASK = AskOptions()


def wanted_format(tokens: list[str]) -> OutputFormat:
    """The output format asked for, read from the bare tokens: errors of the parser itself obey it too."""
    flags = tokens[: tokens.index("--")] if "--" in tokens else tokens
    values = [value for name, value in pairwise(flags) if name == "--output-format"]
    values += [token.partition("=")[2] for token in flags if token.startswith("--output-format=")]
    if "stream-json" in values:
        return "stream-json"
    return "json" if "json" in values else "text"
