"""One file a peer: the peer's own documented calls, and nothing else. `driver.py` has what they share."""
