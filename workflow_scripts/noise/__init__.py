"""What a restore task undoes: which words are hit, and what they become."""
