"""One run: its configuration, the inputs of its jobs, the checks before it and the diagnosis after it failed."""
