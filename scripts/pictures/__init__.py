"""The pictures of README and of the page of documentation about the page, taken from real runs."""
