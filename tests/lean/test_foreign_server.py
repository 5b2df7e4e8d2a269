"""Lean mode with a model that is not known to be on this machine: its forms have no words of a source."""

import asyncio
import json
from pathlib import Path

from explorer.run.hooks import RunHooks
from explorer.run.run import start
from explorer.schema.events import Status
from explorer.schema.messages import JsonObject, Request, StopKind, Turn, Usage
from explorer.schema.settings import Settings
from team_script import NOTES, body_of

FACT = "Solar output rose by 12 % in May, says the plant's log."
INVENTED = "Solar output doubled in May."


class FormClient:
    """Reads what it is offered, then reports a sentence that it copied without its id, and one that nothing says."""

    def __init__(self) -> None:
        self.forms: list[JsonObject] = []

    async def generate(self, request: Request) -> Turn:
        """Fill in the form."""
        form = request.reply_schema or {}
        self.forms.append(form)
        action = {"action": "read", "sources": ["S1"]}
        if len(self.forms) > 1:
            action = {"action": "report", "facts": [FACT, INVENTED], "found": "yes", "answer": "It rose by 12 %."}
        return Turn(
            provider="own",
            model="own",
            blocks=(),
            text=json.dumps(action),
            calls=(),
            stop=StopKind.END,
            stop_detail="end",
            usage=Usage(),
        )


def test_a_form_for_a_foreign_server_has_no_words_of_a_source(tmp_path: Path) -> None:
    """Sentences are copied instead of chosen; one that no source says is not in the report."""
    (tmp_path / "notes.md").write_text(NOTES)
    client = FormClient()
    settings = Settings(workspace=tmp_path / "workspace", files=(tmp_path / "notes.md",), lean="on", shell="off")
    done = asyncio.run(start("How much did solar output rise in May?", settings, RunHooks(client=client)))
    assert done.status is Status.COMPLETE
    assert "facts" in json.dumps(client.forms[-1])
    assert "Solar output" not in json.dumps(client.forms)
    (run,) = (tmp_path / "workspace").glob("[!.]*")
    report = body_of((run / "report.md").read_text())
    assert f"“{FACT}” [1]" in report
    assert INVENTED not in report
