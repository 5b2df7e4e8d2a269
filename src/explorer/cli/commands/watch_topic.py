"""The commands `watch-topic ...`: questions that are explored again and again, by the user's own systemd or cron."""

import os
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, cast, get_type_hints

from cyclopts import Parameter

from explorer.cli.question import as_asked
from explorer.cli.report_files import check_target
from explorer.cli.schedules.entries import DEFAULT_TIME, Scheduler, rhythm, run_command, scheduler_named
from explorer.cli.schedules.topics import Topic, TopicRun, Topics, run_topic
from explorer.cli.screens.output import aligned, emit_json, emit_page, say
from explorer.cli.settings.configuration import configured
from explorer.cli.settings.options import ASK, COMMON, AskOptions, CommonOptions
from explorer.cli.settings.values import Origin
from explorer.observe.formatting import one_line
from explorer.schema.errors import ConfigError, ExplorerError
from explorer.schema.network import VARIABLES as NETWORK_VARIABLES

TopicName = Annotated[str, Parameter(help="The topic, as `watch-topic list` names it.")]
STATE_CHARS = 60
"""Characters of a run's end in the table; `show` has all of it."""
NOT_KEPT = frozenset(
    {
        "output_format",
        "verbose",
        "quiet",
        "go_on",
        "since_run",
        "dry_run",
        "is_literal",
        "from_stdin",
        "trust",
        "trust_folder",
    }
)
"""Flags of `add` that are not those of its runs."""
STAMPS = ("{date}", "{time}")
LINGER = "timers run while you are logged in; at any time: loginctl enable-linger"


def add(
    *question: Annotated[str, Parameter(help="What is explored.")],
    every: Annotated[str, Parameter(help="hour, 2h, 3h, 4h, 6h, 8h, 12h, day, weekdays, week or month.")],
    at: Annotated[str, Parameter(help="Time of day on this machine's clock.")] = DEFAULT_TIME,
    name: Annotated[str, Parameter(help="Name of the topic; made of the question if not given.")] = "",
    by: Annotated[
        Literal["auto", "systemd", "cron", "none"], Parameter(help="What starts it; none: only show the line.")
    ] = "auto",
    options: AskOptions = ASK,
) -> int:
    """Explore a question again and again, each time given what the last run found."""
    words, variables = as_asked(" ".join(question)), dict(os.environ)
    if not words:
        raise ConfigError("there is no question", hint='write: explorer watch-topic add "..." --every day')
    _check(options)
    times = rhythm(every, at)
    topics = Topics(variables)
    scheduler = scheduler_named(by, variables)
    unseen = _unseen(options, variables)
    topic = Topic(
        name=topics.free_name(words, name),
        question=words,
        every=every,
        at=at,
        folder=str(Path.cwd()),
        options=tuple(_flags(options)),
        scheduler=scheduler.name,
        added=datetime.now(UTC),
    )
    entry = scheduler.entry(topic.name, times)
    if not options.dry_run:
        topics.add(topic)
        try:
            scheduler.add(topic.name, times)
        except ExplorerError:
            topics.remove(topic.name)
            raise
    if options.output_format != "text":
        emit_json({"topic": topic.model_dump(mode="json"), "written": not options.dry_run, "entry": entry})
    else:
        emit_page(_entry_page(entry))
    _say_added(topic, unseen, options)
    return 0


def list_topics(*, options: CommonOptions = COMMON) -> int:
    """List the topics, with how the last run of each ended."""
    topics = Topics(os.environ)
    found = [(topic, topics.last(topic.name)) for topic in topics.all()]
    if options.output_format != "text":
        emit_json([_facts(topic, last, topics) for topic, last in found])
    elif found:
        rows = [
            (
                topic.name,
                topic.every,
                _started_by(topic),
                f"{last.began.astimezone():%Y-%m-%d %H:%M}" if last else "-",
                one_line(_state(topic, last, topics), STATE_CHARS),
                topic.question,
            )
            for topic, last in found
        ]
        emit_page(aligned(("TOPIC", "EVERY", "BY", "LAST", "STATUS", "QUESTION"), rows))
    elif not options.quiet:
        say('no topics\n  → add one: explorer watch-topic add "..." --every day')
    return 0


def show(topic_name: TopicName, /, *, options: CommonOptions = COMMON) -> int:
    """Show a topic: its question, flags, entry, and last run."""
    topics = Topics(os.environ)
    topic = topics.named(topic_name)
    last, entry = topics.last(topic.name), _scheduler_of(topic).entry(topic.name, rhythm(topic.every, topic.at))
    if options.output_format != "text":
        emit_json(_facts(topic, last, topics) | {"entry": entry})
        return 0
    rows = [
        ("question", one_line(topic.question)),
        ("every", f"{topic.every}, {topic.at}, by {_started_by(topic)}"),
        ("folder", topic.folder),
        ("flags", " ".join(map(one_line, topic.options)) or "none"),
        ("status", _state(topic, last, topics)),
        *([("run", last.folder or "none")] if last else []),
        ("log", str(topics.log(topic.name))),
    ]
    page = "\n".join(f"  {name:<9} {value}" for name, value in rows)
    emit_page(f"{topic.name}\n{page}\n\n{_entry_page(entry)}")
    return 0


def remove(topic_name: TopicName, /, *, options: CommonOptions = COMMON) -> int:
    """Remove a topic and its entry; its runs stay, and so does everything else of your systemd and crontab."""
    topics = Topics(os.environ)
    topic = topics.named(topic_name)
    _scheduler_of(topic).remove(topic.name)
    topics.remove(topic.name)
    if options.output_format != "text":
        emit_json({"topic": topic.name, "removed": True})
    else:
        emit_page(f"removed {topic.name}; its runs stay in {topic.folder}")
    return 0


def run(topic_name: TopicName, /, *, options: CommonOptions = COMMON) -> int:
    """Explore a topic now, as its entry does: with what the last run found, and never twice at once."""
    topics = Topics(os.environ)
    ended, facts = run_topic(topics.named(topic_name), topics)
    if options.output_format != "text":
        emit_json(facts or ended.model_dump(mode="json"))
    else:
        report = facts.get("report") or ended.folder or f"see {topics.log(topic_name)}"
        emit_page(f"{ended.status}: {report}")
    return 1 if ended.exit_code is None else ended.exit_code


def _check(options: AskOptions) -> None:
    """Refuse what no scheduled run could do.

    Raises:
        ConfigError: There is such a flag.
    """
    for is_given, flag in ((options.go_on, "-c"), (options.since_run is not None, "--since-run")):
        if is_given:
            hint = f"leave out {flag}: each run is a new one, and is given what the last one found"
            raise ConfigError(f"{flag} cannot be scheduled", hint=hint)
    if options.trust_folder:
        raise ConfigError("a schedule takes no trust for one command", hint="trust the folder: explorer trust")
    if options.output is not None:
        is_one = not options.overwrite and not any(stamp in options.output for stamp in STAMPS)
        if is_one:
            hint = "put {date} into its name, or add --overwrite"
            raise ConfigError(f"the second run would find {options.output} there", hint=hint)
        check_target(options.output, overwrite=options.overwrite)


def _unseen(options: AskOptions, variables: dict[str, str]) -> list[str]:
    """Return messages about what scheduled runs will not have: the variables of this shell.

    Raises:
        ConfigError: A setting is not allowed, or the folder is not trusted.
    """
    configuration = configured(replace(options, quiet=True))
    network = sorted(name for name in NETWORK_VARIABLES if variables.get(name))
    set_here = {value.variable for value in configuration.values if value.level is Origin.ENVIRONMENT}
    names = sorted(set_here - set(network))
    words = "scheduled runs do not have this shell's {names}\n  → put {them}".format
    files = f"them into {Path.cwd()}/.env (keys: chmod 600) or your config.toml"
    outside = "them above the line in your crontab, or into ~/.config/environment.d/ for systemd"
    found = ((names, files), (network, outside))
    return [words(names=", ".join(some), them=them) for some, them in found if some]


def _flags(options: AskOptions) -> list[str]:
    """Return the flags of a question as words of a command line."""
    hints = get_type_hints(AskOptions, include_extras=True)
    found: list[str] = []
    for field in fields(AskOptions):
        value: object = getattr(options, field.name)
        if field.name in NOT_KEPT or value == field.default:
            continue
        (parameter,) = (one for one in hints[field.name].__metadata__ if isinstance(one, Parameter))
        names = (parameter.name,) if isinstance(parameter.name, str) else tuple(parameter.name or ())
        for one in cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,):
            found += [names[0]] if one is True else [names[0], str(one)]
    return found


def _say_added(topic: Topic, unseen: Sequence[str], options: AskOptions) -> None:
    for message in unseen:
        say(message)
    if options.quiet:
        return
    if options.dry_run:
        say("nothing was written")
        return
    if topic.scheduler == "none":
        say("nothing starts it yet: use this line, or the command in it, in the scheduler you have")
    elif topic.scheduler == "systemd":
        say(LINGER)
    say(f"topic {topic.name}: every {topic.every}, at {topic.at}".replace("every weekdays", "on weekdays"))
    say(f"  → try it now: explorer watch-topic run {topic.name}")


def _scheduler_of(topic: Topic) -> Scheduler:
    return scheduler_named(topic.scheduler, os.environ)


def _started_by(topic: Topic) -> str:
    try:
        is_there = _scheduler_of(topic).has(topic.name)
    except ExplorerError:
        is_there = False
    return topic.scheduler if is_there else f"{topic.scheduler} (its entry is missing)"


def _state(topic: Topic, last: TopicRun | None, topics: Topics) -> str:
    if last is None:
        return "never run"
    if last.ended is None:
        return "running" if topics.is_running(topic.name) else "was killed"
    return f"{last.status} ({last.reason})" if last.reason else last.status


def _facts(topic: Topic, last: TopicRun | None, topics: Topics) -> dict[str, object]:
    return {
        **topic.model_dump(mode="json"),
        "state": _state(topic, last, topics),
        "started_by": _started_by(topic),
        "last": last.model_dump(mode="json") if last else None,
        "command": run_command(topic.name),
    }


def _entry_page(entry: dict[str, str]) -> str:
    return "\n\n".join(f"{place}:\n{text.rstrip()}" for place, text in entry.items())
