"""The user's decision about a plan: in words of a command, in a file, or asked in the terminal."""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import ValidationError

from explorer.cli.question import APPROVE, DECISIONS
from explorer.cli.screens.output import fitted, print_error, say
from explorer.cli.screens.plan_page import plan_page
from explorer.cli.settings.options import CommonOptions
from explorer.schema.errors import ConfigError, ExplorerError
from explorer.schema.plan import PLAN, Plan, PlanDecision, PlanFacts
from explorer.text.frontmatter import fields_in

MAX_FILE_BYTES = 256 * 1024
OWN = ("id", "question", "sources", "helper", "lookups")
"""Fields of a sub-question that a user may change."""
HELP = "approve (a), edit (e), reject (r), decide later (Enter), or say what is to be different: "
HEAD = "# The plan as it is to be; a question without an id is new. What you save is approved.\n"


def decision_in(value: str | None) -> PlanDecision | None:
    """Return the decision that a `--plan` of `resume` has: `approve`, `reject` or a file; None: it is a mode.

    Raises:
        ConfigError: The file is no plan.
    """
    if value is None or value in PLAN:
        return None
    if value in DECISIONS:
        return PlanDecision.approve() if value == APPROVE else PlanDecision.reject()
    path = Path(value).expanduser()
    if not path.is_file():
        hint = f"allowed are {', '.join((*DECISIONS, *PLAN))}, or a file with the plan as it is to be"
        raise ConfigError(f"flag --plan: there is no file {value[:80]!r}", hint=hint)
    return PlanDecision.edit(plan_in(path))


def plan_in(path: Path) -> Plan:
    """Read a plan from YAML or JSON: as it is edited in the terminal, or as commands print it.

    Raises:
        ConfigError: It is no plan; the message names the field.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError(f"{path} is over {MAX_FILE_BYTES} bytes", hint="give a file with a plan")
        fields = fields_in(path.read_text(encoding="utf-8-sig"))
        return Plan.model_validate(_bare(fields))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}: field `{field}`: {first['msg']}", hint=f"edit {path}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read as a plan: {error}", hint=f"edit {path}") from error


def _bare(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a plan out of what commands print, which has more."""
    found = cast("dict[str, Any]", fields["plan"]) if isinstance(fields.get("plan"), dict) else fields
    listed = found.get("questions")
    questions = [_bare_question(one) for one in cast("list[Any]", listed)] if isinstance(listed, list) else listed
    kept = {name: found[name] for name in ("understanding", "enough_when") if name in found}
    return {**kept, "questions": questions}


def _bare_question(given: object) -> object:
    if not isinstance(given, dict):
        return {"question": given}
    fields = cast("dict[str, Any]", given)
    inner = fields.get("question")
    named = cast("dict[str, Any]", inner) if isinstance(inner, dict) else fields
    return {name: value for name, value in named.items() if name != "cost_usd"}


def is_at_terminal(options: CommonOptions) -> bool:
    """Return whether a user sits at a terminal who can be asked."""
    is_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return is_terminal and options.output_format == "text" and not options.quiet


def ask_about(plan: PlanFacts, limit_usd: float | None) -> PlanDecision | None:
    """Show a plan and ask what to do with it; None: it keeps waiting."""
    say("\n" + fitted(plan_page(plan, limit_usd)) + "\n")
    while True:
        try:
            answer = input(HELP).strip()
        except (EOFError, KeyboardInterrupt):
            return None
        match answer.lower():
            case "" | "q" | "quit":
                return None
            case "a" | "y" | "yes" | "approve":
                return PlanDecision.approve()
            case "r" | "n" | "no" | "reject":
                return PlanDecision.reject()
            case "e" | "edit":
                if (edited := _edited(plan)) is not None:
                    return PlanDecision.edit(edited)
            case _:
                return PlanDecision.reject(answer)


def _edited(plan: PlanFacts) -> Plan | None:
    """Return the plan as it is saved in the user's editor; None where it cannot be used."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        hint = "set EDITOR; or write the plan to a file: explorer resume RUN --plan FILE.yaml"
        print_error(ConfigError("there is no editor", hint=hint), verbose=0)
        return None
    with tempfile.TemporaryDirectory(prefix="explorer-plan-") as folder:
        path = Path(folder) / "plan.yaml"
        path.write_text(HEAD + plan_text(plan), encoding="utf-8")
        try:
            subprocess.run([*shlex.split(editor), str(path)], check=True)  # noqa: S603 - the user's own editor
            return plan_in(path)
        except (ExplorerError, OSError, ValueError, subprocess.CalledProcessError) as error:
            failure = error if isinstance(error, ExplorerError) else ConfigError(f"the editor failed: {error}")
            print_error(failure, verbose=0)
            return None


def plan_text(plan: PlanFacts) -> str:
    """Return a plan as YAML, without what the engine adds."""
    questions = [one.question.model_dump(mode="json", include=set(OWN)) for one in plan.questions]
    fields = {"understanding": plan.understanding, "questions": questions, "enough_when": plan.enough_when}
    return yaml.safe_dump(fields, allow_unicode=True, sort_keys=False, width=100)
