"""Addresses that agents may open without having seen them, so that research is possible when search is down.

They are fixed: a model chooses one, and can put nothing of its own into it. They count as the links of a page do
(`url_allowlist.py`), and so do the links that they have. They are front pages, lists and feeds of news, statistics,
science and software that anybody knows.
"""

from collections.abc import Iterator
from typing import LiteralString

NAMED: LiteralString = "www.bbc.com, www.reuters.com, en.wikipedia.org, data.worldbank.org, www.nature.com, lwn.net"
"""Some of the hosts, for a message to a model."""
FRONT_PAGES = """
www.aljazeera.com apnews.com www.bbc.com www.bloomberg.com www.cnn.com www.dw.com elpais.com www.euronews.com
www.ft.com www.france24.com www.lemonde.fr www.nytimes.com www.nhk.or.jp www.npr.org www.reuters.com www.scmp.com
www.spiegel.de www.tagesschau.de www.theguardian.com www.washingtonpost.com www.wsj.com www.economist.com
www.politico.com arstechnica.com www.heise.de lwn.net www.phoronix.com www.techcrunch.com www.theregister.com
www.theverge.com www.wired.com en.wikipedia.org de.wikipedia.org es.wikipedia.org fr.wikipedia.org ja.wikipedia.org
zh.wikipedia.org ru.wikipedia.org www.britannica.com www.wikidata.org ourworldindata.org data.worldbank.org
www.worldbank.org www.imf.org www.oecd.org www.un.org www.who.int www.wto.org www.iea.org www.ipcc.ch www.ilo.org
www.fao.org ec.europa.eu europa.eu www.ecb.europa.eu www.bls.gov www.census.gov www.cdc.gov www.fda.gov www.nih.gov
www.nasa.gov www.noaa.gov www.sec.gov www.federalreserve.gov www.federalregister.gov www.congress.gov www.gov.uk
www.ons.gov.uk www.legislation.gov.uk www.destatis.de www.stats.gov.cn arxiv.org www.nature.com www.science.org
www.pnas.org www.thelancet.com www.nejm.org pubmed.ncbi.nlm.nih.gov www.cochranelibrary.com phys.org
www.quantamagazine.org home.cern www.esa.int openalex.org github.com stackoverflow.com developer.mozilla.org
docs.python.org www.python.org www.rust-lang.org go.dev nodejs.org www.kernel.org www.postgresql.org www.debian.org
pypi.org www.npmjs.com www.w3.org www.rfc-editor.org www.iana.org
""".split()  # noqa: SIM905 - a list of hosts reads better as text
PAGES = (
    "https://en.wikipedia.org/wiki/Portal:Current_events",
    "https://feeds.bbci.co.uk/news/rss.xml",
    "https://feeds.bbci.co.uk/news/world/rss.xml",
    "https://www.theguardian.com/international/rss",
    "https://github.com/trending",
    "https://lobste.rs/",
    "https://www.sec.gov/newsroom/press-releases",
    "https://www.cisa.gov/known-exploited-vulnerabilities-catalog",
)


def well_known_addresses() -> Iterator[str]:
    """Yield the addresses, front pages with and without `www`."""
    for host in FRONT_PAGES:
        yield f"https://{host}/"
        if host.startswith("www."):
            yield f"https://{host.removeprefix('www.')}/"
    yield from PAGES
