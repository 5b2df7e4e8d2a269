"""explorer as a server of the Model Context Protocol (MCP): other agents start runs and read what they found."""
