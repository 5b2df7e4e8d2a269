"""A search engine with a setting of its own: `GARDEN_ALMANAC`, `services.almanac_edition` in a file."""

from typing import Annotated

from explorer.schema.setting import TEXT, ExtensionSettings, Group, Setting
from explorer.sources.search.port import SearchAccess, SearchEngine, WebAnswer, WebHit, WebQuery, WebSearch


class AlmanacSettings(ExtensionSettings):
    """Which almanac is searched."""

    edition: Annotated[
        str, Setting("GARDEN_ALMANAC", TEXT, "Edition of the almanac that is searched", Group.SOURCES)
    ] = "2026"


class AlmanacSearch(WebSearch):
    """An almanac with one page. An engine with an API over HTTP derives `ApiSearch` and uses `access.rules(...)`."""

    name = "almanac"

    def __init__(self, edition: str) -> None:
        self._edition = edition

    async def search(self, query: WebQuery) -> WebAnswer:
        """Find the page, whatever is asked."""
        title = f"Almanac {self._edition}: {query.words}"
        hit = WebHit(title, "https://garden.example/almanac/chard", "When to cut chard.", self.name, rank=1)
        return WebAnswer(self.name, (hit,))


def _open(settings: AlmanacSettings, _access: SearchAccess) -> WebSearch:
    return AlmanacSearch(settings.edition)


ENGINE = SearchEngine("almanac", AlmanacSettings, _open, needs="edition")
