"""Any two wikis: generated pages with what real ones have, each link of them with the page it means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import dirname, relpath

from hypothesis import strategies as st

from recollect.pages.rules.audit import CarriedOut, carried_out
from recollect.pages.rules.decisions import MergePlan, plan_merge, wiki_of
from recollect.pages.rules.execution import Destinations, destinations
from recollect.pages.rules.page import WikiPage
from recollect.pages.rules.similarity import SuppliedScores
from recollect.pages.rules.stored import distinct, read_page

FOLDERS = ("", "guide/", "guide/deep/", "api/")
NAMES = ("setup", "index", "Read me", "FAQ", "faq", "thiết_kế", "a(b)", "C# notes")
HEADINGS = ("Usage", "usage", "Notes", "Notes:", "v1.0", "`run`", "See [[setup]]", "Example")
ENDS = ("\n", "\r\n")
MARKS = ("", "", "\ufeff")
# Made once: Hypothesis looks through a strategy that it has not seen before, which takes longer than drawing from it.
PATHS = st.lists(
    st.builds("{}{}.md".format, st.sampled_from(FOLDERS), st.sampled_from(NAMES)), min_size=1, max_size=6, unique=True
)


@dataclass(frozen=True, kw_only=True)
class Wiki:
    """The files of a wiki, and for each link that it writes, by a word of its own, the path of the file it means."""

    files: Mapping[str, str]
    means: Mapping[str, str] = field(default_factory=dict)

    @property
    def pages(self) -> list[WikiPage]:
        return distinct(read_page(path, text).page for path, text in self.files.items())[0]


@st.composite
def wikis(draw: st.DrawFn, mark: str) -> Wiki:
    """A wiki whose words carry a mark, so that it is known of each sentence and link which of two wikis it is from."""
    paths = draw(PATHS)
    means: dict[str, str] = {}
    files = {path: _text(draw, path, paths, mark, means) for path in paths}
    return Wiki(files=files, means=means)


def _text(draw: st.DrawFn, path: str, paths: Sequence[str], mark: str, means: dict[str, str]) -> str:
    parts: list[str] = []
    if draw(st.booleans()):
        parts.append(f"---\naliases: [{draw(st.sampled_from(('Start here', 'The FAQ', 'setup')))}]\ntags: [a, b]\n---")
    if draw(st.booleans()):
        parts.append(f"# {draw(st.sampled_from(('Set up', 'Index', f'The {mark} page')))}")
    for _ in range(draw(st.integers(0, 5))):
        parts += _parts(draw, path, paths, mark, means)
    return draw(st.sampled_from(MARKS)) + draw(st.sampled_from(ENDS)).join("\n\n".join(parts).split("\n")) + "\n"


def _parts(draw: st.DrawFn, path: str, paths: Sequence[str], mark: str, means: dict[str, str]) -> list[str]:
    kind = draw(st.sampled_from(("heading", "prose", "prose", "links", "list", "table", "code", "image", "same")))
    number = draw(st.integers(0, 30))
    if kind == "heading":
        return [f"{'#' * draw(st.integers(2, 4))} {draw(st.sampled_from(HEADINGS))}"]
    if kind == "prose":
        return [f"What number {number} of {mark} says is this. It says it twice, the {mark} {number}."]
    if kind == "same":
        return [f"This sentence number {number} stands in both of the wikis."]
    if kind == "list":
        return [f"- first of {mark} {number} in a list\n  - nested below it {mark} {number}\n- and the last {number}"]
    if kind == "table":
        return [f"| a | b |\n|---|---|\n| {mark} {number} | {_link(draw, path, paths, mark, means, in_table=True)} |"]
    if kind == "code":
        end = draw(st.sampled_from(("\n```", "\n```", "")))  # real pages forget to close it
        return [f"```\n# no heading {mark}\n[[setup]] [x](setup.md) {number}{end}"]
    if kind == "image":
        return [f"![a picture of {mark}](img/{number}.png) and ![[picture {number}.png]]"]
    if draw(st.booleans()):
        return [f"* [[{draw(st.sampled_from(('setup', 'index')))}]] - noted by {mark} {number}"]
    return [f"See {_link(draw, path, paths, mark, means)} and `[[setup]]` for number {number} of {mark}."]


def _link(
    draw: st.DrawFn, path: str, paths: Sequence[str], mark: str, means: dict[str, str], *, in_table: bool = False
) -> str:
    """A link to one of the files, in one of the ways people write it; its label is a word that no other link has."""
    target = draw(st.sampled_from(paths))
    label = f"{mark}{len(means)}q"
    means[label] = target
    anchor = draw(st.sampled_from(("", "#Usage", "#a-b")))
    bar = "\\|" if in_table else "|"
    bare, stem = target.removesuffix(".md"), target.rpartition("/")[2].removesuffix(".md")
    alone = [one for one in paths if one.rpartition("/")[2].casefold() == f"{stem}.md".casefold()] == [target]
    ways = [f"[{label}](<{relpath(target, dirname(path) or '.')}{anchor}>)"]
    if " " not in target and "#" not in target:
        ways += [f"[{label}]({relpath(target, dirname(path) or '.')}{anchor})", f'[{label}](/{target} "a title")']
    if "#" in target:
        ways = [f"[{label}]({relpath(target, dirname(path) or '.').replace('#', '%23').replace(' ', '%20')}{anchor})"]
    if alone:
        ways += [f"[[{stem}{anchor}{bar}{label}]]", f"[[{stem}.md{bar}{label}]]"]
    return draw(st.sampled_from([*ways, f"[[{bare}{anchor}{bar}{label}]]"]))


@dataclass(frozen=True, kw_only=True)
class MergedWikis:
    plan: MergePlan
    where: Destinations
    done: CarriedOut


def merged(old: Sequence[WikiPage], new: Sequence[WikiPage], scores: Mapping[tuple[str, str], float]) -> MergedWikis:
    plan = plan_merge(new, wiki_of(old), SuppliedScores(scores=scores))
    before = {page.id: page for page in old}
    where = destinations(plan, before)
    return MergedWikis(plan=plan, where=where, done=carried_out(plan, before, where, updated="2026-02-01"))
