"""Asking: the memories that answer a question, and where mode and model allow it, an answer made from them.

    RECALL               the memories themselves; no model is asked
    RECALL_LLM_RERANK    a model chooses among 12; five are given
    SYNTHESIZE, REFLECT, CHALLENGE    a model answers from the memories alone, with citations that are checked
    EXPAND               the same, and it may add what it knows beyond them, marked

Whatever a model does or fails to do, the ranked memories are in the answer, and what went wrong is in its `problems`.
A model is told memories and asked for words: it is handed no way to write any (D38).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from recollect.engine.core import Core
from recollect.errors import InvalidInput, ProviderProblem
from recollect.memories.rules.text import count_tokens
from recollect.model import Answer, Citation, Hit, LeftOut, Mode, Query, Recall, TokenUsage
from recollect.ports import Completion, LanguageModel
from recollect.recall import recall as recalling
from recollect.recall.rules import citations, prompts
from recollect.recall.rules.prompts import Prompt
from recollect.recall.rules.selection import CONTEXT_TOKENS, Selection, within_budget

NOTHING = "Nothing is known about that."
NO_MODEL = (
    "No language model is configured, so these are the memories themselves: RECOLLECT_MODEL names one, "
    "like openai:gpt-4o-mini or ollama:llama3.1."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """What a model was told and what came back; `problem` where nothing did."""

    prompt: Prompt | None = None
    completion: Completion | None = None
    problem: str | None = None

    @property
    def usage(self) -> TokenUsage:
        if self.completion is None:
            return TokenUsage()
        read, written = self.completion.prompt_tokens, self.completion.completion_tokens
        return TokenUsage(prompt_tokens=read, completion_tokens=written, total=read + written)


async def ask(core: Core, space_id: UUID, query: Query) -> Answer:
    """Answer a question in the query's mode; NEUTRAL is RECALL here. Every question is logged, once."""
    started = time.perf_counter()
    query = replace(query, mode=Mode.RECALL) if query.mode is Mode.NEUTRAL else query
    recalled = await recalling.find(core, space_id, replace(query, budget_tokens=None))
    context = _within_budget(recalled, query)
    model, asked = None, _Asked()
    if query.mode is Mode.RECALL or not context:
        answer = _verbatim(context, *_too_long(recalled, context))
    else:
        model, asked = await _ask_model(core, query, context)
        answer = _chosen(context, asked) if query.mode is Mode.RECALL_LLM_RERANK else _checked(context, asked)
    answer = replace(
        answer,
        model=model.name if model and asked.completion else None,
        token_usage=asked.usage,
        latency_ms=round((time.perf_counter() - started) * 1000, 2),
    )
    return await _noted(core, space_id, query, recalled, answer, asked.prompt)


def mode_named(name: str) -> Mode:
    """The mode of that name, in large or small letters; `rerank` is short for RECALL_LLM_RERANK."""
    mode_name = name.strip().upper().replace("-", "_")
    if mode_name == "RERANK":
        return Mode.RECALL_LLM_RERANK
    if mode_name not in Mode.__members__:
        modes = ", ".join(mode.lower() for mode in Mode)
        raise InvalidInput(f"There is no mode {name[:40]!r}: known are {modes}.", field="mode")
    return Mode[mode_name]


async def _ask_model(core: Core, query: Query, context: Recall) -> tuple[LanguageModel | None, _Asked]:
    """Tell the model what it needs to know; whatever goes wrong is a sentence, since the memories are an answer too."""
    try:
        model = core.language_model()
    except InvalidInput as error:
        return None, _Asked(problem=f"No language model can be asked: {error.message}")
    if model is None:
        return None, _Asked(problem=NO_MODEL)
    prompt = prompts.build(query.mode, query.text, context.hits, today=core.now().date())
    try:
        completion = await model.complete(prompt.system, prompt.user, max_tokens=core.settings.model_max_tokens)
    except ProviderProblem as error:
        return model, _Asked(prompt=prompt, problem=f"{error.message} These are the memories themselves.")
    return model, _Asked(prompt=prompt, completion=completion)


# -- from what came back to an answer


def _verbatim(recalled: Recall, *problems: str) -> Answer:
    """The memories themselves, or the honest sentence that there are none (D21)."""
    text = prompts.listing(recalled) or (problems[0] if problems else NOTHING)
    return Answer(text=text, mode=recalled.mode, recall=recalled, problems=problems)


def _too_long(recalled: Recall, context: Recall) -> tuple[str, ...]:
    if context or not recalled:
        return ()
    return ("Something is known about that, but no memory fits into the token budget: raise it.",)


def _checked(context: Recall, asked: _Asked) -> Answer:
    """The model's answer with its citations looked up; the memories themselves where there is no answer."""
    if asked.completion is None:
        return _verbatim(context, asked.problem or NO_MODEL)
    reading = citations.read(asked.completion.text, mode=context.mode, given=len(context))
    if not reading.text:
        return _verbatim(context, "The model's answer was empty. These are the memories themselves.")
    cut = ("The answer was cut off: RECOLLECT_MODEL_MAX_TOKENS allows longer ones.",) if asked.completion.is_cut else ()
    return Answer(
        text=reading.text,
        mode=context.mode,
        recall=context,
        citations=tuple(Citation(number=number, id=context[number - 1].node.id) for number in reading.cited),
        problems=reading.problems + cut,
        external_knowledge_used=reading.external_knowledge_used,
        confidence=reading.confidence,
    )


def _chosen(context: Recall, asked: _Asked) -> Answer:
    """The memories that the model chose, in its order; the first of the ranking where it chose none (D42)."""
    in_order = list(range(1, len(context) + 1))[: citations.RERANK_TO]
    if asked.completion is None:
        return _verbatim(_only(context, in_order), asked.problem or NO_MODEL)
    chosen = citations.chosen_in(asked.completion.text, given=len(context))
    if chosen is None:
        malformed = "The model's choice could not be read, so the order is that of the ranking."
        return _verbatim(_only(context, in_order), malformed)
    return _verbatim(_only(context, chosen))


def _only(context: Recall, numbers: Sequence[int]) -> Recall:
    """Some of the hits, by number; the others are named as left out by the reranking."""
    gone = [hit for number, hit in enumerate(context, start=1) if number not in numbers]
    chosen = tuple(context[number - 1] for number in numbers)
    return replace(
        context, hits=chosen, left_out=_left_out(gone, "rerank", "not among those chosen") + context.left_out
    )


def _within_budget(recalled: Recall, query: Query) -> Recall:
    """What a model can be told: the first 30 hits that fit into the budget; what does not fit is named (D29).

    People can read on: memories that no model reads have no budget but one that was asked for.
    """
    if query.mode is Mode.RECALL and query.budget_tokens is None:
        return recalled
    chosen = Selection(kept=list(range(len(recalled))))
    tokens = [count_tokens(hit.text) for hit in recalled]
    within_budget(chosen, tokens.__getitem__, query.budget_tokens or CONTEXT_TOKENS)
    gone = tuple(part for drop in chosen.dropped for part in _left_out([recalled[drop.place]], drop.step, drop.why))
    return replace(recalled, hits=tuple(recalled[i] for i in chosen.kept), left_out=gone + recalled.left_out)


def _left_out(hits: Sequence[Hit], step: str, why: str) -> tuple[LeftOut, ...]:
    return tuple(LeftOut(id=hit.node.id, score=hit.score, step=step, why=why) for hit in hits)


async def _noted(
    core: Core, space_id: UUID, query: Query, recalled: Recall, answer: Answer, prompt: Prompt | None
) -> Answer:
    """Log the question with all that was said about it (D11, D12); the answer then carries the entry's id."""
    id_ = await recalling.note(
        core,
        space_id,
        recalled,
        query=query,
        given=[hit.node.id for hit in answer.recall],
        response=answer.text,
        prompt_hash=prompt.hash if prompt else None,
        debug_prompt=prompt.text if prompt and core.settings.debug_prompts else None,
        external_knowledge_used=answer.external_knowledge_used,
        confidence=answer.confidence,
        token_usage=answer.token_usage,
        latency_ms=answer.latency_ms,
    )
    return replace(answer, id=id_, recall=replace(answer.recall, id=id_))
