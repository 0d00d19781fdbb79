"""How the embedding model and the coefficients of recall that ship were made, as commands of `scripts/train`."""
