"""The interface to models: an adapter for each API, the choice of models, retries and prices."""
