"""Released agents that use Recollect against a scripted model, as `scripts/clients` runs them."""
