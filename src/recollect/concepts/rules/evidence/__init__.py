"""What the space itself teaches about its duplicates, without labels (C38): in stages that can each be looked at.

    bags        the words of each concept and the character 3-grams of its name, the rare ones weighing most
    candidates  pairs that share something rare; what is too common to look through is counted
    fields      metadata key by key: how often it agrees among pairs that are surely one, and among others; and which
                values mean the same here ("VLDB", "Very Large Data Bases")
    estimate    all of it as the probability that two are one, with what each factor adds, and the rivals

The score of rules/similarity is one factor among these. The doubts are none: whatever is estimated, they are asked
about.
"""

from recollect.concepts.rules.evidence.estimate import NEARLY_EQUAL, Evidence, PairEvidence, weigh

__all__ = ["NEARLY_EQUAL", "Evidence", "PairEvidence", "weigh"]
