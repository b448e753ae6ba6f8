"""Metrics, evaluator, comparison, tables, report."""
