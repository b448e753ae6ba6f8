"""VisPath-Lit: trainable question answering over multimodal knowledge graphs."""

__version__ = "0.1.0"
