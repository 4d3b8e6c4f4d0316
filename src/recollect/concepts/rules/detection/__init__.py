"""Exact detection of duplicates, in stages that can each be looked at: block -> compare -> score; then rules/clusters.

    columns     what is known of the concepts, as arrays
    blocks      identical rows folded, names measured, vectors shortened: what the bounds need
    cells       of very many, which rows can be near which at all
    products    short vectors multiplied, a bound of each pair's cosine
    compare     the pairs that the bounds cannot rule out
    pairs       what those pairs score, all factors kept
    detection   the stages in a row, over everything or over what changed

The score is a sum, so the bounds are joint and lose nothing: a pair reaches 0.95 only if its cosine is at least 0.929
and its name at least 0.75. No pair is found by luck, none is missed.
"""

from recollect.concepts.rules.detection.blocks import Blocks, block
from recollect.concepts.rules.detection.columns import ConceptColumns, Sets
from recollect.concepts.rules.detection.detect import FoundPairs, detect
from recollect.concepts.rules.detection.pairs import Pairs

__all__ = ["Blocks", "ConceptColumns", "FoundPairs", "Pairs", "Sets", "block", "detect"]
