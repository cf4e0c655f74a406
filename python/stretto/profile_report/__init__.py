"""A profile as a page: on the terminal, as one HTML file, as JSON."""
