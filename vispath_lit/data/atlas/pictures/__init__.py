"""The reference images of Atlas: drawn as SVG, rasterised, and held against each other."""
