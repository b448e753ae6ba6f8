"""Converters of public question sets: a graph, and question files over it."""
