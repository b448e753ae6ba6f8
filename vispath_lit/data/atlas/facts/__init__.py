"""The facts of Atlas, one file a source or a field."""
