"""sga: the settings of models that write all of a text at once, without autoregression.

That is by CTC, or by semantic-guided alignment-then-denoising (SGA). `prompts` and `refining` have the models themselves.
"""

from dataclasses import dataclass
from typing import Literal

from workflow_scripts.number_types import Natural, Positive, Share, ShareBelowOne

BLOCK = "sga"
"""The key of these settings in configurations, reports and files of prompts."""
FILE = "prompts.safetensors"
"""The file of prompts in the folder of a trained model. Its being there tells that the model writes at once."""


@dataclass
class SGA:
    """Settings of semantic-guided alignment-then-denoising. The defaults are the paper's, as far as it has them."""

    prompt_length: Natural = 128
    """Number of keys and values in each layer's prompt, per unit."""
    denoising: bool = True
    """Whether a third unit denoises the draft."""
    alignment: Literal["ctc", "mask_predict"] = "ctc"
    """How the second unit writes. `ctc`: for translations. `mask_predict`: for texts with many possible answers."""
    upsampling: Positive = 2
    """Positions per source piece in CTC's alignment. With `mask_predict`: positions per piece that the denoiser reads."""
    reads: Literal["mask", "source"] = "mask"
    """What CTC's alignment reads at every position. `mask`: `<mask>`, as in the paper. `source`: the source's pieces, each repeated
    `upsampling` times."""
    blank: str = "▁"
    """Piece that stands for CTC's blank. The paper uses `▁`, the beginning of a word alone; targets lose this piece, which is counted.
    `<s>` (`[CLS]` in mBERT) occurs in no target."""
    noise: Literal["paper", "released"] = "paper"
    """What is done to the drafts that the denoiser reads. `paper`: in training, positions are deleted or repeated. `released`: the second
    best piece replaces each blank, in training as in the published code, and here in decoding as well. In training, some pieces also become
    blanks, random pieces or other pieces of the sentence."""
    noise_rate: Share = 0.2
    """Maximum share of noisy positions. Each row draws its share evenly between 0 and this."""
    drafts: Positive = 1
    """Number of drafts that the denoiser learns from. The first is the alignment's (the paper's T_0), the second is the denoiser's output
    for it (T_1), and so on. The paper writes its loss for T_i; its published code uses the first draft alone."""
    guide: Literal["shared", "detached"] = "shared"
    """Whether the denoiser's loss also trains W_K, W_V and the encoding prompt. `shared`: yes, as in the paper. `detached`: only the
    alignment's loss trains them."""
    iterations: Natural = 4
    """Maximum number of denoising iterations. Denoising ends early when nothing changes."""
    alignment_iterations: Positive = 4
    """With `mask_predict`: number of times the alignment is guessed."""
    length_classes: Positive = 50
    """With `mask_predict`: number of length classes. They divide the lengths up to the longest training target evenly."""
    length_from: Literal["mean", "first"] = "mean"
    """With `mask_predict`: state that the length is guessed from. `mean`: mean of the source's last states. `first`: last state of its
    first piece, as in the published code."""
    label_smoothing: ShareBelowOne = 0.0
    """With `mask_predict`: label smoothing, the probability mass spread over the vocabulary in training. CTC's losses have none."""

    def longest_source(self, positions: int) -> int:
        """The longest source, in pieces, for a model that reads rows of so many: CTC's alignment of it must have room."""
        return positions // self.upsampling if self.alignment == "ctc" else positions

    def longest_target(self, positions: int) -> int:
        """The longest target likewise: the denoiser reads each piece several times, as CTC's alignment has several places for it."""
        return positions // self.upsampling if self.alignment == "ctc" or self.denoising else positions
