"""The adapters for OpenAI's two APIs and for compatible servers."""
