"""For eyes: tables, traces and pictures of results. Each module is imported by the command that needs it."""
