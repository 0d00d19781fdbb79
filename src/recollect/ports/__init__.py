"""The protocols that operations need, and `App`, the frozen bag that carries them. Only names live here."""
