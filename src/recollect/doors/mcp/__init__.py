"""The door for agents: the verbs of the engine as MCP tools, over stdio (`recollect mcp`) and at /mcp of the server."""
