"""What the server says when it is up: where it is, and how to connect the usual clients."""

from __future__ import annotations

from pathlib import Path


def connection_guide(url: str, data_dir: Path, *, token_command: str) -> str:
    """Ready-made lines for three clients. The token itself is not printed; ``token_command`` prints it."""
    endpoint = f"{url}/mcp"
    bearer = f"Authorization: Bearer $({token_command})"
    return f"""\
MemPersist serves {data_dir}
MCP endpoint  {endpoint}  (Streamable HTTP, bearer token: {token_command})

Claude Code:
  claude mcp add --transport http mempersist {endpoint} --header "{bearer}"

Cursor, in ~/.cursor/mcp.json, with the token in place of TOKEN:
  {{"mcpServers": {{"mempersist": {{"url": "{endpoint}", "headers": {{"Authorization": "Bearer TOKEN"}}}}}}}}

MCP Inspector:
  npx @modelcontextprotocol/inspector --cli {endpoint} --transport http --header "{bearer}" --method tools/list

Stop with Ctrl-C.
"""
