"""explorer: a question becomes a run, and a cited report comes out."""

from loguru import logger

__version__ = "0.1.0"

# The library is silent until asked; the command line calls `logger.enable("explorer")`.
logger.disable("explorer")
