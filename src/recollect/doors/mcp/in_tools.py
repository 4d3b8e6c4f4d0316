"""The engine's sentences in terms of tools: an agent has no shell, so a command becomes the tool that does the same, or
the person who can give it. Only what the engine says itself goes through here, never a text that is remembered."""

import re

A_PERSON = "the person who runs this memory"
TOOLS = {
    "plan show": "show_plan",
    "plan list": "history of a memory",
    "plan accept": "apply_plan with accept",
    "plan policies": "propose_consolidation",
    "plan": "propose_consolidation",
    "apply": "apply_plan",
    "undo": "undo_plan",
    "history": "history",
    "list": "recall",
    "recalls": "recall",
    "concepts": 'recall with kinds ["concept"]',
    "cases": 'recall with kinds ["case"]',
    "pages list": 'recall with kinds ["page"]',
    "pages import": "propose_pages",
    "why": "why",
    "graph edges": "get",
    "import": "add_memories",
    "restore": "restore",
    "forget": "forget",
    "correct": "forget with instead",
    "review": "review",
}
"""By the words of the command. `plan approve` is missing on purpose: that is a person's."""
FOR_PEOPLE = {"plan approve", "plan runs", "cases tidy", "cases reflect"}

_COMMAND = re.compile(r"`recollect ([^`]*)`")


def in_tools(sentence: str) -> str:
    """A sentence of the engine without shell commands."""
    return _COMMAND.sub(lambda command: _tool_for(command[1]), sentence)


def _tool_for(command: str) -> str:
    words = command.split()
    two, single = " ".join(words[:2]), words[0] if words else ""
    if two in FOR_PEOPLE:
        return A_PERSON
    return TOOLS.get(two) or TOOLS.get(single) or A_PERSON
