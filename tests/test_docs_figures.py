"""Limits and defaults that README and docs name are those of the program."""

from pathlib import Path

import pytest

from explorer.agents.budget import (
    LEADING_TOKENS,
    LEAST_EXPLORING_TOKENS,
    LEAST_SHARE,
    LEAST_WRITING_TOKENS,
    MIN_OUTPUT_TOKENS,
    MOST_SHARE,
    WRITING_TOKENS,
)
from explorer.agents.compaction import DEFAULT_SHARE, DEFAULT_WINDOW_TOKENS, LOCAL_WINDOW_TOKENS, MATERIAL_USD
from explorer.agents.user_stop import REPORT_S
from explorer.documents.corpus.folder import MAX_FILE_BYTES
from explorer.fleet import submission
from explorer.llm.retry import MAX_OUTAGE_S, MAX_PROBE_WAIT_S
from explorer.mcp_client import connection, transports
from explorer.reports.formats.document import MAX_IMAGE_BYTES
from explorer.sandbox.attacks import ATTACKS
from explorer.schema.limits import DEFAULT_COST_USD, DEFAULT_TOKENS
from explorer.server.security import MAX_BODY_BYTES
from explorer.skills import skill, tree
from explorer.sources.http.url_allowlist import LINK_BITS

ROOT = Path(__file__).resolve().parents[1]
MIB = 1024 * 1024
FIGURES = (
    ("README.md", f"the report within {REPORT_S:.0f} seconds"),
    ("README.md", f"files over {MAX_FILE_BYTES // MIB} MB are skipped"),
    ("README.md", f"default limit is ${DEFAULT_COST_USD:.0f} per question, or {DEFAULT_TOKENS:,} tokens"),
    ("README.md", f"waits up to {MAX_OUTAGE_S / 60:.0f} minutes"),
    ("README.md", f"The self-test tries {len(ATTACKS)} escapes"),
    ("SECURITY.md", f"tell the owner of a domain {LINK_BITS:.0f} bits"),
    ("docs/configuration.md", f"{WRITING_TOKENS[0]:,} input and {WRITING_TOKENS[1]:,} output tokens"),
    ("docs/configuration.md", f"and {LEADING_TOKENS[0]:,} and {LEADING_TOKENS[1]:,} of the orchestrator's"),
    ("docs/configuration.md", f"For tokens, it is {sum(WRITING_TOKENS) + sum(LEADING_TOKENS):,}"),
    ("docs/configuration.md", f"at least {LEAST_SHARE:.0%} and at most {MOST_SHARE:.0%}".replace("%", " %")),
    ("docs/configuration.md", f"shortened to as few as {MIN_OUTPUT_TOKENS:,} tokens"),
    (
        "docs/configuration.md",
        f"{LEAST_WRITING_TOKENS:,} tokens, or the orchestrator one of {LEAST_EXPLORING_TOKENS:,}",
    ),
    ("docs/configuration.md", f"of its model's window ({DEFAULT_SHARE})"),
    ("docs/configuration.md", f"at least ${MATERIAL_USD} and a quarter"),
    ("docs/configuration.md", f"{DEFAULT_WINDOW_TOKENS:,} tokens are assumed"),
    ("docs/configuration.md", f"on this machine {LOCAL_WINDOW_TOKENS:,}"),
    ("docs/configuration.md", f"at most {MAX_PROBE_WAIT_S:.0f} s apart"),
    (
        "docs/fleet.md",
        f"up to {submission.MAX_FILES}, {MAX_FILE_BYTES // MIB} MB each and {submission.MAX_BYTES // MIB} MB",
    ),
    (
        "docs/mcp.md",
        f"{transports.MAX_MESSAGE_BYTES // MIB} MiB for a message, {transports.MAX_UNASKED_BYTES // MIB} MiB",
    ),
    ("docs/mcp.md", f"{connection.MAX_TOOLS:,} tools"),
    ("docs/outputs.md", f"at most {MAX_IMAGE_BYTES // 1_000_000} MB"),
    ("docs/skills.md", f"The text may have {skill.MAX_BODY_CHARS:,} characters"),
    (
        "docs/skills.md",
        f"over {tree.MAX_FILE_BYTES // MIB} MB, more than {tree.MAX_FILES} files or {tree.MAX_BYTES // MIB} MB",
    ),
    ("docs/skills.md", f"more than {tree.MAX_SKILLS} skills"),
    ("docs/web.md", f"more than {MAX_BODY_BYTES // 1_000_000} MB"),
)
"""Pages, each with a phrase that names a figure."""


@pytest.mark.parametrize(("page", "phrase"), FIGURES)
def test_a_page_names_the_figure_of_the_program(page: str, phrase: str) -> None:
    """The phrase, made with the program's own value, is on the page."""
    assert phrase in " ".join((ROOT / page).read_text(encoding="utf-8").split())
