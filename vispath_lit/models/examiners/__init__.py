"""The look at the best chains as wholes."""
