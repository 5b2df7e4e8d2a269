"""The first page of help: examples first, flags in groups, and ready without importing a parser."""

from collections.abc import Sequence

from explorer.cli.flag_help import FLAG_HELP
from explorer.schema.version import __version__

COMMANDS = (
    "ask",
    "repl",
    "resume",
    "fork",
    "steer",
    "stop",
    "watch",
    "watch-topic",
    "runs",
    "show",
    "diff",
    "report",
    "verify",
    "eval",
    "grep",
    "serve",
    "demo",
    "tools",
    "agents",
    "skills",
    "models",
    "presets",
    "config",
    "mcp",
    "submit",
    "worker",
    "queue",
    "fleet",
    "trust",
    "doctor",
    "completion",
)
"""Every command, in the order of the help page."""

HELP = f"""\
explorer - ask a question, get a cited report

Usage:
  explorer [FLAGS] "QUESTION"        explore, and print the report
  explorer COMMAND [FLAGS] [...]     details: `explorer COMMAND --help`

Examples:
  explorer "What was notable on Hacker News today?"
  explorer --max-cost 0.50 --max-time 10m "How do embedded databases differ?"
  explorer --file notes.md "What do these notes leave out?"
  explorer -c "Go deeper into the second point"
  explorer --output-format json "..." | jq -r .report
  explorer demo                      no key, no network: a bundled sample day

Commands:
  ask QUESTION             explore; use it if QUESTION looks like a command
  repl [RUN]               a session: questions, follow-ups, /commands
  resume [RUN] [MESSAGE]   continue a run; with MESSAGE, ask a follow-up in it
  fork RUN [MESSAGE]       new run from an earlier point of a run (`--at N`)
  steer RUN MESSAGE        send an instruction to a running run
  stop RUN                 finish the report and stop (`--now`: stop at once)
  watch [RUN]              follow a running run, or replay a finished one
  watch-topic add QUESTION explore it every day, or as often as you say
  watch-topic list, run    topics: how each went; also show, remove
  runs                     list runs, newest last
  runs rm, runs gc         remove the named runs, or old runs
  runs export, import      save a run as one file, and read it back
  show RUN                 one run: agents, files, sources, cost, timeline
  diff RUN_A RUN_B         compare two runs (exits with 1 if they differ)
  report [RUN]             print a run's report
  report list, show NAME   library of reports that agents keep across runs
  verify [RUN]             check quotes and figures against the cited sources
  eval SET                 ask questions with known answers; measure the reports
  grep PATTERN [RUN]       search reports, findings and sources of runs
  serve                    runs in your browser: ask, watch, steer, read, check
  demo                     explore the bundled sample day, offline
  tools                    tools of agents, and the roles that have them
  agents                   roles: purpose, tools and limits of each
  skills                   methods that agents load: list, show, validate, new
  models                   which model each role would use
  presets list, show NAME  whole explorers as configurations (`--preset NAME`)
  config show              every setting, its value, and where it comes from
  mcp list, add, test      MCP servers, whose tools roles may call
  mcp serve                serve explorations to other agents, over MCP
  submit QUESTION          put a question into the queue of a fleet
  worker                   work on runs of the queue; start as many as you like
  queue                    runs that wait; also cancel, retry, drain, stop
  fleet status             workers of the fleet, and their runs
  fleet limit              limits that all runs of the fleet share
  trust [FOLDER]           let the settings in a folder's files take effect
  doctor [RUN]             check this machine, keys and services; or one run
  completion SHELL         completions for bash, zsh or fish
  RUN is a run's id, the beginning of an id, `latest`, or a path.

{FLAG_HELP}
  -h, --help / --version
  QUESTION can be `-` to read it from stdin; after `--` nothing is a flag.
  Text piped to a QUESTION becomes a file it is about: stdin.txt.

Exit codes:
  0 report complete   3 partial, nothing found          6 provider/sources down
  1 failed            4 credentials missing/refused     124 out of time
  2 usage or config   5 not found                       129/130/143 interrupted
  7 its plan waits for your decision (`resume RUN --plan approve`)

stdout contains only the result. Settings also come from EXPLORER_*
variables, .env and explorer.toml: see `explorer config show`.
"""


def quick_answer(tokens: Sequence[str]) -> str | None:
    """Return what needs no parser: the first page of help, and the version; None for everything else."""
    flags = list(tokens[: tokens.index("--")] if "--" in tokens else tokens)
    if flags == ["help"]:
        return HELP
    if flags and flags[0] in (*COMMANDS, "help"):
        return None
    if "--help" in flags or "-h" in flags:
        return HELP
    if flags in (["--version"], ["version"]):
        return f"explorer {__version__}\n"
    return None
