"""Builds the parts once, in order; fit, evaluate, checkpoint, run record."""
