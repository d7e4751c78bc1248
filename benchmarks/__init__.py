"""What the stages cost, against other tools: `python -m benchmarks.training …`, from the repository's root."""
