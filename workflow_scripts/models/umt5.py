"""umt5: umT5 with the output layer that it was pretrained with, which reads the decoder's states as they are (Chung et al. 2023).

transformers 5 takes the output layer of each umT5 for the embeddings. So it divides the states by the root of their width, as only the
first T5 does. What is written greedily stays the same then; its probability, and what a beam finds, do not.
"""

from typing import Any

from transformers.models.umt5 import modeling_umt5


class UMT5ForConditionalGeneration(modeling_umt5.UMT5ForConditionalGeneration):
    """transformers' class of this name, by which folders are marked."""

    def __init__(self, config: Any):
        super().__init__(config)
        self.model_dim = 1  # whose root divides the states
