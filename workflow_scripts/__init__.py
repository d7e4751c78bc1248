"""The stages of Crossgap, one module each, in the order corpus → report."""
