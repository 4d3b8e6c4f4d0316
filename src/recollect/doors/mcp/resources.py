"""Memories and plans by address: memory://{id} and plan://{id}, whole, as text."""

import mcp_types as types

from recollect.doors.mcp.visits import Visit
from recollect.engine.engine import Engine
from recollect.errors import NotFound
from recollect.model import Scope
from recollect.plans.rules import plan_text
from recollect.plans.rules.plan_text import Tally

READING = (Scope.READ,)


def templates() -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(
        resource_templates=[
            types.ResourceTemplate(
                uri_template="memory://{id}",
                name="memory",
                description="A memory, concept, case or page, whole.",
                mime_type="text/plain",
            ),
            types.ResourceTemplate(
                uri_template="plan://{id}",
                name="plan",
                description="A plan: every decision, its reason, and what became of it.",
                mime_type="text/markdown",
            ),
        ]
    )


async def read(visit: Visit, uri: str) -> types.ReadResourceResult:
    """What stands at an address; NotFound where nothing does."""
    visit.need(READING)
    kind, _, reference = uri.partition("://")
    match kind:
        case "memory":
            text, mime_type = await _memory(visit.memory, reference), "text/plain"
        case "plan":
            text, mime_type = await _plan(visit.memory, reference), "text/markdown"
        case _:
            raise NotFound(f"There is nothing at {uri[:100]!r}: addresses are memory://ID and plan://ID.")
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=text, mime_type=mime_type)])


async def _memory(memory: Engine, reference: str) -> str:
    node = await memory.get(reference)
    return "\n\n".join(part for part in (node.name, node.text) if part)


async def _plan(memory: Engine, reference: str) -> str:
    parts: list[str] = []
    async for stretch in memory.plans.stretches(reference):
        if not parts:
            parts.append(plan_text.markdown_head(stretch, stretch.tally or Tally()))
        parts.append(plan_text.markdown_decisions(stretch.decisions, stretch.labels, with_heading=len(parts) == 1))
        parts.append(plan_text.markdown_left_alone(stretch.findings, stretch.labels))
    return "".join(parts)
