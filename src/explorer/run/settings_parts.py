"""The parts of the settings that other packages are handed: none of them sees the whole."""

from explorer.llm.options import ModelSetup
from explorer.schema.settings import Settings
from explorer.sources.http.caller import Caller
from explorer.sources.search.selection import SearchSetup

SEARCH_ADDRESSES = {
    "tavily": "tavily_url",
    "tavily-keyless": "tavily_url",
    "brave": "brave_url",
    "exa": "exa_url",
    "searxng": "searxng_url",
}
"""By search engine: the name of its address in the settings' services; `ddgs` has none."""


def model_setup(settings: Settings) -> ModelSetup:
    """Return what choosing and opening models needs."""
    services, secrets = settings.services, settings.secrets
    return ModelSetup(
        model=settings.model,
        role_models=settings.role_models,
        anthropic_model=settings.anthropic_model,
        openai_model=settings.openai_model,
        anthropic_key=secrets.anthropic_key,
        openai_key=secrets.openai_key,
        anthropic_url=services.anthropic_url,
        openai_url=services.openai_url,
        price=settings.price,
        network=settings.network,
        # The orchestrator asks at the same time as its helpers.
        max_parallel_requests=settings.limits.max_parallel_agents + 1,
    )


def search_setup(settings: Settings) -> SearchSetup:
    """Return what choosing and opening search engines needs."""
    secrets = settings.secrets
    keys = {"tavily": secrets.tavily_key, "brave": secrets.brave_key, "exa": secrets.exa_key}
    return SearchSetup(
        engine=settings.search,
        keys={name: key.get_secret_value() for name, key in keys.items()},
        urls={name: str(getattr(settings.services, field)) for name, field in SEARCH_ADDRESSES.items()},
        caller=Caller(settings.network, settings.contact),
        is_sample=settings.is_sample,
    )
