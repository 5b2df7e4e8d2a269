"""The port to models: adapters for each wire protocol, the choice between them, retry and prices."""
