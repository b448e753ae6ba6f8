"""Text providers: exact, composed, two-stage."""
