"""Question analysis: sketch and depth."""
