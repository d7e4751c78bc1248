"""Drafts and their noise, and texts that are denoised until nothing changes."""

import pytest
import torch
from tiny_models import small_encoder

from workflow_scripts.models import products, refining
from workflow_scripts.models.ctc import collapse
from workflow_scripts.models.networks import load_network
from workflow_scripts.models.prompt_files import make_generator
from workflow_scripts.models.refining import guessed_lengths, length_mask, mask_predict, positions_to_guess, replaced, shifted, write
from workflow_scripts.models.sga import SGA
from workflow_scripts.models.tokenisation import load_codec

BLANK, PAD = 4, 1
SOURCES = [[0, 20, 31, 42, 53, 2], [0, 60, 71, 2], [0, 33, 2]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return small_encoder(tmp_path_factory.mktemp("encoder"), "xlm-roberta")


def generator(folder, **settings):
    encoder = load_network(folder, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    return make_generator(encoder, load_codec(folder), SGA(prompt_length=2, **settings)).eval()


def test_deleted_and_repeated_positions_shift_the_others():
    draft = torch.tensor([[5, 6, 7, 8, 9], [5, 6, 7, PAD, PAD]])
    mask = length_mask(torch.tensor([5, 3]))
    deleted = torch.tensor([[0, 1, 0, 1, 0], [1, 0, 0, 0, 0]], dtype=torch.bool)
    repeated = torch.tensor([[1, 0, 0, 0, 0], [0, 0, 1, 0, 1]], dtype=torch.bool)
    assert shifted(draft, mask, deleted, repeated, BLANK).tolist() == [[5, 5, 7, 9, BLANK], [6, 7, 7, BLANK, BLANK]]
    nothing = torch.zeros_like(deleted)
    assert shifted(draft, mask, nothing, nothing, BLANK)[mask].tolist() == draft[mask].tolist()
    # what is too much is cut off
    assert shifted(draft, mask, nothing, ~nothing, BLANK)[0].tolist() == [5, 5, 6, 6, 7]


def test_the_released_noise_takes_blanks_random_pieces_and_pieces_of_the_row():
    draft = torch.tensor([[50, 51, 52, 53, PAD, PAD]])
    mask, hit = length_mask(torch.tensor([4]), 6), torch.tensor([[True, True, True, False, True, True]])
    kind = torch.tensor([[0.1, 0.5, 0.9, 0.9, 0.1, 0.1]])
    for seed in range(20):
        torch.manual_seed(seed)
        row = replaced(draft, mask, hit, kind, BLANK, 40)[0].tolist()
        assert row[0] == BLANK and row[1] < 40 and row[2] in draft[0, :4] and row[3:] == [53, PAD, PAD]


def test_mask_predict_learns_from_one_to_all_pieces_of_a_row():
    torch.manual_seed(0)
    lengths = torch.tensor([3, 1, 0]).repeat(200)
    hidden = positions_to_guess(lengths, 3)
    counts = hidden.sum(1)
    assert {*counts[0::3].tolist()} == {1, 2, 3} and {*counts[1::3].tolist()} == {1} and not counts[2::3].any()
    assert not (hidden & ~length_mask(lengths, hidden.shape[1])).any()


@pytest.mark.parametrize("noise", ["paper", "released"])
def test_rows_do_not_know_of_each_other(folder, noise):
    model = generator(folder, noise=noise)
    many = write(model, SOURCES, PAD, iterations=3)
    assert [each for source in SOURCES for each in write(model, [source], PAD, iterations=3)] == many
    assert write(model, SOURCES, PAD, tokens=20, iterations=3) == many
    assert all(model.blank not in each.ids and len(each.ids) <= 2 * len(source) for each, source in zip(many, SOURCES, strict=True))
    assert [each.iterations for each in write(model, SOURCES, PAD, iterations=0)] == [0, 0, 0]


def test_texts_of_guessed_lengths_fill_batches_by_these_lengths(folder, monkeypatch):
    model = generator(folder, alignment="mask_predict")
    monkeypatch.setattr(refining, "length_scores", lambda model, guide: torch.nn.functional.one_hot(guide.lengths, 50).float())
    sizes = []
    align = model.align
    monkeypatch.setattr(model, "align", lambda guide, ids, mask: sizes.append(ids.numel()) or align(guide, ids, mask))
    many = write(model, SOURCES, PAD)
    assert write(model, SOURCES, PAD, tokens=14) == many
    assert max(sizes[: len(sizes) // 2]) > 14 // 2 >= max(sizes[-model.settings.alignment_iterations :])


def test_the_denoiser_learns_from_what_was_guessed_among_the_pieces_that_were_given(folder, monkeypatch):
    model = generator(folder, alignment="mask_predict", noise_rate=0.0).train()
    monkeypatch.setattr(refining, "guessed_pieces", lambda states, *_: (torch.full(states.shape[:2], 7), None))
    seen = {}
    monkeypatch.setattr(
        model, "denoise", lambda guide, draft, mask: seen.setdefault("draft", draft)[..., None] * torch.ones(model.config.hidden_size)
    )
    align = model.align
    monkeypatch.setattr(model, "align", lambda guide, ids, mask: seen.setdefault("read", ids) is None or align(guide, ids, mask))
    torch.manual_seed(3)
    targets = torch.tensor([[20, 31, 42, 53], [60, 71, -100, -100]])
    refining.losses(model, torch.tensor([SOURCES[0]] * 2), torch.ones(2, 6), targets)
    read = seen["read"][0]
    assert (read == model.mask).any() and (read != model.mask).any()  # this seed masks some
    assert seen["draft"][0].tolist() == torch.where(read == model.mask, 7, read).repeat_interleave(2).tolist()


def test_the_denoiser_learns_from_its_own_drafts_as_well(folder, monkeypatch):
    model = generator(folder, drafts=3, noise_rate=0.0).train()
    read = []
    denoise = model.denoise
    monkeypatch.setattr(model, "denoise", lambda guide, draft, mask: read.append(draft) or denoise(guide, draft, mask))
    source, targets = torch.tensor([SOURCES[0]] * 2), torch.tensor([[20, 31, 42, 53], [60, 71, -100, -100]])
    found = refining.losses(model, source, torch.ones_like(source), targets)
    guide = model.encode(source, torch.ones_like(source))
    weight, bias = model.output_layer()
    mask = length_mask(torch.tensor([12, 12]))
    costs = []
    for draft, following in zip(read, [*read[1:], None], strict=True):
        states = denoise(guide, draft, mask)
        assert following is None or torch.equal(following, (states @ weight.T + bias).argmax(-1))
        costs.append(refining.denoising_loss(generator(folder), guide, draft, torch.tensor([12, 12]), targets).item())
    assert len(costs) == 3 and found["denoising"].item() == pytest.approx(sum(costs) / 3, rel=1e-5)


@pytest.mark.parametrize("alignment", [1, 64])
def test_mask_predict_smooths_its_labels_in_training_alone(folder, alignment, monkeypatch):
    monkeypatch.setattr(products, "_alignment", lambda device: alignment)
    source, targets = torch.tensor([SOURCES[0]]), torch.tensor([[20, 31, 42, 53]])
    found = {}
    for smoothing in (0.0, 0.5):
        model = generator(folder, alignment="mask_predict", denoising=False, label_smoothing=smoothing)
        for training in (True, False):
            torch.manual_seed(2)
            found[smoothing, training] = refining.losses(model.train(training), source, torch.ones(1, 6), targets)["alignment"].item()
    assert found[0.5, False] == found[0.0, False] == pytest.approx(found[0.0, True], rel=1e-6)
    model = generator(folder, alignment="mask_predict", denoising=False).train()
    torch.manual_seed(2)
    hidden = positions_to_guess(torch.tensor([4]), 4)
    states = model.align(model.encode(source, torch.ones(1, 6)), torch.where(hidden, model.mask, targets), torch.ones(1, 4))[hidden]
    weight, bias = model.output_layer()
    costs = torch.nn.functional.cross_entropy(states @ weight.T + bias, targets[hidden], label_smoothing=0.5)
    assert found[0.5, True] == pytest.approx(4 * costs.item(), rel=1e-4)


@pytest.mark.parametrize("settings", [{}, {"alignment": "mask_predict"}])
def test_texts_are_written_in_half_precision_as_well(folder, settings):
    model = generator(folder, **settings).to(dtype=torch.bfloat16)
    written = write(model, SOURCES, PAD, iterations=2)
    assert len(written) == len(SOURCES) and all(each.iterations <= 2 for each in written)


def test_denoising_goes_on_until_nothing_changes(folder, monkeypatch):
    """With a denoiser that mends one position at a time: the first that is not 9."""
    model = generator(folder)

    def mended(draft, *_):
        wrong = (draft != 9) & ((draft != 9).cumsum(1) == 1)
        return (torch.where(wrong, 9, draft),) * 2

    monkeypatch.setattr(model, "denoise", lambda guide, draft, mask: draft.masked_fill(~mask, 9))
    monkeypatch.setattr(refining, "best_pieces", mended)
    guide = model.encode(torch.tensor([[0, 20, 2]] * 3), torch.ones(3, 3))
    draft, lengths = torch.tensor([[9, 5, 9, 6, 7, 9], [9] * 6, [9, 9, 9, 9, 5, 5]]), torch.tensor([6, 6, 4])
    best, counts = refining.denoised(model, model.output_layer(), guide, draft, draft, lengths, 10)
    # a row that is right needs one iteration to see it, and what is behind a row's end does not count
    assert counts.tolist() == [4, 1, 1] and best[:2].tolist() == [[9] * 6] * 2
    best, counts = refining.denoised(model, model.output_layer(), guide, draft, draft, lengths, 2)
    assert counts.tolist() == [2, 1, 1] and best[0].tolist() == [9, 9, 9, 9, 7, 9]


def test_without_denoising_the_alignment_is_the_text(folder):
    model = generator(folder, denoising=False)
    found = write(model, SOURCES[:1], PAD)[0]
    guide = model.encode(torch.tensor(SOURCES[:1]), torch.ones(1, 6))
    states = model.align(guide, torch.full((1, 12), model.mask), torch.ones(1, 12))
    weight, bias = model.output_layer()
    assert found.ids == collapse((states @ weight.T + bias).argmax(-1)[0].tolist(), model.blank)


def test_the_alignment_reads_masks_or_the_source_twice(folder):
    source = torch.tensor([SOURCES[1], [0, 33, 2, PAD]])
    for reads, wanted in (("mask", [[401] * 8] * 2), ("source", [[0, 0, 60, 60, 71, 71, 2, 2], [0, 0, 33, 33, 2, 2, PAD, PAD]])):
        model = generator(folder, reads=reads)
        guide = model.encode(source, (source != PAD).long())
        ids, lengths, mask = refining.alignment_input(model, source, guide)
        assert ids.tolist() == [[model.mask if piece == 401 else piece for piece in row] for row in wanted]
        assert lengths.tolist() == [8, 6] and mask.sum(1).tolist() == [8, 6]
        assert write(model, SOURCES, PAD) == [write(model, [row], PAD)[0] for row in SOURCES]


def test_mask_predict_masks_the_most_doubtful_pieces(folder, monkeypatch):
    model = generator(folder, alignment="mask_predict", alignment_iterations=4)
    seen = []
    align = model.align
    monkeypatch.setattr(model, "align", lambda guide, ids, mask: seen.append(ids.clone()) or align(guide, ids, mask))
    monkeypatch.setattr(refining, "length_scores", lambda model, guide: torch.nn.functional.one_hot(torch.tensor([7, 3]), 50).float())
    guide = model.encode(torch.tensor([SOURCES[0], SOURCES[0]]), torch.ones(2, 6))
    lengths = guessed_lengths(model, guide)
    ids, own = mask_predict(model, model.output_layer(), guide, lengths, 4), length_mask(lengths)
    hidden = [((row == model.mask) & own).sum(1).tolist() for row in seen]
    assert lengths.tolist() == [8, 4] and hidden == [[8, 4], [6, 3], [4, 2], [2, 1]]
    assert ids.shape == (2, 8)
    # no text is longer than there are positions for
    written = write(model, SOURCES[:2], PAD)
    assert all(len(each.ids) <= 16 for each in written)
    # another number of guesses than the model was trained with
    seen.clear()
    write(model, SOURCES[:2], PAD, alignment_iterations=2)
    assert len(seen) == 2


def test_the_doubtful_are_the_least_probable_and_the_others_keep_their_piece(folder, monkeypatch):
    model = generator(folder, alignment="mask_predict", alignment_iterations=4)
    said = [
        ([100, 101, 102, 103], [-1.0, -4, -2, -3]),
        ([200, 201, 202, 203], [-9.0, -0.2, -5, -0.1]),
        ([300, 301, 302, 303], [-9.0, -9, -0.3, -9]),
    ]
    answers = iter([*said, ([400, 401, 402, 403], [-9.0] * 4)])
    monkeypatch.setattr(refining, "guessed_pieces", lambda *_: tuple(torch.tensor([part]) for part in next(answers)))
    seen = []
    align = model.align
    monkeypatch.setattr(model, "align", lambda guide, ids, mask: seen.append(ids[0].tolist()) or align(guide, ids, mask))
    guide = model.encode(torch.tensor(SOURCES[:1]), torch.ones(1, 6))
    ids = mask_predict(model, model.output_layer(), guide, torch.tensor([4]), 4)
    unknown = model.mask
    # three of four at −4, −3, −2; then two at −5, −1; then the last at −9, which is what was guessed anew
    assert seen == [[unknown] * 4, [100, unknown, unknown, unknown], [unknown, 201, unknown, 203], [unknown, 201, 302, 203]]
    assert ids.tolist() == [[400, 201, 302, 203]]


@pytest.mark.parametrize("tokens", [14, 4_096])
def test_texts_that_were_cut_or_guessed_longer_have_no_end(folder, monkeypatch, tokens):
    model = generator(folder, denoising=False)
    whole = write(model, SOURCES, PAD, tokens)
    most = max(len(each.ids) for each in whole) - 1
    wanted = [(each.ids[:most], len(each.ids) <= most) for each in whole]
    assert [(each.ids, each.ended) for each in write(model, SOURCES, PAD, tokens, longest=most)] == wanted
    assert all(each.ended for each in whole)
    # mask-predict writes no more than its guess, so the guess tells what is missing
    model = generator(folder, denoising=False, alignment="mask_predict")
    monkeypatch.setattr(refining, "length_scores", lambda model, guide: torch.nn.functional.one_hot(guide.lengths, 50).float())
    for longest, lengths in ((0, [7, 5, 4]), (7, [7, 5, 4]), (6, [6, 5, 4]), (4, [4, 4, 4])):
        written = write(model, SOURCES, PAD, tokens, longest=longest)
        assert [len(each.ids) for each in written] == lengths
        assert [each.ended for each in written] == [length == full for length, full in zip(lengths, (7, 5, 4), strict=True)]
    monkeypatch.setattr(type(model), "longest_target", 4)  # the model has no more positions
    assert [each.ended for each in write(model, SOURCES, PAD, tokens)] == [False, False, True]


@pytest.mark.parametrize(("width", "middles"), [(1, [1, 2, 3]), (3, [2, 5, 8]), (4, [2, 6, 10])])
def test_a_class_of_lengths_stands_for_its_middle(folder, monkeypatch, width, middles):
    model = generator(folder, alignment="mask_predict")
    model.length_width = width
    monkeypatch.setattr(refining, "length_scores", lambda model, guide: torch.eye(3))
    assert guessed_lengths(model, None).tolist() == middles
    assert refining.length_class(model, torch.tensor(middles)).tolist() == [0, 1, 2]


def test_the_rate_of_noise_is_drawn_for_each_row(folder, monkeypatch):
    model, hits = generator(folder, noise="released", noise_rate=0.5), []
    monkeypatch.setattr(refining, "replaced", lambda draft, mask, hit, *_: hits.append(hit))
    refining.noisy(model, torch.zeros(400, 200, dtype=torch.long), torch.ones(400, 200, dtype=torch.bool))
    rates = hits[0].float().mean(1)
    assert rates.min() < 0.1 and 0.4 < rates.max() < 0.65 and float(rates.mean()) == pytest.approx(0.25, abs=0.05)
