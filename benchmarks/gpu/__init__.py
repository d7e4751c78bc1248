"""What a GPU makes of training, decoding and mapping: `python -m benchmarks.gpu`, told in `__main__.py`."""
