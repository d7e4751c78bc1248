"""What a GPU makes of training, decoding and mapping: `python -m benchmarks.gpu`, by `__main__.py`."""
