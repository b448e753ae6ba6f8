"""Multi-hop questions over any graph with pictures, made as VisPath-Bench was."""
