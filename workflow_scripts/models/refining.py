"""refining: how SGA's drafts become texts: the losses that alignment and denoising learn by, the noise of drafts, and decoding.

A *draft* is what the denoiser reads: an alignment of CTC with all its positions, or the pieces of mask-predict, each written as often as
CTC has positions for a piece. In training these are the alignment's output as it is trained: what it guessed, among the pieces that it was
given. Drafts are made noisy, so that the denoiser does not learn to copy (section 4.4). The section writes the loss for the output of any
step, T_i. By default the denoiser learns from the alignment's alone, T_0, as in the published code, and its own output is read in decoding
only; `drafts` says how many are learnt from. Two kinds of noise are known:

``paper``
    positions are deleted, or repeated
``released``
    what the published code does in training: every blank gives way to the second best piece; then 40 % of the noisy positions become the
    blank, 30 % a random piece, and 30 % another piece of the row. Here blanks give way in decoding as well, so that the denoiser reads what
    it has learnt to read. The published code decodes with drafts of mask-predict, and replaces unsure blanks of the denoiser's output.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F

from workflow_scripts.models.batches import by_length
from workflow_scripts.models.ctc import DraftKind, best_pieces, cast_layer, collapse, ctc_loss, emissions, guessed_pieces, piece_losses
from workflow_scripts.models.products import quick_products
from workflow_scripts.models.prompts import Guide, PromptedEncoder

# ---------------------------------------------------------------------------------------------
# training


def losses(
    model: PromptedEncoder,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    targets: torch.Tensor,
    random: torch.Generator | None = None,
) -> dict[str, torch.Tensor]:
    """The loss of alignment, that of denoising (equation 7 adds them), and with mask-predict that of the length; sums over rows, in nats.

    `input_ids` and `attention_mask` (rows × positions) are the source's; `targets` (rows × labels) has −100 where a row has no more. A row
    without labels costs nothing. With mask-predict only the masked pieces cost something; their mean is multiplied by the row's length, so
    that every row weighs as if all its pieces had been guessed. Which ones are masked is drawn from `random`, by default from PyTorch's own
    generator. It is drawn where nothing is trained as well, so that losses in training and on the dev set compare. Drafts are noisy in
    training alone.
    """
    guide = model.encode(input_ids, attention_mask)
    if model.settings.alignment == "ctc":
        found, draft, lengths = align_by_ctc(model, guide, input_ids, targets)
    else:
        found, draft, lengths = align_by_mask_predict(model, guide, targets, random)
    if draft is not None:
        found["denoising"] = denoising_loss(model, guide, draft, lengths, targets)
    return found


def denoising_loss(model: PromptedEncoder, guide: Guide, draft: torch.Tensor, lengths: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The loss of denoising `draft` (rows × positions) and, with `drafts`, what the denoiser makes of it; the mean over these drafts."""
    chosen, mask = model.settings, length_mask(lengths, draft.shape[1])
    if chosen.guide == "detached":
        guide = guide.detached()
    parts = []
    for step in range(chosen.drafts):
        read = noisy(model, draft, mask) if model.training else draft
        following = draft_kind(model) if step + 1 < chosen.drafts else None
        written = emissions(model.denoise(guide, read, mask), *model.output_layer(), targets, model.blank, following)
        parts.append(ctc_loss(written, lengths, targets).sum())
        if written.draft is not None:
            draft = written.draft
    return torch.stack(parts).mean()


AlignmentStage = tuple[dict[str, torch.Tensor], torch.Tensor | None, torch.Tensor]
"""Losses of alignment, the draft that it makes (None where nothing is denoised), and how many positions each row of the draft has."""


def align_by_ctc(model: PromptedEncoder, guide: Guide, source: torch.Tensor, targets: torch.Tensor) -> AlignmentStage:
    """Alignments of CTC."""
    ids, lengths, mask = alignment_input(model, source, guide)
    wanted = draft_kind(model) if model.settings.denoising else None
    made = emissions(model.align(guide, ids, mask), *model.output_layer(), targets, model.blank, wanted)
    return {"alignment": ctc_loss(made, lengths, targets).sum()}, made.draft, lengths


def align_by_mask_predict(model: PromptedEncoder, guide: Guide, targets: torch.Tensor, random: torch.Generator | None) -> AlignmentStage:
    """Targets of which some pieces are guessed, those that `random` draws, and guesses of their lengths."""
    lengths = (targets >= 0).sum(dim=1)
    hidden = positions_to_guess(lengths, targets.shape[1], random)
    ids = torch.where(hidden, model.mask, targets.clamp_min(0))
    # how many are hidden is drawn, so on a GPU the processor waits here, once
    places = hidden.flatten().nonzero()[:, 0]

    def at_places(values: torch.Tensor) -> torch.Tensor:
        return values.flatten(0, 1).index_select(0, places)

    states = at_places(model.align(guide, ids, length_mask(lengths.clamp_min(1), targets.shape[1])))
    smoothing = model.settings.label_smoothing if model.training else 0.0
    costs = piece_losses(states, *model.output_layer(), at_places(targets), smoothing)
    share = at_places((lengths / hidden.sum(dim=1).clamp_min(1))[:, None].expand_as(hidden))
    guessed = torch.where(lengths > 0, length_class(model, lengths), -100)
    length = F.cross_entropy(length_scores(model, guide).float(), guessed, ignore_index=-100, reduction="sum")
    found = {"alignment": (costs * share).sum(), "length": length}
    if not model.settings.denoising:
        return found, None, lengths
    # of drafts that are guesses alone, a denoiser with little training learns to leave nearly everything out
    guesses, _ = guessed_pieces(states[:, None], *model.output_layer())
    return found, *repeated_pieces(model, ids.masked_scatter(hidden, guesses), lengths.clamp_min(1))


def alignment_input(model: PromptedEncoder, source: torch.Tensor, guide: Guide) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What CTC's alignment reads (rows × positions), how many positions each row has, and which these are."""
    times = model.settings.upsampling
    lengths = times * guide.lengths
    mask = length_mask(lengths, times * source.shape[1])
    if model.settings.reads == "source":
        return source.repeat_interleave(times, dim=1), lengths, mask
    return torch.full(mask.shape, model.mask, device=source.device), lengths, mask


def length_mask(lengths: torch.Tensor, width: int | None = None) -> torch.Tensor:
    """Rows × positions (of the longest row, or `width`): whether a position is one of the row's own."""
    return torch.arange(width or int(lengths.max()), device=lengths.device)[None] < lengths[:, None]


def positions_to_guess(lengths: torch.Tensor, width: int, random: torch.Generator | None = None) -> torch.Tensor:
    """Positions (rows × `width`) to be guessed, as mask-predict chooses them in training.

    They are from one to all of a row, and each number is as likely.
    """
    counts = (torch.rand(len(lengths), device=lengths.device, generator=random) * lengths).floor() + 1
    own = length_mask(lengths.clamp_min(1), width)
    order = torch.rand(own.shape, device=lengths.device, generator=random).masked_fill(~own, 2.0).argsort(dim=1).argsort(dim=1)
    return own & (order < counts[:, None]) & (lengths > 0)[:, None]


def draft_kind(model: PromptedEncoder) -> DraftKind:
    """What the denoiser reads at a position of an alignment, in training and in decoding."""
    return "no blank" if model.settings.noise == "released" else "best"


def repeated_pieces(model: PromptedEncoder, ids: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of pieces with each piece written several times in a row, and their lengths."""
    return ids.repeat_interleave(model.settings.upsampling, dim=1), lengths * model.settings.upsampling


def noisy(model: PromptedEncoder, draft: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """A draft (rows × positions) with noise. Random numbers are PyTorch's, whose state is in every checkpoint."""
    hit = torch.rand(draft.shape, device=draft.device) < model.settings.noise_rate * torch.rand(len(draft), 1, device=draft.device)
    kind = torch.rand(draft.shape, device=draft.device)
    if model.settings.noise == "released":
        return replaced(draft, mask, hit, kind, model.blank, model.config.vocab_size)
    return shifted(draft, mask, hit & (kind < 0.5), hit & (kind >= 0.5), model.blank)


def shifted(draft: torch.Tensor, mask: torch.Tensor, deleted: torch.Tensor, repeated: torch.Tensor, blank: int) -> torch.Tensor:
    """A draft without the positions `deleted`, and with those `repeated` twice.

    A row keeps its length: what is too much is cut off, and what is missing is filled up with blanks.
    """
    times = torch.where(deleted, 0, torch.where(repeated, 2, 1)) * mask
    ends = times.cumsum(dim=1)
    # a new position is taken from the first one that ends behind it
    positions = torch.arange(draft.shape[1], device=draft.device).expand_as(draft).contiguous()
    origin = torch.searchsorted(ends, positions, right=True)
    taken = draft.gather(1, origin.clamp_max(draft.shape[1] - 1))
    return torch.where(origin < draft.shape[1], taken, blank)


def replaced(draft: torch.Tensor, mask: torch.Tensor, hit: torch.Tensor, kind: torch.Tensor, blank: int, vocabulary: int) -> torch.Tensor:
    """A draft in which the positions `hit` became blanks, random pieces or other pieces of the row, by `kind` (0 to 1)."""
    lengths = mask.sum(dim=1, keepdim=True)
    elsewhere = draft.gather(1, (torch.rand(draft.shape, device=draft.device) * lengths).long())
    anything = torch.randint_like(draft, vocabulary)
    other = torch.where(kind < 0.4, blank, torch.where(kind < 0.7, anything, elsewhere))
    return torch.where(hit & mask, other, draft)


def length_scores(model: PromptedEncoder, guide: Guide) -> torch.Tensor:
    """Rows × classes: scores of the classes of the target's length."""
    assert model.length is not None
    return model.length(guide.summary)


def length_class(model: PromptedEncoder, lengths: torch.Tensor) -> torch.Tensor:
    """The class of each target's length: class c has the lengths from c·w + 1 to (c + 1)·w."""
    return ((lengths - 1).clamp_min(0) // model.length_width).clamp_max(model.settings.length_classes - 1)


# ---------------------------------------------------------------------------------------------
# decoding


Layer = tuple[torch.Tensor, torch.Tensor]
"""The matrix and the bias of the output layer, as `cast_layer` makes them once for all batches and units."""


class Written(NamedTuple):
    """What was written for a row."""

    ids: list[int]
    """The pieces of the text."""
    iterations: int
    """How often it was denoised."""
    ended: bool = True
    """Whether it is whole: not if it was cut, nor if a greater length was guessed than it may have."""


@torch.no_grad()
@quick_products()
def write(
    model: PromptedEncoder,
    rows: Sequence[Sequence[int]],
    pad: int,
    tokens: int = 4_096,
    iterations: int | None = None,
    alignment_iterations: int | None = None,
    longest: int = 0,
) -> list[Written]:
    """The texts of encoded sources, in the order of the rows.

    As many rows are written at once as fit into `tokens` with padding. Mask-predict guesses the alignment `alignment_iterations` times.
    Denoising is repeated until nothing changes, and `iterations` times at most; 0 leaves it out. Both are by default as the settings say.
    A text is cut after `longest` pieces (0: after those that the model has positions for).
    """
    model.eval()
    max_iterations = model.settings.iterations if iterations is None else iterations
    max_iterations = max_iterations if model.settings.denoising else 0
    guesses = alignment_iterations or model.settings.alignment_iterations
    layer = cast_layer(*model.output_layer())
    written: list[Written] = [Written([], 0)] * len(rows)
    for batch in by_length([model.settings.upsampling * len(row) for row in rows], tokens):
        sources = [torch.tensor(rows[i]) for i in batch]
        ids = torch.nn.utils.rnn.pad_sequence(sources, batch_first=True, padding_value=pad).to(model.device)
        guide = model.encode(ids, length_mask(torch.tensor([len(row) for row in sources], device=model.device)))
        if model.settings.alignment == "ctc":
            parts = [(batch, by_ctc(model, layer, ids, guide, max_iterations))]
        else:
            guessed = guessed_lengths(model, guide)
            most = min(longest or model.longest_target, model.longest_target)
            lengths, whole = guessed.clamp_max(most), (guessed <= most).tolist()
            parts = []
            for part in map(list, by_length((model.settings.upsampling * lengths).tolist(), tokens)):
                texts = by_mask_predict(model, layer, guide.rows(part), lengths[part], guesses, max_iterations)
                parts.append(([batch[i] for i in part], [text._replace(ended=whole[i]) for i, text in zip(part, texts, strict=True)]))
        for numbers, texts in parts:
            for number, text in zip(numbers, texts, strict=True):
                too_long = 0 < longest < len(text.ids)
                written[number] = text._replace(ids=text.ids[:longest], ended=False) if too_long else text
    return written


def by_ctc(model: PromptedEncoder, layer: Layer, ids: torch.Tensor, guide: Guide, max_iterations: int) -> list[Written]:
    """The texts of sources (rows × positions) as alignments, denoised `max_iterations` times at most."""
    read, lengths, mask = alignment_input(model, ids, guide)
    best, draft = best_pieces(model.align(guide, read, mask), *layer, model.blank, draft_kind(model))
    return collapsed(model, *denoised(model, layer, guide, draft, best, lengths, max_iterations), lengths)


def by_mask_predict(
    model: PromptedEncoder, layer: Layer, guide: Guide, lengths: torch.Tensor, guesses: int, max_iterations: int
) -> list[Written]:
    """Texts of guessed lengths, whose pieces are guessed so many times, denoised `max_iterations` times at most."""
    guessed = mask_predict(model, layer, guide, lengths, guesses)
    if not max_iterations:
        return [Written(row[:length], 0) for row, length in zip(guessed.tolist(), lengths.tolist(), strict=True)]
    draft, lengths = repeated_pieces(model, guessed, lengths)
    return collapsed(model, *denoised(model, layer, guide, draft, torch.full_like(draft, -1), lengths, max_iterations), lengths)


def collapsed(model: PromptedEncoder, best: torch.Tensor, counts: torch.Tensor, lengths: torch.Tensor) -> list[Written]:
    """What alignments stand for, and how often they were denoised."""
    rows = zip(best.tolist(), lengths.tolist(), counts.tolist(), strict=True)
    return [Written(collapse(row[:length], model.blank), count) for row, length, count in rows]


def denoised(
    model: PromptedEncoder, layer: Layer, guide: Guide, draft: torch.Tensor, best: torch.Tensor, lengths: torch.Tensor, max_iterations: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Alignments after denoising `draft` until the `best` pieces stay the same, and how often each row was denoised (equation 6)."""
    best, counts = best.clone(), torch.zeros_like(lengths)
    left = torch.arange(len(draft), device=draft.device)
    for _ in range(max_iterations):
        mask = length_mask(lengths[left], draft.shape[1])
        now, draft = best_pieces(model.denoise(guide, draft, mask), *layer, model.blank, draft_kind(model))
        changed = ((now != best[left]) & mask).any(dim=1)
        best[left], counts[left] = now, counts[left] + 1
        if not changed.any():
            break
        draft, guide, left = draft[changed], guide.rows(changed), left[changed]
    return best, counts


def guessed_lengths(model: PromptedEncoder, guide: Guide) -> torch.Tensor:
    """The length of each row's text (rows), which may be more than there is room for; a class of lengths stands for its middle."""
    width = model.length_width
    return length_scores(model, guide).argmax(dim=1) * width + (width + 1) // 2


def mask_predict(model: PromptedEncoder, layer: Layer, guide: Guide, lengths: torch.Tensor, iterations: int) -> torch.Tensor:
    """Rows of pieces by mask-predict, each of its length.

    All pieces are guessed at first. In iteration t of n the share (n − t) / n of a row, the pieces with the least probability, is masked
    and guessed again.
    """
    mask = length_mask(lengths)
    ids = torch.full(mask.shape, model.mask, device=model.device)
    chances = torch.zeros(mask.shape, device=model.device)
    for iteration in range(iterations):
        share = (iterations - iteration) / iterations
        doubtful = chances.masked_fill(~mask, torch.inf).argsort(dim=1, stable=True).argsort(dim=1)
        hidden = mask & (doubtful < (lengths * share).floor().clamp_min(1)[:, None])
        ids = torch.where(hidden, model.mask, ids)
        guess, chance = guessed_pieces(model.align(guide, ids, mask), *layer)
        ids, chances = torch.where(hidden, guess, ids), torch.where(hidden, chance, chances)
    return ids
