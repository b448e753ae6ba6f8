"""Who does the pieces of a long piece of work: this process, or workers of Ray. Nothing else differs."""
