"""The commands that run something: a question, `resume`, `demo`.

Their first line is written before the engine is imported, which takes longer than everything before it.
"""

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.commands.trust import settings_to_run
from explorer.cli.question import as_asked, no_question
from explorer.cli.screens.output import emit_json, say
from explorer.cli.settings.configuration import Configuration
from explorer.cli.settings.options import RUN, AskOptions, RunOptions
from explorer.observe.formatting import one_line
from explorer.run.collector import importing
from explorer.schema.errors import ConfigError
from explorer.schema.plan import PlanDecision, PlanVerdict

FIRST_LINE_CHARS = 79
SAMPLE_QUESTION = "What was notable on Hacker News on the sample day, and what did people argue about?"


def ask_question(question: str, options: AskOptions) -> int:
    """Explore a question, or resume the latest run."""
    if not options.go_on:
        configuration = settings_to_run(options)
        return _start(question or _of_preset(configuration), configuration, options)
    if options.dry_run:
        raise ConfigError("only a new question can be planned", hint="leave out -c, or --dry-run")
    if options.since_run is not None:
        raise ConfigError("an earlier run is named when a run starts", hint="leave out --since-run, or -c")
    if options.files:
        raise ConfigError("files are given when a run starts, not when it is resumed", hint="leave out --file, or -c")
    return _resume("latest", question, options)


def _of_preset(configuration: Configuration) -> str:
    """Return the question that the preset asks where the user gives none.

    Raises:
        ConfigError: It asks none.
    """
    preset = configuration.settings.preset
    if preset is None or not preset.question:
        name = preset.name if preset else "NAME"
        raise no_question(f'this preset answers yours: explorer --preset {name} "your question"')
    return preset.question


def resume(
    run: Annotated[str, Parameter(help="A run's id, the beginning of one, or `latest`.")] = "latest",
    /,
    *message: Annotated[str, Parameter(help="A follow-up question, or a message to an unfinished run.")],
    options: RunOptions = RUN,
) -> int:
    """Resume a run: an unfinished one where it stopped, a finished one with a follow-up.

    Everything the run found before is kept; no finished work is paid for again. A run whose plan waits takes the
    decision by `--plan approve`, `--plan reject` or `--plan FILE.yaml`, or a message that says what is to be different.
    """
    if len(run.split()) > 1:
        raise ConfigError("the run comes first, and its name has no spaces", hint='write: explorer resume latest "..."')
    return _resume(run, as_asked(" ".join(message)), options)


def demo(
    *question: Annotated[str, Parameter(help="Another question than the sample one.")],
    web: Annotated[
        bool, Parameter(name="--web", help="Watch it in your browser, as `explorer serve` shows runs.")
    ] = False,
    options: RunOptions = RUN,
) -> int:
    """Explore the bundled, invented sample day: no key, no network, no cost.

    The engine is the same as for every run: an orchestrator, helpers, files, a cited report. Only the pages are
    invented, and a rule-based offline engine takes the place of the model.

    Example: `explorer demo --web`
    """
    configuration = settings_to_run(options if options.model else replace(options, model=("offline",)))
    if not options.model:
        configuration = configuration.with_origin("model", "the command demo")
    settings = configuration.settings.model_copy(
        update={"is_sample": True} if options.model else {"is_sample": True, "lean": "off"}
    )
    words = as_asked(" ".join(question)) or SAMPLE_QUESTION
    configuration = replace(configuration, settings=settings)
    if web:
        from explorer.cli.commands.serve import serve_demo  # noqa: PLC0415 - it loads the engine

        return serve_demo(configuration, words, options)
    return _start(words, configuration, options)


def _start(question: str, configuration: Configuration, options: RunOptions) -> int:
    if not (isinstance(options, AskOptions) and options.dry_run):
        _say_first(f"exploring: {question}", options)
    with importing():
        from explorer.cli.launch import start_run  # noqa: PLC0415 - it loads the engine

    return start_run(question, configuration, options)


def _resume(name: str, message: str, options: RunOptions) -> int:
    from explorer.cli.plan_approval import decision_in  # noqa: PLC0415 - as above
    from explorer.cli.runs_at_hand import run_to_resume  # noqa: PLC0415 - as above

    decision = decision_in(options.plan)
    options = replace(options, plan=None) if decision is not None else options
    configuration = settings_to_run(options)
    decision = _checked(decision, message)
    if decision is not None or message:
        from explorer.cli.commands.fleet import decide_in_fleet  # noqa: PLC0415 - as above

        # Words to a plan that waits ask for another one.
        if run_id := decide_in_fleet(configuration.settings, name, decision or PlanDecision.reject(message)):
            return _say_handed(run_id, options)
    folder = run_to_resume(configuration.settings, name)
    _say_first(f"resuming {folder.name}" + (f": {message}" if message else ""), options)
    with importing():
        from explorer.cli.launch import continue_run  # noqa: PLC0415 - as above

    return continue_run(folder, message if decision is None else decision, configuration, options)


def _checked(decision: PlanDecision | None, message: str) -> PlanDecision | None:
    """Return a decision with the words that belong to it.

    Raises:
        ConfigError: Words are given to a plan that is approved.
    """
    if decision is not None and message and decision.verdict is not PlanVerdict.REJECTED:
        raise ConfigError(
            "a plan is approved without a message", hint="leave out the message; it can follow the report"
        )
    return None if decision is None else decision.with_words(message)


def _say_handed(run_id: str, options: RunOptions) -> int:
    """Say that a worker of the fleet continues a run."""
    if options.output_format != "text":
        emit_json({"run_id": run_id, "state": "waiting"})
    elif not options.quiet:
        say(f"{run_id}: a worker of the fleet continues it\n  → watch it: explorer watch {run_id}")
    return 0


def _say_first(words: str, options: RunOptions) -> None:
    """Say what begins. The settings are valid by now, and keys are known and not shown."""
    if not options.quiet:
        say(one_line(words, FIRST_LINE_CHARS))
