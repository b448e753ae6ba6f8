"""Algorithm 1: grounding, discovery, pruning, answering, loop."""
