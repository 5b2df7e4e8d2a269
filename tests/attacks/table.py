"""Print how many attacks were tried and how many succeeded, by area.

    uv run python tests/attacks/table.py              all areas
    uv run python tests/attacks/table.py folders      the areas named

Each attack is tried against the product, and once more where the guard is absent (the control), where it has to
succeed. The exit code is 1 when an attack succeeds that is not a named residue, or when a control fails.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])

from attacks.areas import AREAS
from attacks.attack import Attack

WIDTH = 24


@dataclass(frozen=True)
class Outcome:
    """The outcome of one attack."""

    attack: Attack
    skipped: str
    """What the machine lacks for it; empty: it was tried."""
    is_done: bool = False
    """Whether the attempt succeeded."""
    has_teeth: bool = True
    """Whether the control succeeded."""

    @property
    def is_bad(self) -> bool:
        """Whether it shows a fault of the product or of the attack itself."""
        return not self.skipped and (not self.has_teeth or self.is_done != bool(self.attack.residue))

    @property
    def line(self) -> str:
        """The outcome in a line; empty where there is nothing to say. What was skipped is said together."""
        if self.skipped:
            return ""
        if not self.has_teeth:
            return f"NO CONTROL {self.attack.name}: it does not succeed without the guard either"
        if self.is_done and self.attack.residue:
            return f"residue    {self.attack.name}: {self.attack.residue}"
        if self.is_done:
            return f"SUCCEEDED  {self.attack.name}: {self.attack.tried}"
        return f"STALE      {self.attack.name}: a residue that no longer succeeds" if self.attack.residue else ""


def outcome_of(attack: Attack, folder: Path) -> Outcome:
    """Try an attack and its control, each in a folder of its own."""
    lacking = attack.missing()
    if lacking:
        return Outcome(attack, lacking)
    attempt, control = folder / "attempt", folder / "control"
    attempt.mkdir()
    control.mkdir()
    return Outcome(attack, "", attack.attempt(attempt), attack.control(control))


def outcomes(attacks: Sequence[Attack]) -> Iterator[Outcome]:
    """Try all, one after the other."""
    for attack in attacks:
        with tempfile.TemporaryDirectory() as folder:
            yield outcome_of(attack, Path(folder))


def skipped(found: Sequence[Outcome]) -> Iterator[str]:
    """Yield a line for each group of attacks that lacked the same; a group has one word before the colon."""
    lacking = [(outcome.attack.name.partition(":"), outcome.skipped) for outcome in found if outcome.skipped]
    counts = Counter((group if name else "", reason) for (group, _, name), reason in lacking)
    for (group, reason), count in counts.items():
        names = [first for (first, _, name), said in lacking if not name and said == reason]
        yield f"skipped    {f'{count} of {group}' if group else ', '.join(names)}: {reason}"


def main(names: Sequence[str]) -> int:
    """Print the table; return the exit code."""
    unknown = [name for name in names if name not in AREAS]
    if unknown:
        print(f"there is no area {unknown[0]}; there are: {', '.join(AREAS)}", file=sys.stderr)
        return 2
    is_bad = False
    print(f"{'area':<{WIDTH}}{'attempts':>9}{'succeeded':>11}{'controls':>10}{'skipped':>9}")
    for area in names or AREAS:
        found = list(outcomes(AREAS[area]))
        tried = [outcome for outcome in found if not outcome.skipped]
        counts = (sum(outcome.is_done for outcome in tried), sum(outcome.has_teeth for outcome in tried))
        print(f"{area:<{WIDTH}}{len(tried):>9}{counts[0]:>11}{counts[1]:>10}{len(found) - len(tried):>9}", flush=True)
        for line in filter(None, (*(outcome.line for outcome in found), *skipped(found))):
            print(f"  {line}")
        is_bad = is_bad or any(outcome.is_bad for outcome in found)
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
