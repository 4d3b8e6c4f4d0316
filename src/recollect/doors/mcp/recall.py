"""Recalling: recall, ask."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from recollect.doors.mcp import telling
from recollect.doors.mcp.in_tools import in_tools
from recollect.doors.mcp.telling import short
from recollect.doors.mcp.tools import READS, Budget, Packed, Told, tool
from recollect.doors.mcp.visits import Visit
from recollect.memories.rules.contract import parsed_time
from recollect.model import Hit, Kind, NodeFilter, Scope

NOTHING = "Nothing is remembered about that."


class FoundMemory(BaseModel):
    id: str
    score: float
    created_at: datetime
    text: str


class AllFound(BaseModel):
    hits: list[FoundMemory]
    left_out: int
    notes: list[str] | None = None


class Answered(BaseModel):
    answer: str
    cited: list[str]
    problems: list[str]


@tool(Scope.READ, hints=READS)
async def recall(
    visit: Visit,
    *,
    query: str,
    limit: Annotated[int, Field(ge=1, le=100)] = 10,
    budget_tokens: Budget = 1500,
    kinds: Annotated[list[Kind] | None, Packed] = None,
    since: str | None = None,
    follow_links: bool = False,
    weak: bool = False,
) -> Told[AllFound]:
    """Search memory. Use it before you answer what may have come up before: people, preferences, decisions, past
    work. Returns hits, best first (weak: unrelated too); get has long texts whole."""
    node_filter = NodeFilter(
        kinds=tuple(kinds or (Kind.MEMORY,)),
        excluded=False,
        created_from=parsed_time("since", since),
    )
    recalled = await visit.memory.recall(query, limit=limit, wanted=node_filter, graph=follow_links, weak=weak)
    hits = telling.fitting([_found(hit) for hit in recalled], budget_tokens, field="text")
    lines = [f"{short(hit.id)}  {hit.score:.2f}  {hit.created_at:%Y-%m-%d}  {hit.text}" for hit in hits]
    if missing := len(recalled) - len(hits):
        lines.append(f"{missing} more did not fit: raise budget_tokens, or ask more narrowly.")
    notes = [in_tools(note) for note in recalled.notes]
    text = "\n".join([*(lines or [NOTHING]), *notes])
    return Told(text=text, data=AllFound(hits=hits, left_out=missing, notes=notes or None))


def _found(hit: Hit) -> FoundMemory:
    node = hit.node
    text = ": ".join(part for part in (node.name, hit.passage or node.text) if part)
    return FoundMemory(id=str(node.id), score=round(hit.score, 2), created_at=node.created_at, text=text)


@tool(Scope.READ, hints=READS)
async def ask(
    visit: Visit,
    *,
    question: str,
    budget_tokens: Budget = 1500,
) -> Told[Answered]:
    """Have a question answered from memory, with citations, by the server's language model; without one, the
    memories come back. Prefer recall if you can conclude yourself."""
    answer = await visit.memory.ask(question, budget_tokens=budget_tokens)
    cited = [str(citation.id) for citation in answer.citations] or [str(hit.node.id) for hit in answer.recall]
    problems = [in_tools(problem) for problem in (*answer.recall.notes, *answer.problems)]
    room = budget_tokens - telling.cost(" ".join([*cited, *problems])) - telling.AROUND
    text = telling.clipped(answer.text, max(telling.LEAST_TOKENS, room))
    lines = [text, *(f"Note: {problem}" for problem in problems)]
    return Told(text="\n".join(lines), data=Answered(answer=text, cited=cited, problems=problems))


TOOLS = (recall, ask)
