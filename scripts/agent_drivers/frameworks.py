"""Asks one prompt of an agent made with a library: NAME PROGRAM PROMPT. Runs in an environment of those libraries."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib import import_module
from typing import Any


async def langchain(program: str, prompt: str) -> Any:
    """Ask LangChain's agent with the tools of langchain-mcp-adapters."""
    client = import_module("langchain_mcp_adapters.client").MultiServerMCPClient
    server = {"command": program, "args": ["mcp"], "transport": "stdio", "env": dict(os.environ)}
    tools = await client({"recollect": server}).get_tools()
    model = import_module("langchain_openai").ChatOpenAI(model="scripted")
    agent = import_module("langchain.agents").create_agent(model, tools)
    return (await agent.ainvoke({"messages": [("user", prompt)]}))["messages"][-1].content


async def pydantic(program: str, prompt: str) -> Any:
    """Ask pydantic-ai's agent."""
    stdio = import_module("fastmcp.client.transports").StdioTransport
    server = import_module("pydantic_ai.mcp").MCPToolset(stdio(program, ["mcp"], env=dict(os.environ)))
    agent = import_module("pydantic_ai").Agent("openai-chat:scripted", toolsets=[server])
    async with agent:
        return (await agent.run(prompt)).output


async def openai(program: str, prompt: str) -> Any:
    """Ask the agent of the OpenAI Agents SDK."""
    stdio = import_module("agents.mcp").MCPServerStdio
    agents = import_module("agents")
    params = {"command": program, "args": ["mcp"], "env": dict(os.environ)}
    async with stdio(params, client_session_timeout_seconds=60) as server:
        agent = agents.Agent(name="Scripted", model="scripted", mcp_servers=[server])
        return (await agents.Runner.run(agent, prompt)).final_output


if __name__ == "__main__":
    asks = {"langchain-mcp-adapters": langchain, "pydantic-ai": pydantic, "openai-agents": openai}
    print(asyncio.run(asks[sys.argv[1]](*sys.argv[2:])))
