"""A team whose models fail at random, the same way in every run of the same seed."""

import random
from collections import Counter

from explorer.agents.decisions import WORDS
from explorer.schema.reasons import NoteReason
from faults.fault_table import TABLE
from faults.stage import pairs, steady
from model_servers import Asked, Reply
from team_script import role_of

MOST_IN_A_ROW = 5
"""Faults at one and the same request: fewer than the engine's patience, so that every run can end well."""
MOST_FLAWS = 4
"""Turns of one conversation that bring nothing usable: more of them would rightly end it."""
SLOW = {"silence", "pings only", "ten megabytes", "429 with retry-after of a day", "429 until 2099"}
PASSING = tuple(row for row in TABLE if row.stops is None and not row.is_partial and row.name not in SLOW)
WITHOUT_A_TURN = tuple(row for row in PASSING if row.fault is not None)


class Chaos:
    """The steady team, of which a share of all replies is a fault of the table.

    Which request fails, and how, is drawn from who asks for what: threads may come in any order.
    """

    def __init__(self, seed: int, share: float, parts: int = 2) -> None:
        self._seed = seed
        self._share = share
        self._parts = parts
        self._seen: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.asked = 0

    def __call__(self, asked: Asked) -> Reply:
        """Answer, or fail."""
        self.asked += 1
        # Of the task alone: the context after it says which day of the week it is.
        key = f"{role_of(asked)} {asked.task[:80]} {len(asked.results)} {len(asked.said)}"
        self._seen[key] += 1
        chance = random.Random(f"{self._seed} {key} {self._seen[key]}")  # noqa: S311 - a test's dice
        if self._seen[key] > MOST_IN_A_ROW or chance.random() > self._share:
            return steady(asked, self._parts)
        # Two empty replies in a row would rightly end the conversation.
        may_bring_a_turn = _flaws(asked) < MOST_FLAWS and asked.said[-1] != WORDS[NoteReason.EMPTY_REPLY]
        row = chance.choice(PASSING if may_bring_a_turn else WITHOUT_A_TURN)
        self.faults[row.name] += 1
        return row.at(asked)


def _flaws(asked: Asked) -> int:
    bad = [name for name, arguments, _ in pairs(asked) if not arguments or name == "format_disk"]
    return len(bad) + len(asked.said) - 1
