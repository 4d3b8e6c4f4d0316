"""The policies by name. A new one is a file, and a line here."""

from recollect.cases.policies import archive_poor_cases, archive_unused_cases, consolidate_cases, merge_duplicate_cases
from recollect.concepts.policies import merge_duplicate_concepts
from recollect.errors import InvalidInput
from recollect.graph.policies import gather_topics, link_similar, merge_parallel_edges, prune_weak_edges
from recollect.memories.policies import note_similar_memories
from recollect.pages.policies import merge_pages
from recollect.plans.policy import Policy

POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        prune_weak_edges.POLICY,
        merge_parallel_edges.POLICY,
        gather_topics.POLICY,
        link_similar.POLICY,
        consolidate_cases.POLICY,
        archive_poor_cases.POLICY,
        merge_duplicate_cases.POLICY,
        archive_unused_cases.POLICY,
        merge_duplicate_concepts.POLICY,
        note_similar_memories.POLICY,
        merge_pages.POLICY,
    )
}


def policy_named(name: str) -> Policy:
    """The policy of a name, whole or as people say it on the command line."""
    for policy in POLICIES.values():
        if name in (policy.name, policy.short):
            return policy
    names = ", ".join(policy.short for policy in POLICIES.values())
    raise InvalidInput(
        f"There is no policy {name!r}: it is one of {names} (`recollect plan policies` describes them).", field="policy"
    )
