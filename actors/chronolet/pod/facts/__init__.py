"""The facts that follow from effect results and from observations. Pure."""
