"""Word embeddings of two languages, mapped into one space, and the lexicon of its neighbours."""
