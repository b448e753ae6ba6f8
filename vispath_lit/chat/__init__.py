"""Back ends for prompted parts."""
