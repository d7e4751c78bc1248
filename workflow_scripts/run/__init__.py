"""One run: its configuration, its paths, what is looked at before it and what is told after it failed."""
