"""A client without a language model: it plans by rule and writes by extraction."""
