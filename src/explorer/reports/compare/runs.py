"""Lay two runs beside each other.

A source is the same when its canonical address is. A claim is a cited sentence of the report; two are the same claim
when they cite the same address in much the same words, and a changed one when numbers, names or quotes in it differ.
"""

from explorer.reports.compare.cited_sentences import cited_sentences
from explorer.reports.compare.claims import compared_claims
from explorer.reports.compare.comparison import ClaimDifference, Comparison
from explorer.reports.compare.snapshots import RunSnapshot
from explorer.reports.compare.sources import ComparedSources
from explorer.text.urls import url_key


def compare_runs(first: RunSnapshot, second: RunSnapshot) -> Comparison:
    """What is new, gone and changed in the second run."""
    before, after = (cited_sentences(snapshot.report, snapshot.sources, url_key) for snapshot in (first, second))
    new, gone, changed, same = compared_claims(before, after)
    cited = [{name for claim in claims for name in claim.ids} for claims in (before, after)]
    sources = ComparedSources(first, second, cited[0], cited[1])
    changed_sources = sources.changed()
    return Comparison(
        first=first.summary,
        second=second.summary,
        new_claims=tuple(ClaimDifference(before=None, after=claim) for claim in new),
        gone_claims=tuple(ClaimDifference(before=claim, after=None) for claim in gone),
        changed_claims=tuple(changed),
        same_claims=same,
        new_sources=sources.new(),
        gone_sources=sources.gone(),
        changed_sources=changed_sources,
        same_sources=sources.same(changed_sources),
    )
