"""Start entities from the image, a name or a granted topic."""
