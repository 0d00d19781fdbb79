"""What happens in a coding agent's session, judged and put into words without a language model."""
