"""Output: tables, figures, timelines, traces and HTML pages of results; each module is imported where it is used."""
