"""Who asks: tokens, roles, and the principal from which every caller of a shared deployment is made."""
