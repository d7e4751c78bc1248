"""What a configuration may say, and where its files are."""
