"""Pages of a wiki as texts: propose_pages. Reading them is `recall` with kinds ["page"] and `get`."""

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from recollect.doors.mcp.plans import PLAN_TOKENS, STRETCH, ShownPlanText, shown_plan
from recollect.doors.mcp.telling import fitting_lines
from recollect.doors.mcp.tools import ADDS, Packed, Told, tool
from recollect.doors.mcp.visits import Visit
from recollect.errors import InvalidInput
from recollect.model import Scope

MOST_AT_ONCE = 1000
LINES_TOKENS = 500

AS_OBJECTS = WithJsonSchema({"type": "array", "items": {"type": "object"}})
Pages = Annotated[list[dict[str, Any]], Packed, Field(min_length=1, max_length=MOST_AT_ONCE), AS_OBJECTS]


@tool(Scope.CONSOLIDATE, hints=ADDS)
async def propose_pages(visit: Visit, *, pages: Pages) -> Told[ShownPlanText]:
    """Bring Markdown or wiki pages {path, text} into the wiki: merged where one is there, links kept. Nothing changes:
    returns a saved plan to read, then apply_plan."""
    files = [_file(number, given) for number, given in enumerate(pages, start=1)]
    imported = await visit.memory.pages.import_texts(files, created_by=visit.caller.name)
    shown = shown_plan(await visit.memory.plans.show(imported.plan.id, limit=STRETCH), PLAN_TOKENS)
    return Told(text="\n".join([shown.text, *fitting_lines(imported.lines, LINES_TOKENS)]), data=shown.data)


def _file(number: int, given: dict[str, Any]) -> tuple[str, str]:
    path, text = given.get("path"), given.get("text")
    if not isinstance(path, str) or not isinstance(text, str) or given.keys() - {"path", "text"}:
        raise InvalidInput(
            f"Page {number} is no page: each is an object with a path, such as notes/setup.md, and a text."
        )
    return path, text


TOOLS = (propose_pages,)
