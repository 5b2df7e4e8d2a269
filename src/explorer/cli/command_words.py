"""Words by which a mistyped command is told from a question."""

from collections.abc import Mapping

SUBCOMMANDS: Mapping[str, tuple[str, ...]] = {
    "config": ("show",),
    "runs": ("list", "rm", "gc", "export", "import"),
    "report": ("list", "show"),
    "completion": ("bash", "zsh", "fish"),
}
"""By command, the words that may stand behind it."""
TAKES_RUN = frozenset(
    {"resume", "fork", "steer", "stop", "watch", "show", "diff", "report", "verify", "grep", "doctor"}
)
"""Commands whose first word is a run; more words may follow."""
TAKES_ANYTHING = frozenset({"grep", "ask", "help"})
"""Commands behind which one bare word is the usual thing."""

COMMAND_LIKE: Mapping[str, str] = {
    "init": "",
    "login": "doctor",
    "logout": "",
    "auth": "doctor",
    "whoami": "",
    "setup": "doctor",
    "configure": "config show",
    "configuration": "config show",
    "settings": "config show",
    "set": "config show",
    "get": "config show",
    "env": "config show",
    "serve": "",
    "server": "",
    "daemon": "",
    "web": "",
    "ui": "",
    "gui": "",
    "mcp": "",
    "chat": "ask",
    "repl": "",
    "shell": "",
    "exec": "",
    "run": "ask",
    "start": "ask",
    "explore": "ask",
    "query": "ask",
    "question": "ask",
    "new": "ask",
    "continue": "resume",
    "restart": "resume",
    "retry": "resume",
    "followup": "resume",
    "pause": "stop",
    "cancel": "stop",
    "abort": "stop",
    "kill": "stop",
    "quit": "stop",
    "exit": "stop",
    "tail": "watch",
    "follow": "watch",
    "attach": "watch",
    "logs": "show",
    "log": "show",
    "status": "runs",
    "history": "runs",
    "list": "runs",
    "ls": "runs",
    "ps": "runs",
    "sessions": "runs",
    "session": "runs",
    "info": "show",
    "inspect": "show",
    "view": "show",
    "cat": "report",
    "open": "report",
    "print": "report",
    "cost": "show --costs",
    "costs": "show --costs",
    "usage": "show --costs",
    "search": "grep",
    "find": "grep",
    "delete": "runs rm",
    "remove": "runs rm",
    "rm": "runs rm",
    "clean": "runs gc",
    "clear": "runs gc",
    "prune": "runs gc",
    "gc": "runs gc",
    "cache": "runs gc",
    "export": "runs export",
    "import": "runs import",
    "check": "doctor",
    "test": "doctor",
    "ping": "doctor",
    "install": "",
    "uninstall": "",
    "update": "",
    "upgrade": "",
    "plugin": "",
    "plugins": "",
    "completions": "completion",
    "roles": "agents",
    "role": "agents",
    "providers": "models",
    "keys": "doctor",
    "key": "doctor",
    "example": "demo",
    "sample": "demo",
    "tutorial": "demo",
}
"""Commands of other programs, each with the one of ours that does it; empty: none does."""

ENGLISH_WORDS = frozenset(
    """
    agent events aspects accents models model modes motels modem modern demos memo demon tool pools fools cools
    toots run rung rune runes ruins runny guns suns buns nuns puns rust rubs ruts rugs rund
    shows shown shop shot shoe shoes shout how slow snow stow sow chow shore who
    stops step steps shop stomp stoop strop top atop
    watches match catch batch patch hatch latch swatch watched water
    forks work works form fort ford for fora folk pork cork york forge
    steel steers steep sheer stern seer street steam
    grip grey grew prep crop drop greek green group greed greet step
    cliff riff tiff stiff differ
    reports reported reporter deport resort rapport export import support effort
    resumes resumed rescue resale rename revue reuse assume presume
    verity very versify clarify
    doctors factor docker donor actor sector vector proctor rector
    confit confide coffin
    asks mask task tasks bask flask as asking
    help helps held heap kelp yelp hemp whelp helped
    version versions vision aversion
    chat set get web new list log view open print search find test check start run key keys export import cache
    status history session sessions install update follow cost costs usage clean clear example sample server shell
    question query roles role cat tail kill exit info ping explore continue pause settings import remove delete inspect
    """.split()  # noqa: SIM905 - a list of these would be a page long
)
"""Words of the language that are commands elsewhere or close to one of ours: a question may well begin with them."""
