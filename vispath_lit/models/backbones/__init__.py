"""Models that read picture, question and walked paths together, for the intent of a hop (Eq. 4)."""
