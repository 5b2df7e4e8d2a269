"""Files of a run's folder that a check reads, and those that it leaves there: `claims.jsonl` and `sources.jsonl`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from explorer.reports.verify.claims import Judgements, TextOf, Verification
from explorer.schema.errors import NotFoundError, ToolError
from explorer.schema.events import Source
from explorer.schema.messages import JsonObject
from explorer.text.citations import cited_ids, with_source_ids
from explorer.workspace.access import DRAFT, REPORT
from explorer.workspace.source_store import stored_at, stored_text
from explorer.workspace.workspace import Workspace

CLAIMS = ".explorer/claims.jsonl"
SOURCES = ".explorer/sources.jsonl"
TEXT_ENDINGS = (".md", ".txt", ".markdown", ".html", ".json", ".csv")
"""Suffixes of files that agents write citations in."""


class Draft(NamedTuple):
    """A text with `[S12]` citations, and the file whose lines it has."""

    path: str
    text: str


def draft_of(workspace: Workspace) -> Draft:
    """Return the report of a run: as it was rendered, as an agent just wrote it, or its draft when there is no other.

    Raises:
        NotFoundError: There is none.
    """
    for path in (REPORT, DRAFT):
        try:
            return Draft(path, with_source_ids(workspace.read_text(path)))
        except ToolError:
            continue
    name = workspace.folder.name
    raise NotFoundError(f"run {name} has no report to check", hint=f"finish it: explorer resume {name}")


def text_reader(workspace: Workspace) -> TextOf:
    """Return how the stored text of a source is read: None when its file is not there, or is no text."""

    def text_of(identifier: str) -> str | None:
        try:
            return stored_text(workspace.read_text(stored_at(identifier)))
        except ToolError:
            return None

    return text_of


def write_results(
    workspace: Workspace,
    draft: Draft,
    sources: Mapping[str, Source],
    verification: Verification,
    judged: Judgements | None = None,
) -> None:
    """Write both files anew.

    Raises:
        StorageError: The disk refused.
        ToolError: A file would be larger than a run's files may be.
    """
    workspace.write_own(CLAIMS, _lines(claim_rows(verification, judged)))
    workspace.write_own(SOURCES, _lines(source_rows(sources, cited_in(workspace, draft))))


def claim_rows(verification: Verification, judged: Judgements | None = None) -> list[JsonObject]:
    """Return each claim, and each uncited sentence with no ids; `judged` only where a model was asked."""
    rows = [claim.model_dump(mode="json") for claim in (*verification.claims, *verification.uncited)]
    if judged is not None:
        for row, answer in zip(rows, judged.answers, strict=False):
            row["judged"] = None if answer is None else str(answer)
    return rows


def source_rows(sources: Mapping[str, Source], places: Mapping[str, Sequence[str]]) -> Iterable[JsonObject]:
    """Yield each source of the run, whether the report cites it, and which files do."""
    # By their numbers: sources that come together are recorded in any order.
    for source in sorted(sources.values(), key=lambda one: (len(one.id), one.id)):
        files = list(places.get(source.id, ()))
        row = source.model_dump(
            mode="json", include={"id", "url", "title", "kind", "via", "retrieved", "sha256", "chars"}
        )
        row |= {"flags": list(source.flags), "language": source.language}
        yield row | {"cited": REPORT in files, "cited_in": files}


def cited_in(workspace: Workspace, draft: Draft) -> dict[str, list[str]]:
    """Return the files that cite each id, in the order of their names; the draft counts as the report."""
    places: dict[str, list[str]] = {}
    texts = {REPORT: draft.text}
    for file in workspace.files():
        if file.path not in {REPORT, DRAFT} and file.path.endswith(TEXT_ENDINGS):
            try:
                texts[file.path] = workspace.read_text(file.path)
            except ToolError:  # no text after all
                continue
    for path, text in sorted(texts.items()):
        for identifier in dict.fromkeys(cited_ids(text)):
            places.setdefault(identifier, []).append(path)
    return places


def _lines(rows: Iterable[JsonObject]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
