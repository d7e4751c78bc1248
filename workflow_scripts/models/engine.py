"""engine: what an engine is: it loads a model and writes hypotheses. The decorator `engine` registers one.

::

    @engine("greedy", label="greedy search")
    def greedy(network, batch, codec, max_length):
        return codec.decode(network.generate(**batch, num_beams=1, max_new_tokens=max_length).tolist())

The function gets the sources of a batch, as many as `decoding.batch_tokens` has room for, and returns a text for each. It is called with
what its parameters ask for by name (`PARAMETERS`). What it draws, by `draw` or by PyTorch, comes from the seed of decoding, whatever was
decoded before. `network.generate` of a decoder gives answers without their prompts here. An engine with a format or a program of its own,
or with several hypotheses, is registered by `register_engine`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflow_scripts import plugins, registry
from workflow_scripts.errors import InputError
from workflow_scripts.stage import own_settings

if TYPE_CHECKING:
    from workflow_scripts.models.decoding import Decoding, Translate
    from workflow_scripts.models.search import Hypothesis
    from workflow_scripts.models.tokenisation import Codec

PARAMETERS = {
    "network": "the model, of transformers, on its device",
    "batch": "what `network.generate` needs to begin: `input_ids`, `attention_mask`, and what a text in the language begins with",
    "rows": "the encoded sources of the batch, lists of ids",
    "codec": "the model's tokenizer: `codec.decode(rows)` gives texts, `codec.tokenizer` is that of transformers",
    "language": "the code of the language to write in",
    "max_length": "how many pieces a text may have at most",
    "draw": "a NumPy generator of the batch's own: the same numbers in every run with the same seed",
    "settings": "an instance of the engine's dataclass",
}
"""What the function of an engine may ask for, by the name of its parameter."""


@dataclass(frozen=True, kw_only=True)
class Engine(registry.Entry):
    """An entry of the kind `engine`."""

    open: Callable[[Path, Codec, int, Decoding, int], AbstractContextManager[Translate]]
    """Folder of a model, codec, threads (0: as many as PyTorch has), settings of decoding and a seed → what translates, as a context."""
    ranks: bool = False
    """Whether it searches with a beam: it gives several hypotheses with their scores, and speed is measured with several widths."""
    missing: Callable[[], str] | None = None
    """Why it cannot decode in this environment, with the way out; empty where it can."""
    missing_on_gpu: Callable[[], str] | None = None
    """Why it cannot decode on a GPU in this environment, with the way out; empty where it can."""


def register_engine(
    name: str, open: Callable[[Path, Codec, int, Decoding, int], AbstractContextManager[Translate]], *, label: str = "", **about: Any
) -> None:
    """Register an engine; `about` are the fields of `Engine`."""
    registry.register("engine", Engine(name=name, label=label or name, open=open, **about))


def engine(name: str, *, label: str = "", source: str = "", settings: type | None = None) -> Callable[[Callable], Callable]:
    """Register the function of a batch that is decorated as an engine; see the module."""

    def registered(function: Callable) -> Callable:
        asked = plugins.asked(f"engine {name!r}", "an engine", function, PARAMETERS, decorator="engine", settings=settings)
        register_engine(name, by_batch(name, function, asked), label=label, source=source, settings=settings)
        return function

    return registered


def by_batch(
    name: str, function: Callable[..., Any], asked: tuple[str, ...]
) -> Callable[[Path, Codec, int, Decoding, int], AbstractContextManager[Translate]]:
    """The `Engine.open` of a function of a batch."""

    def listed(**given: Any) -> list[Any]:
        return list(function(**given))

    @contextlib.contextmanager
    def opened(model: Path, codec: Codec, threads: int, settings: Decoding, seed: int) -> Iterator[Translate]:
        import numpy as np
        import torch

        from workflow_scripts.device import without_gradients
        from workflow_scripts.models.decoding import Translate, longest_source, longest_text
        from workflow_scripts.models.search import Hypothesis, behind_prompts, padded_batches, without_penalties_of_its_own

        own = own_settings(registry.entry("engine", name), settings.engine_settings)
        network = load_to_decode(model, codec, settings).eval()
        fixed = {"network": network, "codec": codec, "settings": own}
        fixed["max_length"] = longest_text(network.config, settings)

        @without_gradients
        def write(rows: list[list[int]], languages: tuple[str, str], n_best: int) -> list[list[Hypothesis]]:
            hypotheses: list[list[Hypothesis]] = [[] for _ in rows]
            begin: dict[str, Any] = codec.generate_arguments(languages[1])
            if codec.form.causal:
                begin |= {"eos_token_id": codec.ends(network)}
            for number, (chosen, batch) in enumerate(padded_batches(rows, settings.batch_tokens, codec, network.device)):
                values = {**fixed, "language": languages[1], "batch": {**batch, **begin}, "rows": [rows[place] for place in chosen]}
                values["draw"] = np.random.default_rng([seed, number])
                torch.manual_seed(int(values["draw"].integers(2**63)))
                with without_penalties_of_its_own(network), behind_prompts(network, codec):
                    about = functools.partial("{} sources in {}".format, len(chosen), languages[0])
                    texts = plugins.call(f"engine {name!r}", listed, {each: values[each] for each in asked}, about)
                if wrong := [text for text in texts if not isinstance(text, str)]:
                    raise InputError(f"engine {name!r} returned {str(wrong[0])[:80]}, which is no text; it returns a text for each source")
                if len(texts) != len(chosen):
                    raise InputError(f"engine {name!r} returned {len(texts)} texts for {len(chosen)} sources; it returns a text for each")
                for place, text in zip(chosen, texts, strict=True):
                    hypotheses[place] = [Hypothesis(float("nan"), text)]
            return hypotheses

        yield Translate(codec, longest_source(codec, network.config, settings), write)

    return opened


def load_to_decode(model: Path, codec: Codec, settings: Decoding) -> Any:
    """A model of transformers that writes, on the device and in the type of the settings."""
    from workflow_scripts.device import pick_device
    from workflow_scripts.models.decoding import computed_in
    from workflow_scripts.models.networks import class_of, read_weights, without_filler

    device = pick_device(settings.device)
    network = read_weights(class_of(codec.form, "text"), model, new_head=False, dtype=computed_in(settings, device, codec.form)).to(device)
    return without_filler(network, codec.tokenizer)
