"""The nouns of Recollect: what is remembered, asked and answered. No I/O and no policy lives here."""
