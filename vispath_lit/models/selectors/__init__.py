"""The final answer."""
