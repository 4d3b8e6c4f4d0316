"""Recall: ask the memory a question; and measure what its similarities mean."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from recollect.doors.cli import output, values
from recollect.doors.cli.door import Door, command
from recollect.doors.cli.memories import PANEL, Full, OnlyTags, OnlyThread, OnlyTypes, Since, Until
from recollect.model import Hit, Mode, NodeFilter, Recall
from recollect.wording import counted

if TYPE_CHECKING:
    from recollect.engine.engine import Engine
    from recollect.recall.calibrate import Measurement

app = typer.Typer()
BAR = 40
FOUND_BY = {"both": "words and meaning", "vector": "meaning", "graph": "links", "neighbour": "its neighbours"}


Asked = Annotated[list[str], typer.Argument(metavar="QUERY", help="What to look for; - reads it from stdin.")]
Limit = Annotated[int | None, typer.Option("--limit", "-n", metavar="N", help="How many hits, at most 1,000; 20 else.")]
InMode = Annotated[
    Mode, typer.Option("--mode", "-m", case_sensitive=False, help="Weights, floor and cap of this mode.")
]
Threshold = Annotated[
    float | None, typer.Option("--threshold", metavar="0..1", help="Nothing less relevant than 1 minus this.")
]
Person = Annotated[str | None, typer.Option("--person", metavar="NAME", help="Only about this person.")]
Budget = Annotated[int | None, typer.Option("--budget", metavar="TOKENS", help="Only what fits into so many tokens.")]
ByGraph = Annotated[
    bool, typer.Option("--graph", "-g", help="Follow the links from what is found; walked links grow stronger.")
]
Topics = Annotated[bool, typer.Option("--topics", help="Also say which topics contain the hits.")]
Engagement = Annotated[bool, typer.Option("--engagement", help="Rank by use as well.")]
Weak = Annotated[bool, typer.Option("--weak", help="Also what is hardly related, behind what is.")]
Explain = Annotated[bool, typer.Option("--explain", "-e", help="Lay every score open, and what was left out.")]


@command(app, "recall", rich_help_panel=PANEL)
def recall(
    door: Door,
    query: Asked,
    limit: Limit = None,
    mode: InMode = Mode.NEUTRAL,
    threshold: Threshold = None,
    type_: OnlyTypes = None,
    tag: OnlyTags = None,
    person: Person = None,
    thread: OnlyThread = None,
    since: Since = None,
    until: Until = None,
    budget: Budget = None,
    graph: ByGraph = False,
    topics: Topics = False,
    engagement: Engagement = False,
    weak: Weak = False,
    explain: Explain = False,
    full: Full = False,
) -> None:
    """Recall what is known about a question, best first.

    Each hit is a line: its score, its relevance, its date, the beginning of its id, its text; of a long text the
    passage that was found. What does not fit is cut; --full shows all of it. What is hardly related is shown only
    with --weak.

    \b
    recollect recall what does Linh drink
    recollect recall --limit 3 --json "how do we deploy?"
    recollect recall --tag lesson --since 30d --explain "what went wrong with the migration?"
    """
    question = values.text_of(query)
    node_filter = NodeFilter(
        subtypes=tuple(type_ or ()),
        excluded=False,
        thread=thread,
        created_from=values.past("--since", since),
        created_to=values.end_of("--until", until),
        metadata={**({"tags": tag} if tag else {}), **({"extra": {"person_name": person}} if person else {})},
    )
    recalled, containing = door.ask(
        lambda memory: _with_topics(
            memory,
            memory.recall(
                question,
                mode=mode,
                limit=limit,
                threshold=threshold,
                wanted=node_filter,
                budget_tokens=budget,
                graph=graph,
                engagement=engagement,
                weak=weak,
            ),
            asked_for=topics,
        )
    )
    door.show(recalled, partial(show_explained if explain else show_hits, full=full))
    for key, members in containing.items():
        output.note(f"{key} contains {', '.join(map(output.short, members))}.")
    for sentence in recalled.notes:
        output.note(sentence)


async def _with_topics(
    memory: "Engine", recalling: Awaitable[Recall], *, asked_for: bool
) -> tuple[Recall, Mapping[str, Sequence[UUID]]]:
    """What is recalled, and the topics that contain it, where they are asked for."""
    recalled = await recalling
    if not asked_for:
        return recalled, {}
    containing = await memory.graph.topics_of([hit.node.id for hit in recalled])
    return replace(recalled, ways={**recalled.ways, "topics": containing}), containing


def show_hits(recalled: Recall, *, full: bool = False) -> None:
    output.hits(("score", "relevance", "date", "id", "text"), [_line(hit, full=full) for hit in recalled], full=full)
    _say_what_is_weak(recalled)


def _say_what_is_weak(recalled: Recall) -> None:
    weaker = sum(dropped.step == "floor" for dropped in recalled.left_out) if recalled.mode is Mode.NEUTRAL else 0
    if not recalled:
        them = "it" if weaker == 1 else "them"
        hint = f" {counted(weaker, 'weaker match', 'weaker matches')}: --weak shows {them}." if weaker else ""
        output.note(f"Nothing is known about that.{hint}")


def show_explained(recalled: Recall, *, full: bool = False) -> None:
    """Every hit with the parts of its score; then what was left out and why; then how the candidates were found."""
    for hit in recalled:
        *head, text = _line(hit, full=full)
        output.block((*head, f"by {FOUND_BY.get(hit.source, hit.source)}"), text, _parts(hit), full=full)
    _say_what_is_weak(recalled)
    if recalled.left_out:
        output.heading(f"Not shown, and why: {counted(len(recalled.left_out), 'candidate')}")
        output.table(
            ("id", "score", "step", "why"),
            [
                (output.short(dropped.id), f"{dropped.score:.2f}", dropped.step, dropped.why)
                for dropped in recalled.left_out
            ],
            wrap=True,
        )
    figures = {name: value for name, value in recalled.ways.items() if not isinstance(value, Mapping)}
    ways = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in figures.items())
    floor = "no floor" if recalled.floor is None else f"floor {recalled.floor:.2f}"
    output.note(
        f"Mode {recalled.mode.value.lower()}, {floor}; {ways}; {recalled.latency_ms:.0f} ms, model {recalled.model}."
    )


def _line(hit: Hit, *, full: bool = False) -> tuple[str, ...]:
    text = hit.text if not full else hit.node.text or hit.node.name or ""
    return f"{hit.score:.2f}", f"{hit.relevance:.2f}", output.day(hit.node.created_at), output.short(hit.node.id), text


def _parts(hit: Hit) -> list[str]:
    """What a score is made of, in the words of the documentation; what counts for nothing is left out."""
    parts = hit.parts
    named = {
        "relevance": parts.relevance,
        "words": parts.lexical,
        "meaning": parts.similarity,
        "cosine": parts.cosine,
        "neighbour": parts.flow,
        "coverage": parts.coverage,
        "standing out": parts.standing,
        "activation": parts.activation,
        "reranked": parts.rerank,
        "recency": parts.recency,
        "importance": parts.importance,
        "use": parts.engagement,
        "bonus": parts.bonus,
    }
    return [f"{name} {value:.2f}" for name, value in named.items() if name == "relevance" or round(value, 2)]


@command(app, "calibrate", rich_help_panel=PANEL)
def calibrate(
    door: Door,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Use what was measured, without asking.")] = False,
) -> None:
    """Measure what similarity means on your own memories.

    Embedders differ in how alike they find unrelated texts. This draws related and unrelated pairs from your memories,
    shows how alike they are, and, if you agree, lets floors and scores use that scale.
    """
    measured = door.ask(lambda memory: memory.measure_calibration(), doing="Measuring")
    if not door.json:
        _show_measurement(measured)
    use = yes or (not door.json and typer.confirm("Use it in this space?", default=False, err=True))

    async def keep(memory: "Engine") -> None:
        await memory.use_calibration(measured)

    if use:
        door.ask(keep)
    door.show(measured, lambda _: output.note("It is in use now." if use else "Nothing was changed."))


def _show_measurement(measured: "Measurement") -> None:
    most = max(*measured.unrelated, *measured.related, 1)
    output.table(
        ("cosine", "unrelated", "", "related", ""),
        [
            (f"{step / 20:.2f}", str(apart), "░" * (BAR * apart // most), str(alike), "█" * (BAR * alike // most))
            for step, (apart, alike) in enumerate(zip(measured.unrelated, measured.related, strict=True))
        ],
    )
    now, then = measured.current, measured.proposed
    output.facts(
        [
            ("model", measured.model),
            ("in use", f"0 at cosine {now.low:g}, full at {now.high:g}"),
            ("measured", f"0 at cosine {then.low:g}, full at {then.high:g}"),
        ]
    )
