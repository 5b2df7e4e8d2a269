"""A session in lean mode: one agent, short first words, and sources that are read in small pages."""

from collections.abc import Iterable

from explorer.agents.context_block import RunFacts
from explorer.lean.progress import PAGE_CHARS
from explorer.run.resources import RunResources
from explorer.run.session import RunSession
from explorer.schema.tool import Tool
from explorer.sources.date_ranges import zone_named
from explorer.text.rendering import ModelText, by_user, code, inline, own, render
from explorer.tools.sources import ReadSourceTool
from explorer.workspace.source_store import SourceStore


class LeanSession(RunSession):
    """A session of a run whose one agent fills in forms."""

    def all_tools(self, resources: RunResources, own: Iterable[Tool]) -> dict[str, Tool]:
        """Return the tools of a run, with shorter pages of sources."""
        reading = ReadSourceTool(self.workspace, lambda: self.run_state.sources, PAGE_CHARS)
        return {**super().all_tools(resources, own), reading.name: reading}

    @property
    def plan_tools(self) -> list[Tool]:
        """Empty: the one agent calls nobody."""
        return []

    async def facts(self, resources: RunResources) -> RunFacts | None:  # noqa: ARG002 - of the method it replaces
        """Return nothing: the first words have the date and the files, and forms show the rest."""
        return None

    async def first_words(self, source_store: SourceStore) -> ModelText:  # noqa: ARG002 - of the method it replaces
        """Return the question, the date, and what can be read: each word costs a small machine time."""
        self.workspace.write_own("question.txt", self.question)
        sources = [
            own("{id} {title}", id=code(one.id), title=inline(one.title)) for one in self.run_state.sources.values()
        ]
        language, today = self.settings.language, self.now().astimezone(zone_named(self.settings.timezone))
        return render(
            own("The question: {question}", question=by_user(self.question)),
            own("Today: {date:%Y-%m-%d}.", date=today),
            own("Language of the answer: {language}.", language=by_user(language)) if language else own(""),
            own("Sources:\n{sources}", sources=render(*sources)) if sources else own(""),
            own("A folder of the user's can be searched.") if self.settings.corpus is not None else own(""),
        )
