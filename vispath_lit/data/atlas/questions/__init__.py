"""Questions over Atlas: gold paths, their words, their pictures, their splits."""
