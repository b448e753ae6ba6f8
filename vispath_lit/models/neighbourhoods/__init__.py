"""The surroundings of an entity as a vector, g(e)."""
