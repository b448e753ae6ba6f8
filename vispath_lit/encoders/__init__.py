"""Sentence and image encoders, each with a cache on disk."""
