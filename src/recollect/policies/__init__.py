"""The policies by name. A new one is a file, and a line here."""

from recollect.errors import InvalidInput
from recollect.policies import gather_topics, link_similar, merge_pages, merge_parallel_edges, prune_weak_edges
from recollect.policies.policy import Policy

POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        prune_weak_edges.POLICY,
        merge_parallel_edges.POLICY,
        gather_topics.POLICY,
        link_similar.POLICY,
        merge_pages.POLICY,
    )
}


def policy_named(name: str) -> Policy:
    """The policy of a name, whole or as people say it on the command line."""
    for policy in POLICIES.values():
        if name in (policy.name, policy.short):
            return policy
    known = ", ".join(f"{policy.short} ({policy.name})" for policy in POLICIES.values())
    raise InvalidInput(f"There is no policy {name!r}: it is one of {known}.", field="policy")
