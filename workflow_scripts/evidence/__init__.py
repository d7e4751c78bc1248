"""Scores, tests of significance, word accuracy and distances between the languages' representations."""
