"""The prompts of the paper's steps, one file each: instructions and the shape of the answer."""
