"""Questions: sources, supervision, hop examples, the datamodule."""
