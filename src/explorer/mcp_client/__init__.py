"""MCP servers as a client: connections that one task owns each, and tools made of what servers list."""
