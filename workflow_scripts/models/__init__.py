"""Families of models: their tokenisation, their vocabulary, and how they write."""
