"""The stages of Crossgap, in rooms, from the ground up: text, models, lexicon, noise, evidence, training, tasks, run, report."""
