"""Pure functions on results: where the time went, and how far predictions can be trusted."""
