"""The tools, one module per family. ``mcp.registry`` has them all in order."""
