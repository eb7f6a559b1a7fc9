"""Tasks of new users, from README and documentation alone."""
