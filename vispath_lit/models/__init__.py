"""Scorers, text providers, heads, losses and the LightningModule."""
