"""A run whose helper asks another explorer over MCP: our client and our server together, as processes."""

import json
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from cli.stage import SCRIPT, Explorer
from explorer.testing import ScriptedServer, says
from team_script import only_run

REPORT = "# Ropes\n\nThe harbour master says “The ropes cost 120 euros in March 2026” [{source}].\n"


@pytest.mark.slow
def test_a_run_starts_another_cites_its_report_and_is_verified(explorer: Explorer, tmp_path: Path) -> None:
    """The other run's report and its source become sources of this one; a quote of them is found where it is cited."""
    notes, other = tmp_path / "notes", tmp_path / "other"
    notes.mkdir()
    (notes / "ropes.md").write_text("# Ropes\n\nThe ropes cost 120 euros in March 2026, said the harbour master.\n")
    flags = ["--ignore-folder", "--model", "offline", "--no-shell", "--workspace", str(other), "--corpus", str(notes)]
    entry = [f'command = "{SCRIPT}"', f"args = {json.dumps(['mcp', 'serve', *flags])}", 'roles = ["searcher"]']
    (tmp_path / "explorer.toml").write_text("\n".join(["[mcp.other]", *entry, 'sandbox = "off"', ""]))
    task = {"agent_type": "searcher", "task_description": "Ask the other explorer what the ropes cost."}
    script = (
        says("A helper asks.", ("call_agent", task)),
        says("I ask.", ("mcp__other__start_exploration", {"question": "What do the ropes cost?"})),
        says("I wait.", ("mcp__other__wait_for_report", {"run_id": "latest", "timeout_s": 100})),
        says("I look.", ("mcp__other__read_source", {"run_id": "latest", "source_id": "S1"})),
        says("It is in the source [S3]."),
        says("Now the report.", ("write_file", {"filepath": "report.md", "content": REPORT.format(source="S3")})),
        says("Done.", ("finish_exploration", {"summary": "120 euros."})),
    )
    with ScriptedServer(script) as server:
        settings = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-loopback-1", "OPENAI_MODEL": "scripted"}
        done = explorer("--trust-folder", "What do the ropes cost?", **settings)
    assert done.returncode == 0, done.stderr
    assert "120 euros in March 2026” [1]" in done.stdout
    assert json.loads(explorer("verify", "--output-format", "json").stdout)["counts"]["supported"] == 1
    assert "120 euros" in (only_run(other) / "report.md").read_text()
