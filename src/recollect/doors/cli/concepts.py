"""Concepts: named ideas, each there once; why two are taken for one, and how to keep them two."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recollect.doors.cli import output, values
from recollect.doors.cli.door import Door, DryRun, Reason, command, listing
from recollect.errors import InvalidInput
from recollect.model import Concept, Formed, KeptApart, Variant
from recollect.plan import Outcome
from recollect.wording import counted

if TYPE_CHECKING:
    from recollect.concepts.compare import Duplicate
    from recollect.concepts.import_ import ConceptImport
    from recollect.engine.engine import Engine

app = typer.Typer()
group = typer.Typer()
never_merge = typer.Typer()
PANEL = "Concepts"

Format = Literal["auto", "jsonl", "csv"]

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A concept: its name, an alias, its id or the id's beginning.")
]
Type = Annotated[str | None, typer.Option("--type", "-t", metavar="TYPE", help="Only of this type.")]
Energy = Annotated[
    list[str] | None, typer.Option("--energy", metavar="ENTITY=VALUE", help="Energy of an entity; repeat for more.")
]
Threshold = Annotated[float, typer.Option("--threshold", metavar="0..1", help="From which score two are the same.")]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many at most.")]
A = Annotated[str, typer.Argument(metavar="A", help="A name.")]
B = Annotated[str, typer.Argument(metavar="B", help="Another.")]


# -- adding and looking


@listing(group, as_list="List the concepts, newest first.")
def list_concepts(
    door: Door,
    type_: Type = None,
    limit: Limit = 50,
    cursor: Annotated[str | None, typer.Option("--cursor", metavar="CURSOR", help="Go on where it ended.")] = None,
) -> None:
    """List the concepts, newest first.

    \b
    recollect concepts add consciousness_substrate --text "what consciousness is made of"
    recollect concepts show "consciousness substrate"
    recollect concepts duplicates
    """
    concepts, more = door.ask(lambda memory: memory.concepts.list(node_type=type_, limit=limit, cursor=cursor))
    door.show(concepts, partial(show_concepts, more=more), as_json={"items": concepts, "next_cursor": more})


@command(group, "import")
def import_(
    door: Door,
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="CSV or JSONL files; - reads stdin.")],
    format_: Annotated[Format, typer.Option("--format", "-f", help="What they are; by their endings, else.")] = "auto",
    dry_run: DryRun = False,
) -> None:
    """Import concepts from CSV or JSON lines.

    A CSV file names its columns in its first line: name (or title, or label), and where there are such type, text (or
    description), base_weight, created_by, created_at; every other column is a field of the metadata. What is there
    already is found again, so an import that was interrupted is simply repeated. Exit code 1 if something was refused.

    \b
    recollect concepts import glossary.csv
    recollect concepts import products.jsonl --dry-run
    """

    async def verb(memory: "Engine") -> "ConceptImport":
        with output.progress("Importing") as progress:
            return await memory.concepts.import_(
                paths, format=format_, dry_run=dry_run, stdin=values.piped_in(), progress=progress
            )

    report = door.ask(verb)
    door.show(report, _show_import)
    if report.refused:
        raise typer.Exit(1)


@command(group, "add")
def add(
    door: Door,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called.")],
    type_: Annotated[str, typer.Option("--type", "-t", metavar="TYPE", help="Concepts of one type are compared.")] = (
        "concept"
    ),
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="What it is; - reads it from stdin.")
    ] = None,
    energy: Energy = None,
    base_weight: Annotated[float | None, typer.Option("--base-weight", metavar="NUMBER", help="Its weight.")] = None,
    metadata: Annotated[str | None, typer.Option("--metadata", metavar="JSON", help="What else is known.")] = None,
    by: Annotated[str | None, typer.Option("--by", metavar="WHO", help="Who made it.")] = None,
    threshold: Threshold = 0.95,
) -> None:
    """Add a concept; a twin of its type that is there already is returned instead, with the reason.

    \b
    recollect concepts add consciousness_substrate --energy translator=0.6
    """
    given_text = None if text is None else values.text_of([text])
    fields = values.json_object("--metadata", metadata)

    async def verb(memory: "Engine") -> Formed:
        return await memory.concepts.add(
            name,
            type_,
            text=given_text,
            energy=_energies(energy),
            base_weight=base_weight,
            metadata=fields,
            created_by=by,
            threshold=threshold,
        )

    door.show(door.ask(verb), _show_formed)


@command(group, "show")
def show(door: Door, name: Name, type_: Type = None) -> None:
    """Show a concept: what it is made of, its energy, and every name that leads to it."""
    concept = door.ask(lambda memory: memory.concepts.get(name, type_))
    door.show(concept, _show_one)


@command(group, "energy")
def energy_(
    door: Door,
    name: Name,
    energy: Annotated[list[str], typer.Argument(metavar="ENTITY=VALUE", help="What to add; as many as you like.")],
    type_: Type = None,
) -> None:
    """Add energy to a concept; it is summed as given, and shown so that it never exceeds 2.

    \b
    recollect concepts energy consciousness_substrate translator=0.3 architect=0.4
    """
    concept = door.ask(lambda memory: memory.concepts.add_energy(name, _energies(energy), type_))
    door.show(concept, _show_one)


@command(group, "protect")
def protect(
    door: Door,
    name: Name,
    off: Annotated[bool, typer.Option("--off", help="No longer.")] = False,
    reason: Reason = None,
) -> None:
    """Say that tidying must leave a concept alone."""
    concept = door.ask(lambda memory: memory.concepts.protect(name, not off, reason=reason))
    door.show(concept, lambda concept: output.say(f"{concept.name} is {'no longer ' if off else ''}protected"))


# -- duplicates


@command(group, "duplicates")
def duplicates(door: Door, threshold: Threshold = 0.95, type_: Type = None, limit: Limit = 100) -> None:
    """List pairs that score at least the threshold, best first. It looks, and changes nothing.

    `recollect plan duplicates` proposes what to do about them.
    """
    pairs = door.ask(
        lambda memory: memory.concepts.duplicates(threshold=threshold, node_type=type_, limit=limit), doing="Comparing"
    )
    door.show(pairs, _show_duplicates)


@command(group, "merge")
def merge(
    door: Door,
    keep: Annotated[str, typer.Argument(metavar="KEEP", help="The concept that stays.")],
    others: Annotated[list[str], typer.Argument(metavar="OTHER...", help="Those that go into it.")],
    reason: Reason = None,
) -> None:
    """Merge concepts by hand, at once. `recollect undo` makes them two again."""
    outcome = door.ask(lambda memory: memory.concepts.merge(keep, *others, reason=reason))
    door.show(outcome, _show_merged)


@command(app, "why", rich_help_panel=PANEL)
def why(door: Door, a: Name, b: Name, threshold: Threshold = 0.95) -> None:
    """Why two concepts are, or are not, taken for one: the factors, the bound that failed, what would change it.

    \b
    recollect why consciousness consciousness_engine
    """
    reasons = door.ask(lambda memory: memory.concepts.why(a, b, threshold=threshold))
    door.show(reasons, lambda reasons: output.say(str(reasons)))


# -- what stays two


@listing(never_merge, as_list="List the pairs that never become one.")
def list_pairs(door: Door) -> None:
    """List the pairs that never become one.

    \b
    recollect never-merge add consciousness consciousness_engine
    recollect never-merge remove consciousness consciousness_engine
    """
    door.show(door.ask(lambda memory: memory.concepts.kept_apart()), _show_pairs)


@command(never_merge, "add")
def add_pair(
    door: Door,
    a: Annotated[str | None, typer.Argument(metavar="A", help="A name.")] = None,
    b: Annotated[str | None, typer.Argument(metavar="B", help="Another.")] = None,
    from_: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="A file: two names a line, by a comma."),
    ] = None,
    reason: Reason = None,
) -> None:
    """Never merge concepts of these names, whoever bears them, now or as a name already absorbed."""
    pairs = _pairs(a, b, from_)
    door.show(door.ask(lambda memory: memory.concepts.keep_all_apart(pairs, reason=reason)), _show_pairs)


@command(never_merge, "remove")
def remove_pair(door: Door, a: A, b: B) -> None:
    """Take a pair off the list."""
    door.show(door.ask(lambda memory: memory.concepts.let_merge(a, b)), _show_pairs)


# -- what was typed


def _energies(given: Sequence[str] | None) -> dict[str, float]:
    energies = {}
    for written in given or ():
        entity, sign, value = written.rpartition("=")
        try:
            energies[entity] = float(value)
        except ValueError:
            sign = ""
        if not sign:
            raise InvalidInput(f"Energy is written like translator=0.6, not {written!r}.", field="energy")
    return energies


def _pairs(a: str | None, b: str | None, file: Path | None) -> list[tuple[str, str]]:
    if file is None:
        if a is None or b is None:
            raise InvalidInput("Give two names, or a file with --from.", field="b")
        return [(a, b)]
    return [_pair(line) for line in values.lines_of("from", file)]


def _pair(line: str) -> tuple[str, str]:
    a, comma, b = (part.strip() for part in line.partition(","))
    if not (a and comma and b):
        raise InvalidInput(f"A line holds two names divided by a comma, not {line[:60]!r}.", field="from")
    return a, b


# -- showing


def _show_import(report: "ConceptImport") -> None:
    output.say(f"{report}.")
    output.lines(report.lines)


def show_concepts(concepts: Sequence[Concept], *, more: str | None = None) -> None:
    output.table(
        ("concept", "type", "energy", "links", "name"),
        [
            (output.short(concept.id), concept.node_type, _energy(concept), str(concept.links), _with_aliases(concept))
            for concept in concepts
        ],
    )
    if not concepts:
        output.note("There are no concepts yet: `recollect concepts add NAME` makes one.")
    if more:
        output.note(f"There are more: --cursor {more}")


def _show_formed(formed: Formed) -> None:
    state = "added" if formed.is_new else "there already"
    output.table(("", "", ""), [(output.short(formed.concept.id), state, formed.concept.name)])
    if formed.score is not None:
        output.note(formed.reason[0].upper() + formed.reason[1:] + ".")
    if formed.plan_id is not None:
        output.hint(
            f"What you said of it is kept; `recollect undo {output.short(formed.plan_id)}` makes it a second one."
        )


def _show_one(concept: Concept) -> None:
    output.facts(
        [
            ("id", str(concept.id)),
            ("name", concept.name),
            ("type", concept.node_type),
            *((("text", concept.text),) if concept.text else ()),
            ("energy", _energy(concept) or "none"),
            ("base weight", "none" if concept.base_weight is None else f"{concept.base_weight:g}"),
            ("links", str(concept.links)),
            ("made of", counted(concept.made_of, "concept")),
            ("aliases", ", ".join(concept.aliases) or "none"),
            *(
                ("also said", _variant(variant))
                for variant in concept.variants
                if variant.text and variant.text != concept.text
            ),
            ("metadata", output.compact(concept.metadata)),
            *((("protected", "yes"),) if concept.protected else ()),
            ("added", output.minute(concept.created_at)),
        ]
    )


def _variant(variant: Variant) -> str:
    by = (
        f" (by {variant.created_by}, {output.short(variant.id)})"
        if variant.created_by
        else f" ({output.short(variant.id)})"
    )
    return f"{variant.text}{by}"


def _energy(concept: Concept) -> str:
    return " ".join(f"{entity}={value:.3g}" for entity, value in sorted(concept.energy.items()))


def _with_aliases(concept: Concept) -> str:
    return f"{concept.name} (also {', '.join(concept.aliases[:3])})" if concept.aliases else concept.name


def _show_duplicates(pairs: "Sequence[Duplicate]") -> None:
    output.table(
        ("score", "a", "b", "names"),
        [
            (f"{pair.score:.3f}", output.short(pair.a), output.short(pair.b), f"{pair.a_name}  ~  {pair.b_name}")
            for pair in pairs
        ],
    )
    if not pairs:
        output.note("No two concepts are that much alike.")
    else:
        output.hint("`recollect why A B` says why; `recollect plan duplicates` proposes what to do.")


def _show_merged(outcome: Outcome) -> None:
    output.say(f"merged\t{outcome.applied}\tplan {output.short(outcome.plan_id)}")
    for why_not in outcome.stale + outcome.failed:
        output.note(why_not)
    output.hint(f"`recollect undo {output.short(outcome.plan_id)}` undoes it.")


def _show_pairs(pairs: Sequence[KeptApart]) -> None:
    output.table(
        ("a", "b", "until", "reason"),
        [(pair.a, pair.b, output.minute(pair.until, never="for good"), pair.reason or "") for pair in pairs],
    )
    if not pairs:
        output.note("No pair is kept apart: `recollect never-merge add A B` keeps one.")
