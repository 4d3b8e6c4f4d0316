"""The MCP server: its tools, resources and prompt, and the one place where an error becomes an answer.

On the protocol's lower level, so that the list of tools is no longer than it must be and every refusal is the engine's
own sentence.
"""

from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server as Protocol
from mcp.shared.exceptions import MCPError

from recollect import __version__
from recollect.doors.mcp import graph, guide, memories, pages, plans, questions, recall, resources
from recollect.doors.mcp.in_tools import in_tools
from recollect.doors.mcp.visits import Enter
from recollect.doors.running import Running
from recollect.errors import DatabaseProblem, NotFound, RecollectError
from recollect.logs import Logger
from recollect.model import Scope

log = Logger("recollect.mcp")

# In the order of use: what comes first is found first.
TOOLS = {
    tool.name: tool
    for tool in (*recall.TOOLS, *memories.TOOLS, *graph.TOOLS, *plans.TOOLS, *pages.TOOLS, *questions.TOOLS)
}
UNEXPECTED = "Something went wrong here; the log of the server knows more."


def scopes_of(method: str, name: str | None) -> tuple[Scope, ...]:
    """What a request needs one of; nothing is named where any key will do."""
    if method == "tools/call" and name in TOOLS:
        return TOOLS[name].scopes
    return resources.READING if method == "resources/read" else ()


def create_server(enter: Enter, running: Running) -> Protocol[dict[str, Any]]:
    """A server whose callers come in by `enter`, and whose calls are carried to their end by `running`."""

    async def list_tools(*_: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.listed() for tool in TOOLS.values()])

    async def call_tool(context: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            return await running.finish(_called(enter, context.request, asked))
        except RecollectError as problem:
            return _refused(_sentence(problem))
        except Exception as problem:  # what nobody foresaw: the log gets everything, the agent a sentence
            log.error("unexpected", tool=asked.name, exc_info=problem)
            return _refused(UNEXPECTED)

    async def list_templates(*_: object) -> types.ListResourceTemplatesResult:
        return resources.templates()

    async def list_resources(*_: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])

    async def read_resource(context: Any, asked: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(asked.uri)
        try:
            return await running.finish(_read(enter, context.request, uri))
        except RecollectError as problem:
            code = types.INVALID_PARAMS if isinstance(problem, NotFound) else types.INTERNAL_ERROR
            raise MCPError(code, _sentence(problem), {"uri": uri}) from problem

    async def list_prompts(*_: object) -> types.ListPromptsResult:
        return guide.prompts()

    async def get_prompt(_context: Any, asked: types.GetPromptRequestParams) -> types.GetPromptResult:
        if asked.name != guide.NAME:
            raise MCPError(types.INVALID_PARAMS, f"There is no prompt {asked.name[:100]!r}: there is {guide.NAME}.")
        return guide.prompt()

    return Protocol(
        "recollect",
        title="Recollect",
        version=__version__,
        instructions=guide.INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


async def _called(enter: Enter, request: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
    if asked.name not in TOOLS:
        raise NotFound(f"There is no tool {asked.name[:100]!r}: there are {', '.join(TOOLS)}.")
    return await TOOLS[asked.name].call(await enter(request), asked.arguments or {})


async def _read(enter: Enter, request: Any, uri: str) -> types.ReadResourceResult:
    return await resources.read(await enter(request), uri)


def _refused(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=sentence)], is_error=True)


def _sentence(problem: RecollectError) -> str:
    if isinstance(problem, DatabaseProblem):  # its sentence is for whoever runs the server: it names paths and hosts
        log.error("the database cannot be used", why=problem.message)
        return "The database cannot be used for now: try again."
    return in_tools(problem.message)
