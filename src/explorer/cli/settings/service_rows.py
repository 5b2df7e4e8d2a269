"""The rows of the table of settings that say where outside services are."""

from explorer.cli.settings.forms import A_URL, A_URL_OR_NONE, ANY_TEXT, Setting, hosts, text, url, url_or_none

SERVICES: tuple[Setting, ...] = (
    Setting(
        "services.anthropic_url",
        "ANTHROPIC_BASE_URL",
        "services.anthropic_url",
        "Anthropic's API, or a proxy of it",
        url,
        A_URL,
    ),
    Setting(
        "services.openai_url",
        "OPENAI_BASE_URL",
        "services.openai_url",
        "OpenAI's API, or a compatible server like http://127.0.0.1:11434/v1",
        url,
        A_URL,
    ),
    Setting(
        "services.hn_api_url",
        "EXPLORER_HN_API_URL",
        "services.hn_api_url",
        "Hacker News API",
        url,
        A_URL,
    ),
    Setting(
        "services.hn_search_url",
        "EXPLORER_HN_SEARCH_URL",
        "services.hn_search_url",
        "Hacker News search API",
        url,
        A_URL,
    ),
    Setting("services.tavily_url", "EXPLORER_TAVILY_URL", "services.tavily_url", "Tavily's API", url, A_URL),
    Setting("services.searxng_url", "EXPLORER_SEARXNG_URL", "services.searxng_url", "Your SearXNG", url, A_URL),
    Setting("services.brave_url", "EXPLORER_BRAVE_URL", "services.brave_url", "Brave's search API", url, A_URL),
    Setting("services.exa_url", "EXPLORER_EXA_URL", "services.exa_url", "Exa's search API", url, A_URL),
    Setting(
        "services.reddit_url",
        "EXPLORER_REDDIT_URL",
        "services.reddit_url",
        "Reddit's API, token, archive and feeds, all in one place",
        url,
        A_URL,
    ),
    Setting(
        "services.reader_url",
        "EXPLORER_READER_URL",
        "services.reader_url",
        "Reader that pages are read through; empty: Jina's where JINA_API_KEY is set; none: pages are read directly",
        url_or_none,
        A_URL_OR_NONE,
    ),
    Setting(
        "services.allow_hosts",
        "EXPLORER_ALLOW_HOSTS",
        "services.allow_hosts",
        "Hosts whose private or loopback addresses may be fetched, parted by commas",
        hosts,
        "host names parted by commas, like 127.0.0.1,intranet.example",
    ),
    Setting(
        "services.otlp_endpoint",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "services.otlp_endpoint",
        "OpenTelemetry collector that a run's spans are sent to; empty: none are made",
        # Other programs may have it set for another protocol: that is told when a run starts, and refuses none.
        text,
        ANY_TEXT,
    ),
    Setting(
        "services.otlp_traces_endpoint",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "services.otlp_traces_endpoint",
        "The same for spans alone, with its whole path",
        text,
        ANY_TEXT,
    ),
)
