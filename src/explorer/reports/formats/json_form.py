"""A report as JSON, for programs: its text, the facts about it, its references, and the check of each sentence."""

import json

from explorer.reports.formats.document import ReportDocument
from explorer.text.citations import HEADING, REFERENCE

VERSION = 1


def json_form(document: ReportDocument) -> str:
    """Return a report as one JSON object; docs/outputs.md has its fields."""
    headings = list(HEADING.finditer(document.markdown))
    numbers = REFERENCE.findall(document.markdown, headings[-1].start()) if headings else []
    sources = {str(source.get("id")): source for source in document.sources}
    references = [{"number": int(number), "id": name, **sources.get(name, {})} for number, name in numbers]
    shown = {
        "version": VERSION,
        "title": document.title,
        "about": dict(document.fields),
        "markdown": document.markdown,
        "references": references,
        "claims": list(document.claims),
        "evidence": [card.model_dump(mode="json") for card in document.look_up().cards],
    }
    return json.dumps(shown, ensure_ascii=False, indent=1, default=str) + "\n"
