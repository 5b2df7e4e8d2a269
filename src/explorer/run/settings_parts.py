"""The parts of the settings that other packages are handed: none of them sees the whole."""

from explorer.llm.options import ModelSetup
from explorer.llm.vendors import ConfiguredVendor
from explorer.run.extensions import Extensions, installed_extensions
from explorer.schema.settings import Settings
from explorer.sources.http.caller import Caller
from explorer.sources.search.selection import ConfiguredEngine, SearchSetup


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
        vendors={
            name: ConfiguredVendor(vendor, settings.extension(name, vendor.settings))
            for name, vendor in installed_extensions().vendors.items()
        },
        price=settings.price,
        network=settings.network,
        # The orchestrator asks at the same time as its helpers.
        max_parallel_requests=settings.limits.max_parallel_agents + 1,
    )


def search_setup(settings: Settings, extensions: Extensions | None = None) -> SearchSetup:
    """Return what choosing and opening search engines needs."""
    extensions = extensions or installed_extensions()
    engines = (ConfiguredEngine(one, settings.extension(one.name, one.settings)) for one in extensions.engines)
    return SearchSetup(tuple(engines), settings.search, Caller(settings.network, settings.contact), settings.is_sample)
