"""What answers a question: VisPath and its rivals."""
