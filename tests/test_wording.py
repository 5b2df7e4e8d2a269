"""Texts for users and models use plain technical English: each avoided word has a usual one that says the same."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HISTORY = {"decisions.md"}
"""Pages that record what was decided in the words of their day."""

AVOIDED: Mapping[str, str] = {
    r"mend(?:s|ed|ing)?": "fix, correct",
    r"tell(?:s|ing)?|told": "show, report, say, send",
    r"stands?|stood|standing": "is",
    r"besides?": "next to, in addition to, with",
    r"go(?:es|ing|ne)? on|went on": "continue, resume",
    r"parted": "separated",
    r"dear(?:er|est)?": "expensive, most expensive, worst-case",
    r"li(?:fe|ves)": "session",
    r"rooms?": "space, budget",
    r"beneath": "under",
    r"fold(?:s|ed)?": "computed from, state",
    r"equipment": "resources",
    r"anew": "again",
    r"way (?:on|around)": "how to continue, exception",
    r"(?:from|to|of|anything|nothing|made) outside(?! (?:the|this|a|an|your|its)\b)": "external, fetched",
    r"(?<!there )(?:is|are|was|were) no(?! (?:longer|more)\b)": "is not a",
    r"in words|(?:your|its|own|last|the user's) words": "message, text, as text",
    r"carr(?:y|ies)": "support, contain",
    r"holds?(?! back)|held(?! back)": "contain, have, apply",
    r"nobody|whoever": "no one, not, the one that",
    r"all the same|in vain|now and then": "still, without success, sometimes",
    r"read(?:s)? off": "computed from",
    r"hand(?:s|ed) (?:in|on|over|back)": "pass, return",
    r"wants (?:an?|requests)": "needs",
    r"what is there": "the files, the findings",
    r"behind (?:each|every|it|the end|what|them|both)": "after, past",
}
"""Each avoided word or phrase as a pattern for whole words, and what to write instead."""

PATTERN = re.compile("|".join(rf"\b(?:{pattern})\b" for pattern in AVOIDED), re.IGNORECASE)
FRAGMENT = re.compile(r"\s*Of [a-z]")
"""A note that begins in the middle of a sentence."""
INLINE_CODE = re.compile(r"``[^`]+``|`[^`\n]+`")


@dataclass(frozen=True)
class Allowed:
    """A phrase with an avoided word that stays, and why."""

    place: str
    phrase: str
    reason: str


ALLOWED = (
    Allowed("src/explorer/cli/typo.py", "help helps held", "a list of English words"),
    Allowed("src/explorer/documents/parsing/judgement.py", "press (&|and) hold", "a text of other sites"),
    Allowed("src/explorer/sources/http/robots.py", "User-agent: nobody", "a name in a robots.txt"),
    Allowed("src/explorer/text/differences.py", "under until nobody", "a list of words that are not names"),
    Allowed("src/explorer/offline/question.py", "tell show give", "a list of words that users write"),
    Allowed("src/explorer/offline/question.py", "each ask tell", "a list of words that users write"),
    Allowed("src/explorer/offline/sample_day/items.py", "Tell HN", "a kind of post on Hacker News"),
    Allowed("src/explorer/reports/library_page.py", "ask|tell|launch", "matches the titles of Hacker News"),
    Allowed("src/explorer/reports/verify/amounts.py", "perhaps towards besides", "a list of stop words"),
    Allowed("src/explorer/reports/verify/subjects.py", "|told|", "a list of verbs that sources use"),
    Allowed("src/explorer/reports/verify/plain.py", "say told", "a list of stop words"),
    Allowed("src/explorer/reports/verify/passages.py", "nobody|no one", "words that sources use"),
    Allowed("src/explorer/reports/verify/polarity.py", "no|nobody|", "a list of negations"),
    Allowed("src/explorer/reports/verify/polarity.py", "dearer pricier", "a list of comparatives"),
    Allowed("src/explorer/reports/verify/numerals.py", "times fold 倍", "a list of units"),
    Allowed("src/explorer/text/words.py", "such t tell than", "a list of stop words"),
    Allowed("src/explorer/api.py", "cite it behind what", "part of a prompt that changes with the public API"),
)


def _without_allowed(place: str, text: str) -> str:
    for allowed in ALLOWED:
        if allowed.place == place:
            text = text.replace(allowed.phrase, " ")
    return text


def _faults(place: str, text: str) -> Iterator[str]:
    """Yield the avoided words of a text, each with what to write instead."""
    kept = _without_allowed(place, text)
    if FRAGMENT.match(kept):
        yield f"{place}: begins with 'Of': {text[:60]!r}"
    for found in PATTERN.finditer(kept):
        instead = next(use for word, use in AVOIDED.items() if re.fullmatch(word, found[0], re.IGNORECASE))
        around = kept[max(0, found.start() - 40) : found.end() + 40]
        yield f"{place}: {found[0]!r} (write: {instead}) in {around!r}"


def _parts(literal: ast.JoinedStr) -> str:
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in literal.values)


def _literals(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each phrase in the code: a string with a space in it that is not a docstring."""
    nodes = tuple(ast.walk(ast.parse(source)))
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            inner.update(id(part) for part in node.values)
            yield node.lineno, _parts(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.lineno, node.value


BEGINNINGS = re.compile(r"\s*(?:Of|By|As) ")
"""Beginnings of a docstring that needs its neighbour to be understood."""


def _fragments(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring, or note under a field, that begins in the middle of a sentence."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))) if BEGINNINGS.match(text):
                yield node.lineno, text
            case _:
                pass


NO_VERB = re.compile(
    r"[^A-Z]|(?:A|An|The|What|Whether|Nothing|While|When|Where|Which|How|Have|See|Its|Each|All|Other)\b"
)
"""Beginnings of a function's docstring that say what is there and not what the function does."""


def _nouns(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each function's docstring that does not begin with a verb; properties are nouns."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            is_property = any("property" in ast.unparse(one) for one in node.decorator_list)
            if not is_property and NO_VERB.match(text):
                yield node.lineno, text


def _command_help(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring that the command line prints as a command's help."""
    for function in ast.parse(source).body:
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("_"):
            yield function.lineno, ast.get_docstring(function) or ""


def _pages() -> Iterator[Path]:
    yield from (ROOT / name for name in ("README.md", ".env.example"))
    yield from sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name not in HISTORY)
    yield from sorted((ROOT / "prompts").glob("*.md"))
    yield from sorted((ROOT / "src").rglob("skills/built_in/*/*.md"))
    yield from sorted((ROOT / "presets").rglob("*.*"))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_messages_use_plain_words() -> None:
    """No error, hint, help text, note, tool description or phrase in the code contains an avoided word."""
    faults = [
        f"line {line}, {fault}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line, text in _literals(path.read_text(encoding="utf-8"))
        if " " in text.strip()
        for fault in _faults(_name(path), text)
    ]
    assert faults == [], "\n".join(faults)


def test_help_of_commands_uses_plain_words() -> None:
    """No docstring that becomes the help of a command contains an avoided word."""
    faults = [
        f"line {line}, {fault}"
        for path in sorted((ROOT / "src" / "explorer" / "cli" / "commands").glob("*.py"))
        for line, text in _command_help(path.read_text(encoding="utf-8"))
        for fault in _faults(_name(path), text)
    ]
    assert faults == [], "\n".join(faults)


def test_docstrings_are_understood_alone() -> None:
    """No docstring begins with "Of", "By" or "As"."""
    package = ROOT / "src" / "explorer"
    found = [
        f"{_name(path)}:{line}: {text.splitlines()[0]}"
        for path in sorted(package.rglob("*.py"))
        for line, text in _fragments(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_docstrings_of_functions_say_what_they_do() -> None:
    """No docstring of a function begins with an example, an article or a clause."""
    found = [
        f"{_name(path)}:{line}: {text.splitlines()[0]}"
        for path in sorted((ROOT / "src" / "explorer").rglob("*.py"))
        for line, text in _nouns(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_pages_and_prompts_use_plain_words() -> None:
    """No page for users, and no role's prompt, contains an avoided word outside of inline code."""
    faults = [
        fault
        for page in _pages()
        for fault in _faults(_name(page), INLINE_CODE.sub("` `", page.read_text(encoding="utf-8")))
    ]
    assert faults == [], "\n".join(faults)


def test_each_allowed_phrase_is_still_used() -> None:
    """The list of exceptions contains no phrase that its file no longer has."""
    unused = [
        allowed for allowed in ALLOWED if allowed.phrase not in (ROOT / allowed.place).read_text(encoding="utf-8")
    ]
    assert unused == []


def test_a_fragment_is_found_in_code() -> None:
    """A planted docstring that begins with "Of" is found under a field and in a function, and "Often" is not."""
    code = 'LIMIT = 1\n"""Of one file."""\ndef act():\n    """As it was."""\nclass A:\n    """Often used."""\n'
    assert [line for line, _ in _fragments(code)] == [2, 4]


def test_a_function_without_a_verb_is_found_in_code() -> None:
    """A planted docstring that begins with an example is found, and a property's is not."""
    code = 'def cost():\n    """`$0.01`."""\nclass A:\n    @property\n    def b(self):\n        """The size."""\n'
    assert [line for line, _ in _nouns(code)] == [1]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ('raise ConfigError("the file is broken", hint="mend the file")', ["mend"]),
        ('say(f"{name} goes on beside {other}")', ["goes on", "beside"]),
        ('Field(description="Of each helper: its task")', ["Of"]),
        ('raise ToolError("the name " "stands first")', ["stands"]),
        ('say("what came from outside is no URL")', ["from outside", "is no"]),
        ('say("a folder outside the run; there is no URL; foldable lifetimes")', []),
        ('"""Mends what stands beside."""', []),
    ],
)
def test_an_avoided_word_is_found_in_code(code: str, words: list[str]) -> None:
    """A planted word is found in plain, joined and formatted texts, and nothing in words that only contain it."""
    faults = [fault for _, text in _literals(code) for fault in _faults("planted.py", text)]
    assert len(faults) == len(words)
    assert all(repr(word) in fault for word, fault in zip(words, faults, strict=True))
