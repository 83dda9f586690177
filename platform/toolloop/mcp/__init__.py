"""MCP servers as tools: a guarded client over the official SDK, with detection of schema drift.

Importing this package is cheap; the SDK is loaded when a server is connected.
"""

from toolloop.mcp.client import McpServer
from toolloop.mcp.drift import Change, Drift
from toolloop.mcp.failures import McpError
from toolloop.mcp.toolset import McpToolset
from toolloop.mcp.transports import HttpTransport, StdioTransport

__all__ = ["Change", "Drift", "HttpTransport", "McpError", "McpServer", "McpToolset", "StdioTransport"]
