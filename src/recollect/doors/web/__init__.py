"""The page: people look at memories, and put them right. Rendered here, without any script of others."""
