"""A table of questions that are asked, and of slips that are not: as words typed without quotes."""

import pytest

from cli.stage import Explorer
from explorer.cli.help_text import COMMANDS
from explorer.cli.typo import meant_command, refuse_mistyped_command
from explorer.schema.errors import ConfigError
from model_servers import AnthropicServer

QUESTIONS = """
what was notable on hacker news today
how do embedded databases differ
how transformers work
who invented the fork
why is the sky blue
when did rome fall
where is svalbard
which rust web framework is fastest
is nuclear power safe
are there bears in berlin
does coffee raise blood pressure
can crows use tools
should i buy or rent
show me the best laptops under 1000 euros
shows like severance
shown benefits of creatine
compare postgres and sqlite
compare X and Y
list the largest lakes in europe
list all moons of saturn
explain raft consensus
summarise the news on fusion
summarize this week in rust
find cheap flights to oslo
find papers on sleep
search engines compared
search for life on mars
test driven development evidence
check whether tea has more caffeine than coffee
start a podcast from zero
run clubs in berlin
running shoes for flat feet
report cards in finland
reports show rising temperatures
reports of lynx in bavaria
grey whales migration
grip strength and longevity
steel prices 2026
steel prices
stops on the silk road
stop smoking methods that work
stem cells
forks and knives history
work from home statistics
tools for woodworking beginners
tool use in crows
model trains for beginners
model collapse
models of consciousness
agent frameworks
agent frameworks compared
agents of change in ancient rome
watch brands from switzerland
watches under 500 dollars
docker compose vs podman
doctor shortage in rural areas
doctors without borders history
resume writing tips for engineers
rescue dogs
verify that shakespeare wrote his plays
demo scene history
demos of the amiga
diff algorithms compared
different kinds of tea
config management tools compared
docker swarm
help me choose a bicycle
help for insomnia
login security best practices
history of the printing press
history rome
status of the kea parrot
open source licences compared
install solar panels or not
update on the ukraine war
chat bots in healthcare
server room cooling
shell shock in world war one
session musicians of motown
new caledonia
export of grain from ukraine
cache coherence explained
cat allergies
key signatures in music
cost of living in lisbon
remove rust from steel
guns per capita by country
tun and beer barrels
rund um berlin radfahren
was ist neu in python 3.15
quelle est la capitale
how tall
lake bled
""".strip().splitlines()
SLIPS = """
rnus
reume
reprot
docter
agnets
cofnig
init
login
logout
serve
setup
install
update
status
history
ls
list
chat
run
search
help nosuch
confg show
cofnig show
config shwo
conifg shwo
grpe power
grpe "power cut"
shw latest
shwo 20261122-101500-hn
show latest
shw workspace/20261122-101500-hn-notable-3f9a
reume latest "go deeper"
resmue "go deeper into the second point"
stpo latest
steeer latest "leave out 2024"
wacth latest
frok latest
dif 20261121 latest
verfy latest
veriyf 20261122
reprot list
reprot show 2026-11-22/sqlite-4
report list
rusn list
rusn rm 20261122-101500
run list
agent list
model list
init .
init my-project
login anthropic
auth openai
server 0.0.0.0:8080
ls runs
list runs
list models
logs latest
delete 20261122-101500-hn
rm latest
ps aux
set model=gpt
open workspace/
run question.md
upgrade explorer
exec bash
""".strip().splitlines()


def typed_words(line: str) -> list[str]:
    """A line's words as a shell parts them; only double quotes are used here."""
    parts = line.split('"')
    return [word for place, part in enumerate(parts) for word in ([part] if place % 2 else part.split())]


def test_the_tables_are_large_enough() -> None:
    """So many of each that a rule made for a few would show."""
    assert len(set(QUESTIONS)) >= 60
    assert len(set(SLIPS)) >= 40


@pytest.mark.parametrize("line", QUESTIONS)
def test_a_question_is_asked(line: str) -> None:
    """Without quotes, with its first letter large, and in quotes."""
    for words in (line.split(), line.capitalize().split(), [line], [*line.split(), "please?"]):
        refuse_mistyped_command(words)


@pytest.mark.parametrize("line", SLIPS)
def test_a_slip_is_refused(line: str) -> None:
    """With how to ask it nevertheless, and a command that there is where one is named."""
    with pytest.raises(ConfigError) as caught:
        refuse_mistyped_command(typed_words(line))
    assert "explorer ask " in caught.value.hint
    meant = meant_command(typed_words(line))
    assert meant is not None
    assert meant.command.split(" ")[0] in {"", "help", *COMMANDS}


@pytest.mark.parametrize(
    ("words", "output", "hint"),
    [
        (("confg", "show"), "`confg` looks like", "did you mean `explorer config`?"),
        (("grpe", "x"), "`grpe` looks like", "did you mean `explorer grep`?"),
        (("init",), "there is no such command: `init`", "explorer --help"),
        (("server", "8080"), "there is no such command: `server`", "explorer ask server 8080"),
        (("login",), "there is no such command: `login`", "the closest: explorer doctor; "),
        (("frok", "latest", "--at", "60"), "`frok` looks like", "did you mean `explorer fork`?"),
        (("runs", "lst"), "", "see: explorer runs --help"),
    ],
)
def test_the_process_refuses_and_pays_nothing(typed: Explorer, words: tuple[str, ...], output: str, hint: str) -> None:
    """Exit code 2, with the closest command or with the word that there is none."""
    with AnthropicServer([]) as server:
        done = typed(*words, ANTHROPIC_BASE_URL=server.url)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert output in done.stderr
    assert hint in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("ask", "--dry-run", "init"),
        ("ask", "--dry-run", "runs"),
        ("ask", "--dry-run", "show", "me", "the", "best"),
        ("ask", "--dry-run", "--", "--model", "is", "what?"),
        ("--dry-run", "--", "init"),
    ],
)
def test_what_is_asked_by_name_is_asked(here: Explorer, words: tuple[str, ...]) -> None:
    """`ask` takes everything that a question takes, and refuses none."""
    done = here(*words, EXPLORER_MODEL="offline")
    assert done.returncode == 0, done.stderr
    question = " ".join(word for word in words if word not in {"ask", "--dry-run", "--"})
    assert f"question   {question}\n" in done.stdout


def test_ask_reads_stdin_as_a_question_does(here: Explorer) -> None:
    """`-` means the same behind it; and it has a page of help."""
    done = here("ask", "--dry-run", "-", stdin="What do the ropes cost?\n", EXPLORER_MODEL="offline")
    assert "question   What do the ropes cost?\n" in done.stdout
    assert "never refused" in here("ask", "--help").stdout


def test_a_command_with_words_that_it_does_not_take_can_be_asked(here: Explorer) -> None:
    """`explorer show me the best laptops` is a command's line with too many words; the hint has the question."""
    done = here("show", "me", "the", "best", "laptops")
    assert done.returncode == 2
    assert "to ask it as a question: explorer ask show me the best laptops" in done.stderr
