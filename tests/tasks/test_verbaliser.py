"""A decoder tells labels by the likelihood of their words, without training."""

import json

import pytest
import torch
from tiny_decoders import small_decoder
from tiny_models import small_model

from workflow_scripts.models.likelihood import log_probabilities
from workflow_scripts.models.networks import load_network
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks.classification import CLASSIFICATION, Classification
from workflow_scripts.tasks.head import finetune, predict
from workflow_scripts.tasks.verbaliser import Asked, Verbaliser, asked_in, check_answers, prompt_of, scored, ties, words_of
from workflow_scripts.text.examples import Example
from workflow_scripts.text.files import read_lines
from workflow_scripts.training.job import TrainingJob
from workflow_scripts.training.ragged import same_choice

LABELS = ["Writer", "Calc", "Impress"]
LINES = [
    "Writer\tOpen the text document.\t",
    "Calc\tThe sum of the cells.\t",
    "Impress\tShow the next slide.\t",
    "Calc\tA sheet has rows.\t",
]
VERBALISER = Verbaliser(template="{language}: {text}\nAbout:", words={"Writer": "texts", "Calc": "tables"})


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return small_decoder(tmp_path_factory.mktemp("decoder"), "gemma3_text", chat=True)


def asked(model, out, verbaliser=None, **changes):
    """An arm that asks the model, and its answers to four texts in English and in German."""
    (out / "table.tsv").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    settings = CLASSIFICATION.finetune_settings(
        language="en",
        labels=LABELS,
        epochs=1,
        classification=Classification(max_length=changes.pop("max_length", 40), examples=changes.pop("examples", None)),
        shots=changes.pop("shots", 0),
        verbaliser=verbaliser,
    )
    job = TrainingJob(model, *(out / name for name in ("model", "curve.tsv", "training.json", "checkpoints")), **changes)
    finetune(CLASSIFICATION, job, train=(out / "table.tsv",), dev=(out / "table.tsv",), settings=settings)
    two = {"testsets": ("en", "de"), "languages": ("en", "de"), "labels": json.dumps(LABELS)}
    predict(CLASSIFICATION, out / "model", (out / "table.tsv",) * 2, out / "predictions", **two)
    return read_json(out / "training.json")


def test_an_arm_that_trains_nothing_answers_with_the_likeliest_words(model, tmp_path):
    report = asked(model, tmp_path, VERBALISER)
    assert report["shots"] == 0 and report["updates"] == {"planned": 0, "made": 0} and report["verbaliser"]["normalised"] == "none"
    codec, network = load_codec(model), load_network(model, "text", dropout=0.0, attention_dropout=0.0, seed=0).eval()
    assert all(
        torch.equal(a, b) for a, b in zip(network.state_dict().values(), whole(tmp_path / "model").state_dict().values(), strict=True)
    )
    words = codec.pieces(codec.behind_blank(["texts", "tables", "Impress"]), 100)
    for code, name in (("en", "English"), ("de", "German")):
        texts = [line.split("\t")[1] for line in LINES]
        prompts = [codec.tokenizer(f"{name}: {text}\nAbout:")["input_ids"] for text in texts]
        best = log_probabilities(network, codec, prompts, words).argmax(dim=1).tolist()
        assert list(read_lines(tmp_path / f"predictions/{code}.hyp")) == [LABELS[number] for number in best]
        scores = read_json(tmp_path / f"predictions/{code}.scores.json")
        assert scores["ties"] == 0 and scores["normalised"] == "none" and scores["examples"] == 4
        assert scores["cut_examples"] == 0
    shares = [line.split("\t") for line in read_lines(tmp_path / "predictions/en.probabilities.tsv")]
    assert shares[0] == LABELS and all(sum(map(float, row)) == pytest.approx(1, abs=1e-3) for row in shares[1:])
    assert float(list(read_lines(tmp_path / "curve.tsv"))[1].split("\t")[-1]) == pytest.approx(
        report["handed_on"]["dev_accuracy"], abs=1e-3
    )


def test_a_blank_at_the_end_of_the_template_belongs_to_the_label(model):
    codec, network, example = load_codec(model), whole(model), Example("Calc", "The sum of the cells.", "")
    ways = [Asked(LABELS, Verbaliser(template=f"{{text}}\nLabel:{blank}"), [], 100) for blank in ("", " ")]
    assert torch.equal(*(scored(network, codec, way, [example], "en") for way in ways))
    assert prompt_of(example, "en", ways[1].verbaliser).endswith("Label:")


def whole(folder):
    return load_network(folder, "text", dropout=0.0, attention_dropout=0.0, seed=0)


def test_examples_are_drawn_by_the_seed_and_stand_before_the_text(model, tmp_path):
    found = {}
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        (tmp_path / name).mkdir()
        found[name] = asked(model, tmp_path / name, VERBALISER, shots=2, seed=seed)["lines"]
    assert found["one"] == found["again"] and len(found["one"]) == 2 and found["one"] != found["other"]
    # of a training text that is cut down, from the examples that other arms learn from
    (tmp_path / "few").mkdir()
    few = asked(model, tmp_path / "few", VERBALISER, shots=2, examples=2)["lines"]
    assert sorted(few) == [place + 1 for place in same_choice(len(LINES), 2)]
    how = asked_in(tmp_path / "one/model")
    first = LINES[found["one"][0] - 1].split("\t")
    assert how.shots[0] == (f"English: {first[1]}\nAbout:", VERBALISER.words.get(first[0], first[0]))


@pytest.mark.parametrize("chat", [False, True])
def test_normalisation_is_what_it_says(model, chat):
    codec, network = load_codec(model), whole(model)
    examples = [Example("Calc", "The sum of the cells.", "")]

    def found(normalised):
        return scored(network, codec, Asked(LABELS, Verbaliser(normalised=normalised, chat=chat), [], 100), examples, "en")

    plain = found("none")
    assert torch.allclose(found("bytes"), plain / torch.tensor([6, 4, 7]))
    pieces = [len(ids) for ids in codec.pieces(LABELS if chat else codec.behind_blank(LABELS), 100)]
    assert torch.allclose(found("pieces"), plain / torch.tensor(pieces))
    nothing = scored(network, codec, Asked(LABELS, Verbaliser(chat=chat), [], 100), [Example("Calc", "", "")], "en")
    assert torch.allclose(found("prior"), plain - nothing, atol=1e-4)


def test_long_texts_are_cut_and_their_template_is_not(model):
    codec, network = load_codec(model), whole(model)
    long = [Example("Calc", "The sum of the cells. " * times, "") for times in (40, 80)]
    found = scored(network, codec, Asked(LABELS, Verbaliser(), [], 12), long, "en")
    assert torch.allclose(found[0], found[1])


def test_examples_are_cut_like_texts_and_a_prompt_that_the_model_cannot_read_is_refused(tmp_path):
    gpt2 = small_decoder(tmp_path, "gpt2", max_position_embeddings=48)
    (tmp_path / "cut").mkdir()
    asked(gpt2, tmp_path / "cut", shots=1, max_length=3)
    codec, ((prompt, _),) = load_codec(gpt2), asked_in(tmp_path / "cut/model").shots
    assert len(codec.pieces([prompt.removesuffix("\nLabel:")])[0]) <= 3
    with pytest.raises(InputError, match=r"with 4 examples and the words of a label has .* and the model reads 48 at most; show fewer"):
        asked(gpt2, tmp_path, shots=4)


def test_ties_are_counted():
    assert ties(torch.tensor([[-1.0, -1.0, -2.0], [-1.0, -3.0, -3.0]])) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"Draw": "x"}, "there is no label 'Draw'"),
        ({"Calc": "Writer"}, "'Writer' are the words of 'Writer' and of 'Calc'"),
        ({"Calc": " "}, "label 'Calc' has no words"),
    ],
)
def test_words_that_cannot_tell_labels_apart_are_refused(words, said):
    with pytest.raises(InputError, match=said):
        words_of(LABELS, Verbaliser(words=words))


def test_a_label_that_begins_another_is_refused_where_it_is_always_likelier():
    for normalised in ("bytes", "pieces", "prior"):
        check_answers(["no", "nothing"], [[1], [1, 2]], normalised)
    check_answers(["no", "nothing"], [[1, 3], [1, 2]], "none")
    with pytest.raises(InputError, match="the pieces of the label 'no' begin those of 'nothing', which could never be likelier"):
        check_answers(["no", "nothing"], [[1], [1, 2]], "none")


@pytest.mark.parametrize(("template", "said"), [("Label:", "has no {text}"), ("{source}", "there is no {source}"), ("{", "cannot be read")])
def test_a_template_without_the_text_is_refused(template, said):
    with pytest.raises(InputError, match=said):
        Verbaliser(template=template)


def test_signs_of_a_chat_in_a_template_are_refused(model):
    asked_in_turns = Asked(LABELS, Verbaliser(template="<|turn|>user\n{text}<|end|>"), [], 100)
    with pytest.raises(InputError, match=r"verbaliser.template: .* has signs of a chat, .* set verbaliser.chat: true"):
        scored(whole(model), load_codec(model), asked_in_turns, [Example("Calc", "The sum.", "")], "en")


def test_a_model_that_is_no_decoder_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"is a model of the family mBART; only decoders find labels by their likelihood"):
        asked(small_model(tmp_path), tmp_path)


def test_the_folder_says_how_the_model_is_asked(model, tmp_path):
    asked(model, tmp_path, VERBALISER)
    said = json.loads((tmp_path / "model/verbaliser.json").read_text(encoding="utf-8"))
    assert said["labels"] == LABELS and said["told"]["words"] == VERBALISER.words and said["max_length"] == 40
    assert asked_in(model) is None
