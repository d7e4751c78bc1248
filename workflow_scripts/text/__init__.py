"""From raw text to parallel and labelled text, and the one segmenter that all stages use."""
