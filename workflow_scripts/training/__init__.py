"""Backbones and the phases of an arm, through one loop."""
