"""Every attack of the table fails against the product, and succeeds where the guard is absent."""

import os
from pathlib import Path

import pytest

from attacks.areas import AREAS
from attacks.attack import Attack
from attacks.table import Outcome, outcome_of

ROOT = Path(__file__).resolve().parents[2]
CASES = [pytest.param(area, attack, id=f"{area}-{attack.name}") for area, found in AREAS.items() for attack in found]


@pytest.mark.slow
@pytest.mark.parametrize(("area", "attack"), CASES)
def test_no_attack_succeeds(area: str, attack: Attack, tmp_path: Path) -> None:
    """Nothing is gained; where something is for now, SECURITY.md names it."""
    outcome = outcome_of(attack, tmp_path)
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    assert not outcome.is_bad, (area, outcome.line)


def test_security_names_every_residue() -> None:
    """An attack that succeeds for now is in SECURITY.md, by name."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert [one.name for found in AREAS.values() for one in found if one.residue and one.name not in text] == []


@pytest.mark.parametrize("row", ["root", "an ordinary user"])
def test_security_counts_every_attack(row: str) -> None:
    """Its table has the number of today's attacks, and of those that succeed for now, for each kind of user."""
    if row == "root" and os.geteuid() != 0:
        pytest.skip("the attacks that root tries are listed for root alone")
    tried = [one for found in AREAS.values() for one in found if row == "root" or not one.is_roots]
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert f"| {row} | {len(tried):,} | {sum(bool(one.residue) for one in tried)}: " in text


def test_names_are_unique() -> None:
    """No area has two attacks of one name."""
    for area, found in AREAS.items():
        assert len({attack.name for attack in found}) == len(found), area


def test_an_attack_without_a_control_is_a_fault() -> None:
    """An attempt that never succeeds proves nothing; one that succeeds is a fault unless it is a named residue."""
    tame = Attack("tame", "Nothing is tried.", lambda _: False, lambda _: False)
    open_door = Attack("open", "It walks in.", lambda _: True, lambda _: True, residue="the door is open")
    assert Outcome(tame, "", is_done=False, has_teeth=False).is_bad
    assert Outcome(tame, "", is_done=True).is_bad
    assert not Outcome(open_door, "", is_done=True).is_bad
    assert Outcome(open_door, "", is_done=False).is_bad, "a residue that no longer succeeds has to be taken out"
