"""What happens around an agent's session: the events that a coding agent reports, and the stages that answer them."""
