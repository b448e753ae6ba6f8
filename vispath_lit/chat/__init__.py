"""Language models for prompted parts: back ends, prompts, and what happens when an answer is not as asked."""
