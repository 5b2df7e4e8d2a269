"""A long run of one agent: it reads a long file piece by piece, with many words each time, and writes a report."""

from pathlib import Path

from pydantic import SecretStr

from explorer.agents.decisions import WORDS
from explorer.agents.roles import built_in_roles
from explorer.schema.reasons import NoteReason
from explorer.schema.settings import Limits, Secrets, Services, Settings
from model_servers import Asked, ModelServer, Reply

QUESTION = "What does the plant's log say?"
LINE = "The plant fed the grid on day {}, and its log says when and how much it was, hour by hour."
LINES_A_STEP = 80
NOTES = "I read the log up to where I am [S1]; nothing was tried in vain; the rest is still to be read."
REPORT = '# The log\n\nThe log says "The plant fed the grid on day 1" [S1].\n'


class Reader:
    """A model that reads a long file piece by piece, with many words each time, and then writes the report."""

    def __init__(self, steps: int, words: int) -> None:
        self._steps, self._words = steps, words
        self._taken = 0

    def __call__(self, asked: Asked) -> Reply:
        """Say what comes next."""
        if asked.said[-1] == WORDS[NoteReason.SUMMARISE]:
            return Reply(text=NOTES)
        self._taken += 1
        if self._taken <= self._steps:
            first = (self._taken - 1) * LINES_A_STEP + 1
            piece = {"filepath": "inputs/log.txt", "start_line": first, "end_line": first + LINES_A_STEP - 1}
            text = f"Piece {self._taken}. " + "word " * (self._words // 5)
            note = {"filepath": f"notes/{self._taken}.md", "content": f"Piece {self._taken} [S1]."}
            look = ("write_file", note) if self._taken % 5 == 0 else ("list_files", {"path": f"part-{self._taken}"})
            return Reply(text=text, calls=[("read_file", piece), look])
        if self._taken == self._steps + 1:
            return Reply(thinking="All is read.", calls=[("write_file", {"filepath": "report.md", "content": REPORT})])
        return Reply(calls=[("finish_exploration", {"summary": "It fed the grid each day."})])


def settings(server: ModelServer, tmp_path: Path, steps: int, model: str = "anthropic:claude-opus-5-5") -> Settings:
    """Write the file, and say how the run is made."""
    log = tmp_path / "log.txt"
    log.write_text("".join(f"{LINE.format(day + 1)}\n" for day in range(steps * LINES_A_STEP)))
    roles = tmp_path / "roles"
    roles.mkdir(exist_ok=True)
    leading = (built_in_roles() / "orchestrator.md").read_text()
    (roles / "orchestrator.md").write_text(leading.replace("max_steps: 60", f"max_steps: {steps + 50}"))
    return Settings(
        workspace=tmp_path / "workspace",
        reports_dir=tmp_path / "reports",
        model=model,
        files=(log,),
        roles_dir=roles,
        services=Services(anthropic_url=server.url, openai_url=server.url),
        secrets=Secrets(anthropic_key=SecretStr("key"), openai_key=SecretStr("key")),
        limits=Limits(max_steps=steps + 50, max_agents=0, max_cost_usd=None),
        shell="off",
        context_window=40_000,
    )
