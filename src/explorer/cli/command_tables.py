"""Where each command is, and the help of those that are in groups."""

LAZY_COMMANDS = {
    "resume": "commands.ask:resume",
    "fork": "commands.fork:fork",
    "steer": "commands.steer_stop:steer",
    "stop": "commands.steer_stop:stop",
    "watch": "commands.watch:watch",
    "show": "commands.show:show",
    "diff": "commands.diff:diff",
    "grep": "commands.grep:grep",
    "verify": "commands.verify:verify",
    "eval": "commands.evaluate:evaluation",
    "repl": "commands.repl:repl",
    "serve": "commands.serve:serve",
    "demo": "commands.ask:demo",
    "submit": "commands.fleet:submit",
    "worker": "commands.worker:worker",
    "tools": "commands.catalog:tools",
    "agents": "commands.catalog:agents",
    "models": "commands.catalog:models",
    "trust": "commands.trust:trust",
    "doctor": "commands.doctor:doctor",
    "completion": "commands.completion:completion",
}
"""Where each command is, below `explorer.cli`, by name. None is imported before it is called; its help is its
docstring, since the page that lists them all is written by hand."""

COMMANDS_OF_RUNS = {
    "list": ("commands.runs:runs", "List runs, newest last."),
    "rm": (
        "commands.archive:rm",
        "Remove runs, with all their files; a running run is refused.\n\nExample: `explorer runs rm 20261122-101500`",
    ),
    "gc": (
        "commands.archive:gc",
        (
            "Remove old runs; never one that is running or damaged, nor an unfinished one unless asked for.\n\n"
            "With `--keep` alone, age does not matter.\n\n"
            "Fetched pages are kept for a day at most; `--cache` drops them at once.\n\n"
            "Example: `explorer runs gc --older-than 30d --keep 10 --dry-run`"
        ),
    ),
    "export": (
        "commands.archive:export_run",
        (
            "Write a run into one file: journal, sources, findings, report. Keys are in none of them.\n\n"
            "A damaged run can be exported too, for safekeeping.\n\n"
            "Example: `explorer runs export latest -o plant.tar.gz`"
        ),
    ),
    "import": (
        "commands.archive:import_run",
        (
            "Read back an exported run: it can be shown, watched and continued.\n\n"
            "Service addresses in its journal are replaced by your own settings. Continuing a run sends everything "
            "in it to a model, so continue only runs of people you trust.\n\n"
            "Example: `explorer runs import plant.tar.gz --as-new`"
        ),
    ),
}
"""Where each command below `runs` is, and its help, so that none is imported for the page that lists them."""

COMMANDS_OF_REPORTS = {
    "list": (
        "commands.library:list_reports",
        (
            "List the reports of the library, newest day first: all, or those of a day or with words in them.\n\n"
            "Example: `explorer report list 2026-11 sqlite`"
        ),
    ),
    "show": (
        "commands.library:show_report",
        "Print a report of the library.\n\nExample: `explorer report show 2026-11-22/sqlite-4`",
    ),
}
"""Where each command below `report` is; `report` alone prints a run's report."""

COMMANDS_OF_MCP = {
    "list": (
        "commands.mcp:list_servers",
        "List the MCP servers that are configured, and the roles that get their tools.\n\nExample: `explorer mcp list`",
    ),
    "add": (
        "commands.mcp:add_server",
        (
            "Add an MCP server to your own configuration, or to this folder's.\n\n"
            "Example: `explorer mcp add tracker https://example.com/mcp --token TRACKER_TOKEN --role searcher`\n\n"
            "Example: `explorer mcp add forum --role searcher -- python server.py --db forum.db`"
        ),
    ),
    "test": (
        "commands.mcp:show_server",
        (
            "Connect to an MCP server, and show its tools as agents see them; or accept what has changed.\n\n"
            "Exits with 1 while something it describes is not accepted.\n\n"
            "Example: `explorer mcp test forum --accept`"
        ),
    ),
    "serve": (
        "commands.mcp_serve:serve",
        (
            "Serve explorations to other agents, until the client closes stdin.\n\n"
            "Clients start runs, wait for reports, and read findings and sources. They can only lower the limits set "
            "here. When the server ends, its runs are saved, and `explorer resume` continues them.\n\n"
            "Example: `explorer mcp serve --max-cost 1`"
        ),
    ),
    "token": (
        "commands.mcp_serve:token",
        (
            "Print the token that clients of `explorer mcp serve --http` send.\n\n"
            "It stays the same on this machine. EXPLORER_MCP_TOKEN sets another one."
        ),
    ),
}
"""Where each command below `mcp` is."""
COMMANDS_OF_PRESETS = {
    "list": (
        "commands.presets:list_presets",
        "List the presets: built-in ones, yours, and those of this folder.\n\nExample: `explorer presets list`",
    ),
    "show": (
        "commands.presets:show_preset",
        (
            "Show a preset: its question, team, settings, and what it needs. Nothing of it takes effect.\n\n"
            "Example: `explorer presets show hn-news`"
        ),
    ),
}
"""Where each command below `presets` is."""
COMMANDS_OF_TOPICS = {
    "add": (
        "commands.watch_topic:add",
        (
            "Explore a question again and again, each time given what the last run found.\n\n"
            "Writes a timer of your systemd, or a line of your crontab, and shows it; nothing of explorer keeps "
            "running. The entry has neither the question nor a key. The flags of a question are those of each run; "
            "in `-o`, {date} and {time} are replaced. `--dry-run` only shows what would be written.\n\n"
            'Example: `explorer watch-topic add "What is new about SQLite?" --every day -o sqlite-{date}.html`'
        ),
    ),
    "list": ("commands.watch_topic:list_topics", "List the topics, with how the last run of each ended."),
    "show": ("commands.watch_topic:show", "Show a topic: its question, flags, entry, and last run."),
    "remove": (
        "commands.watch_topic:remove",
        "Remove a topic and its entry; its runs stay, and so does everything else of your systemd and crontab.",
    ),
    "run": (
        "commands.watch_topic:run",
        "Explore a topic now, as its entry does: with what the last run found, and never twice at once.",
    ),
}
"""Where each command below `watch-topic` is."""
COMMANDS_OF_QUEUE = {
    "cancel": (
        "commands.fleet:cancel",
        "Cancel a run of the queue: one that waits at once, one at work within seconds.",
    ),
    "retry": (
        "commands.fleet:retry",
        (
            "Put runs that failed, were cancelled or are parked into the queue again; without a name all that failed "
            "or are parked.\n\nEach continues where it stopped; nothing that is on record is done again."
        ),
    ),
    "drain": (
        "commands.fleet:pause",
        "Let the runs at work end, and let no worker take another one, until `explorer queue start`.",
    ),
    "start": ("commands.fleet:start", "Let workers take runs again."),
    "stop": (
        "commands.fleet:stop",
        (
            "Stop every run at work within seconds, and let no worker take another one, until `explorer queue start`."
            "\n\nWhat the runs found is kept, and they are back in the queue.\n\nExample: `explorer queue stop --all`"
        ),
    ),
    "prune": (
        "commands.fleet:prune",
        (
            "Remove runs that ended long ago from the queue, with what the fleet's database has of them.\n\n"
            "Runs in a workspace stay: `explorer runs gc` removes those. A removed run's idempotency key is new again."
            "\n\nExample: `explorer queue prune --older-than 90d --dry-run`"
        ),
    ),
}
"""Where each command below `queue` is; `queue` alone lists the runs."""
COMMANDS_OF_FLEET = {
    "status": (
        "commands.fleet:status",
        "Show the fleet: its workers, their runs and leases, its limits, and how many runs ended in the last hour.",
    ),
    "limit": (
        "commands.fleet_limits:limit",
        (
            "Limit what all runs of the fleet together spend; without an amount, list the limits and what is used.\n\n"
            "A limit counts all requests to models, or those of one tenant, or those with one provider key. `none` "
            "removes it.\n\nExample: `explorer fleet limit --usd 100 --per day`\n\n"
            "Example: `explorer fleet limit --tenant research --usd 500 --per month`\n\n"
            "Example: `explorer fleet limit --key anthropic --rate 50/min`\n\n"
            "Example: `explorer fleet limit --tenant research --share 3`"
        ),
    ),
}
"""Where each command below `fleet` is."""
GROUPS_OF_COMMANDS = (
    ("mcp", "MCP servers whose tools agents may call; and explorer as a server of other agents.", COMMANDS_OF_MCP),
    ("presets", "Whole explorers as configurations: list and show them.", COMMANDS_OF_PRESETS),
    ("watch-topic", "Questions that are explored again and again.", COMMANDS_OF_TOPICS),
    ("fleet", "Many runs on many workers.", COMMANDS_OF_FLEET),
)
"""Commands that do nothing alone: the name, its help, and what is below it."""


COMMANDS_OF_SKILLS = {
    "list": ("commands.skills:list_skills", "List the skills that agents may load, and those that do not count."),
    "show": (
        "commands.skills:show_skill",
        "Print a skill, with its files.\n\nExample: `explorer skills show news-digest`",
    ),
    "validate": (
        "commands.skills:validate",
        (
            "Check skills against the Agent Skills format: one skill, a folder of them, or all that are found.\n\n"
            "Example: `explorer skills validate .agents/skills`"
        ),
    ),
    "new": (
        "commands.skills:new",
        (
            "Make a skill of your own, to be filled in. A skill in your own folder counts at once.\n\n"
            'Example: `explorer skills new grant-search "Finds grants for a project. Use it when asked for funding."`'
        ),
    ),
}
"""Where each command below `skills` is; `skills` alone lists them."""
