"""The graph: build, memory-mapped store, names, pictures, frontier expansion."""
