"""How good the answers of Recollect are, over sets whose right answers are known: `scripts/eval` and others."""
