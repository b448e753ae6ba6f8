"""Eq. 9-10: evidence and answerability."""
