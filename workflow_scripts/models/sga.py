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
    """Keys and values of each layer's prompt, in each unit."""
    denoising: bool = True
    """Whether there is a third unit, which denoises."""
    alignment: Literal["ctc", "mask_predict"] = "ctc"
    """How the second unit writes: `ctc` for translations, `mask_predict` for texts that could be written in many ways."""
    upsampling: Positive = 2
    """Positions for each piece of the source in CTC's alignment; with `mask_predict`, for each piece that the denoiser reads."""
    reads: Literal["mask", "source"] = "mask"
    """What CTC's alignment reads in every position: `<mask>`, as in the paper; or `source`, the source's pieces, each written `upsampling`
    times in a row."""
    blank: str = "▁"
    """The piece that stands for CTC's blank. The paper's is `▁`, the beginning of a word alone; targets lose it, which is counted.
    `<s>` (`[CLS]` in mBERT) is in no target."""
    noise: Literal["paper", "released"] = "paper"
    """Noise of what the denoiser reads in training. `paper`: positions are deleted or repeated. `released`, as in the published code:
    every blank gives way to the second best piece, and pieces are replaced by blanks, by random pieces or by others of the sentence."""
    noise_rate: Share = 0.2
    """Each row draws its share of noisy positions evenly from 0 to this."""
    drafts: Positive = 1
    """The denoiser learns from so many drafts of a row: the alignment's (the paper's T_0), what it makes of this itself (T_1), and so on.
    The paper writes its loss for T_i; its published code has the first draft alone."""
    guide: Literal["shared", "detached"] = "shared"
    """Whether the denoiser's loss trains W_K, W_V and the encoding prompt as well, as in the paper. `detached`: the loss of alignment alone
    does, and the denoiser takes the guide as it is."""
    iterations: Natural = 4
    """Denoising is repeated until nothing changes, and so often at most."""
    alignment_iterations: Positive = 4
    """With `mask_predict`: how often the alignment is guessed."""
    length_classes: Positive = 50
    """With `mask_predict`: classes of the target's length; the lengths up to the longest training target are divided evenly among them."""
    length_from: Literal["mean", "first"] = "mean"
    """With `mask_predict`: the length is guessed from the mean of the source's last states, or from that of its first piece alone, as in
    the published code."""
    label_smoothing: ShareBelowOne = 0.0
    """With `mask_predict`: mass that is spread over the vocabulary when pieces are guessed in training. CTC's losses have none."""

    def longest_source(self, positions: int) -> int:
        """The longest source, in pieces, for a model that reads rows of so many: CTC's alignment of it must have room."""
        return positions // self.upsampling if self.alignment == "ctc" else positions

    def longest_target(self, positions: int) -> int:
        """The longest target likewise: the denoiser reads each piece several times, as CTC's alignment has several places for it."""
        return positions // self.upsampling if self.alignment == "ctc" or self.denoising else positions
