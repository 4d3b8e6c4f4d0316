"""What an agent is told about its memory: in two sentences at the start, and at length by a prompt."""

import mcp_types as types

from recollect.memories.rules.tags import TAGS

INSTRUCTIONS = (
    "A memory that lasts between conversations. Recall before you answer what may have come up before; remember facts, "
    "preferences, decisions and lessons that will matter again. Nothing is ever deleted, every change can be undone."
)
NAME = "use_memory"
ABOUT = "When to remember, when to recall, and how to keep a memory tidy."
TEXT = """\
You have a memory that lasts between conversations. Use it like this.

Recall first. When a task begins, and whenever a person, a project, a preference, a decision or "as before" comes up, \
call recall with the question in plain words before you answer. Believe what you find over what you assume; look at \
the dates, and take the newer of two that disagree. If nothing comes back, say that you do not know, and do not guess.

Remember what will matter again: who people are and what they prefer, decisions and their reasons, how a problem was \
solved, what was tried and failed, promises and dates. One fact a memory, in a full sentence that can be understood \
on its own a year from now: names instead of "he", dates instead of "tomorrow". Do it when you learn it, not at the end.

Do not remember secrets (passwords, keys), what anybody can look up, what stands in the files you work on, small talk, \
or a guess of yours as if it were a fact.

Tags are any words. These are known: {tags}. Prefer them, and those you have used before, to new ones.

When something changed, forget the old fact with the new one as instead, and the reason. Forgetting archives: restore \
brings it back. Link two memories when one supports, contradicts or extends the other.

Tidying: propose_consolidation shows what could be cleaned up. Read the plan, tell the person what it would do, and \
apply it if it is safe; the risky ones wait for a person. undo_plan takes any of it back; history tells what happened.\
""".format(tags=", ".join(tag for group in TAGS.values() for tag in group))


def prompts() -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[types.Prompt(name=NAME, description=ABOUT)])


def prompt() -> types.GetPromptResult:
    content = types.TextContent(type="text", text=TEXT)
    return types.GetPromptResult(description=ABOUT, messages=[types.PromptMessage(role="user", content=content)])
