"""Importers of public graph formats: one file a format, found by its name (`vispath kg import`)."""
