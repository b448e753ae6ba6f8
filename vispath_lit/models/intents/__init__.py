"""Eq. 4: what the next hop should look for."""
