"""Parallel text to pretrain on: sampling, directions, what is left out, and the objective that learns from it."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from safetensors.torch import load_file
from test_backbone import run, small
from test_checkpoints import same
from test_pretraining import SHORT
from tiny_decoders import small_decoder
from tiny_models import manual_pairs, small_model

from workflow_scripts import registry
from workflow_scripts.models.templates import Templates
from workflow_scripts.models.tokenisation import Codec, load_codec
from workflow_scripts.stage import InputError
from workflow_scripts.text.corpus import leak_key, leak_keys
from workflow_scripts.training.backbone import Backbone
from workflow_scripts.training.bitext import Bitext, Pairs, SampledPairs, directions, drawn_pairs, read_bitext, read_pairs, shares, unpaired
from workflow_scripts.training.pretraining import Text, held_out_keys, read_text
from workflow_scripts.training.pretraining_settings import Pretraining, Texts
from workflow_scripts.training.ragged import Lines, lengths_of
from workflow_scripts.training.too_long import Room, read_side


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Training and dev text of two corpora; English stands in both."""
    folder = tmp_path_factory.mktemp("corpora")
    german, english = manual_pairs(260)
    for name, (code, other), part in (
        ("a.de-en/train", ("de", "en"), slice(200)),
        ("a.de-en/dev", ("de", "en"), slice(200, 220)),
        ("b.en-fr/train", ("en", "fr"), slice(150, 250)),
        ("b.en-fr/dev", ("en", "fr"), slice(250, 260)),
    ):
        for language, lines in ((code, german if code == "de" else english), (other, english if other == "en" else german)):
            path = folder / f"{name}.{language}"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines[part]), encoding="utf-8")
    return folder


def files(folder, part):
    return tuple(
        folder / f"{name}/{part}.{code}" for name, codes in (("a.de-en", ("de", "en")), ("b.en-fr", ("en", "fr"))) for code in codes
    )


def block(**changes) -> Pretraining:
    return Pretraining(bitext=["a", "b"], dev_lines=10, training=SHORT, **changes)


def test_the_temperature_flattens_the_corpora():
    assert shares([900, 100], 1).tolist() == pytest.approx([0.9, 0.1])
    assert shares([900, 100], 2).tolist() == pytest.approx([0.75, 0.25])  # roots: 30 and 10
    assert shares([900, 100], 1e9).tolist() == pytest.approx([0.5, 0.5])


def test_no_pair_comes_again_before_all_have_come():
    epochs = [drawn_pairs([90, 10], 2, seed=1, number=number) for number in range(4)]
    assert [[len(pairs) for pairs in epoch] for epoch in epochs] == [[75, 25]] * 4
    for place, size in enumerate((90, 10)):
        counts = Counter(np.concatenate([epoch[place] for epoch in epochs]).tolist())
        assert len(counts) == size and max(counts.values()) - min(counts.values()) <= 1
    assert sorted(drawn_pairs([90, 10], 1, 1, 3)[0].tolist()) == list(range(90))
    assert epochs[1][1].tolist() != drawn_pairs([90, 10], 2, seed=2, number=1)[1].tolist()


@pytest.mark.parametrize("leave_out", [True, False])
@pytest.mark.parametrize("chat", [True, False])
def test_a_decoders_pairs_are_cut_into_pieces_once(corpora, tmp_path, monkeypatch, chat, leave_out):
    """Unless its answers are cut otherwise than what is read, as in a chat, where none begins with a blank."""
    codec, room = load_codec(small_decoder(tmp_path, "qwen3", chat=True)), Room(24, leave_out)
    codec.templates = Templates(chat=chat)
    paths = {code: corpora / f"a.de-en/train.{code}" for code in ("de", "en")}
    lines = {code: path.read_text(encoding="utf-8").splitlines() for code, path in paths.items()}
    sides = [{code: read_side(codec, some, code, room, labels=labels) for code, some in lines.items()} for labels in (False, True)]
    stays = ~np.logical_or.reduce([side.too_long for some in sides for side in some.values()]) if leave_out else np.ones(200, dtype=bool)
    cut, whole = [], Codec.pieces
    monkeypatch.setattr(Codec, "pieces", lambda self, some, *more: cut.extend(some) or whole(self, some, *more))
    pairs = read_pairs(paths, codec, room)
    assert len(cut) == (1 + chat) * 400 and stays.sum() > 0 and stays.all() == (not leave_out)
    for found, wanted in zip((pairs.read, pairs.labels), sides, strict=True):
        assert {code: [*map(list, ids)] for code, ids in found.items()} == {
            code: [*map(list, side.ids.where(stays))] for code, side in wanted.items()
        }


def test_lengths_are_known_before_the_rows():
    rng = np.random.default_rng(5)

    def side(lines: int) -> Lines:
        return Lines.of([range(length) for length in rng.integers(1, 9, lines).tolist()])

    sides = [Pairs(one, one, {}) for one in ({"de": side(90), "en": side(90)}, {"en": side(10), "fr": side(10)})]
    sampled = SampledPairs(sides, [[("de", "en"), ("en", "de")], [("fr", "en")]], temperature=2, seed=1)
    for number in range(3):
        assert sampled.lengths(number).tolist() == lengths_of(sampled.epoch(number)).tolist()
    assert sampled.rows == len(sampled.epoch(0)) == 175


def test_directions_go_through_the_pivot():
    pairs = [("de", "en"), ("en", "fr")]
    assert directions(pairs, "many-to-one") == [[("de", "en")], [("fr", "en")]]
    assert directions(pairs, "one-to-many") == [[("en", "de")], [("en", "fr")]]
    assert directions(pairs, "many-to-many") == [[("de", "en"), ("en", "de")], [("en", "fr"), ("fr", "en")]]
    assert directions(pairs[:1], "many-to-one", "de") == [[("en", "de")]]
    with pytest.raises(InputError, match="all pairs share de and en; say which"):
        directions(pairs[:1], "many-to-one")
    with pytest.raises(InputError, match="the pairs share none; take many-to-many"):
        directions([*pairs, ("de", "fr")], "one-to-many")
    with pytest.raises(InputError, match="the pair en-fr is without the pivot 'de'"):
        directions(pairs, "one-to-many", "de")


def test_no_held_out_sentence_is_in_it(corpora, tmp_path):
    (tmp_path / "test.en").write_text((corpora / "a.de-en/train.en").read_text().splitlines()[3].upper() + "\n")
    held_out = (tmp_path / "test.en", corpora / "a.de-en/dev.en")
    languages = ("de", "en", "fr")
    train, dev, _ = read_text(block(), Texts(languages, (), held_out, files(corpora, "train"), files(corpora, "dev")))
    keys = {leak_key(line) for path in (*held_out, *files(corpora, "dev")) for line in path.read_text().splitlines()}
    # the French corpus has sentences of the German one's dev set
    assert [one.name for one in train.bitext] == ["a.de-en", "b.en-fr"] and train.bitext[1].pairs <= 80
    assert not keys & {leak_key(line) for one in train.bitext for side in one.sides.values() for line in side}
    # an experiment's own dev set may be measured on
    assert [one.pairs for one in dev.bitext] == [10, 10]
    with pytest.raises(InputError, match=r"train\.de: no pairs are left"):
        read_bitext(files(corpora, "train"), {leak_key(line) for line in (corpora / "a.de-en/train.en").read_text().splitlines()})


def test_a_break_in_a_sentence_leaves_pairs_together(tmp_path):
    """`</s>` stands between the sentences of documents; in the text of pairs, such as a manual of HTML, it is text."""
    german = ["<s>alt</s> ist alt", "Ein Haus", "Ein Baum", "</s> beendet es"]
    english = ["<s>old</s> is old", "A </s> house", "A tree", "It ends with </s>"]
    for part, lines in (("train", slice(3)), ("dev", slice(3, 4))):
        for code, side in (("de", german), ("en", english)):
            (tmp_path / f"{part}.{code}").write_text("".join(f"{line}\n" for line in side[lines]))
    sides = {part: tuple(tmp_path / f"{part}.{code}" for code in ("de", "en")) for part in ("train", "dev")}
    train, dev, _ = read_text(block(), Texts(("de", "en"), (), (tmp_path / "dev.de",), sides["train"], sides["dev"]))
    assert train.bitext[0].sides == {"de": german[:3], "en": english[:3]} and dev.bitext[0].sides["en"] == english[3:]
    codec = load_codec(small_model(tmp_path, "cc25"))
    rounds, held_back = registry.entry("objective", "translation").prepare(block(), train, dev, 1, tmp_path / "text").read(codec)
    assert rounds.rows == 6 and [len(one.rows) for one in held_back] == [1, 1]
    with pytest.raises(InputError, match="no pairs are left"):  # what is held out is found as it is read
        read_text(block(), Texts(("de", "en"), (), (tmp_path / "train.de",), sides["train"], sides["dev"]))


def test_a_held_out_sentence_is_found_among_others(tmp_path):
    german = ["Das Meer ist heute ruhig und weit. Wir gehen an den Strand.", "Ja. Wir gehen morgen in die Stadt."]
    english = ["The sea is calm and wide today. We go to the beach.", "Yes. We go to town tomorrow."]
    for code, lines in (("de", german), ("en", english)):
        (tmp_path / f"mono.{code}").write_text("".join(f"{line}\n" for line in ["Alpha", "Beta", "Gamma", *lines]))
        (tmp_path / f"train.{code}").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "dev.de").write_text("Eins\n")
    (tmp_path / "dev.en").write_text("One\n")
    # a short sentence comes in any text
    (tmp_path / "test.de").write_text("das meer ist heute ruhig, und weit\nJa.\n")
    sides, dev = ((tmp_path / f"{part}.de", tmp_path / f"{part}.en") for part in ("train", "dev"))
    own = replace(block(), text={"de": str(tmp_path / "mono.de")}, dev_lines=1)
    train, _, left_out = read_text(own, Texts(("de", "en"), (), (tmp_path / "test.de",), sides, dev))
    assert train.bitext[0].sides == {"de": german[1:], "en": english[1:]}
    assert left_out["held_out"] == {"de": 1, train.bitext[0].name: 1}
    (tmp_path / "passages.source.de").write_text("Ein Absatz über die Stadt. Sie wurde von [[ Otto ]] vor langer Zeit gegründet.\n")
    (tmp_path / "passages.source.zh").write_text("北京在 [[ 1858 ]] 年签署了这个条约。\n")
    (tmp_path / "pairs.source").write_text("Das Meer ist ruhig. Der Strand ist heute voll.\n")  # of a retrieval
    assert "der strand ist heute voll" in held_out_keys([tmp_path / "pairs.source"])
    keys = held_out_keys([tmp_path / "passages.source.de", tmp_path / "passages.source.zh"])
    assert not keys.isdisjoint(leak_keys("Es war so. Sie wurde von Otto vor langer Zeit gegründet.", "de"))
    assert not keys.isdisjoint(leak_keys("北京在1858年签署了这个条约。", "zh"))
    assert leak_keys("天气很好。我们今天一起去海边。", "zh") == {"天气很好 我们今天一起去海边", "我们今天一起去海边"}


def test_dev_lines_of_a_language_come_from_all_its_corpora():
    several = [Bitext(name, {"en": [f"{name} {at}" for at in range(10)]}) for name in "abc"]
    assert [line[0] for line in unpaired(several, 6)["en"]] == [*"aabbcc"] and len(unpaired(several)["en"]) == 30


def test_lines_that_are_kept_back_come_in_by_no_other_way(corpora, tmp_path):
    """The text of a language may be a side of the bitext. Breaks between documents are those of the part's own lines."""
    lines = (corpora / "a.de-en/train.de").read_text().splitlines()
    (tmp_path / "mono.de").write_text("\n".join(line + "\n" * (number % 4 == 3) for number, line in enumerate(lines)) + "\n")
    alone = replace(block(), text={"de": str(tmp_path / "mono.de")}, dev_lines=10)
    train, dev, _ = read_text(alone, Texts(("de", "en", "fr"), (), (), files(corpora, "train"), files(corpora, "dev")))
    own = {leak_key(line) for line in dev.lines["de"]}
    learnt = [*train.lines["de"], *(line for one in train.bitext for line in one.sides.get("de", []))]
    assert len(own) >= 9 and not own & {leak_key(line) for line in learnt}
    assert 0 in dev.breaks["de"] and max(dev.breaks["de"]) < 10 < max(train.breaks["de"])


def test_a_line_that_comes_again_is_learnt_from_or_measured_on(tmp_path):
    """Texts of the web have the same headings on each page."""
    pages = ["Home | About", "This is text number {} of the site.", "Read more", ""]
    names = [f"{a}{b}" for a in "abcdefgh" for b in "abcdefgh"]
    (tmp_path / "web.en").write_text("".join(f"{line}\n".format(name) for name in names for line in pages))
    train, dev, left_out = read_text(Pretraining(text={"en": str(tmp_path / "web.en")}, dev_lines=30), Texts(("en",)))
    assert len(dev.lines["en"]) == 30 and dev.lines["en"][:3] == ["Home | About", "This is text number aa of the site.", "Read more"]
    assert train.lines["en"] == [pages[1].format(name) for name in names[10:]]
    assert left_out == {"equal_to_dev": {"en": 108}, "held_out": {"en": 0}}
    # each line that is left begins a document, as the heading before it did
    assert train.breaks["en"] == [*range(54)]
    (tmp_path / "web.en").write_text("Home\n" * 200)
    with pytest.raises(InputError, match=r"web\.en: all 170 lines of en for training are equal to dev lines; give more text"):
        read_text(Pretraining(text={"en": str(tmp_path / "web.en")}, dev_lines=30), Texts(("en",)))


@pytest.mark.parametrize("family", ["cc25", "mbart50", "m2m100"])
def test_a_row_has_the_tags_of_both_languages(corpora, tmp_path, family):
    codec = load_codec(small_model(tmp_path, family))
    bitext = [Bitext("a.de-en", {"de": ["Datei"], "en": ["File"]})]
    made = registry.entry("objective", "translation").prepare(block(), Text({}, bitext), Text({}, bitext), 1, tmp_path / "text")
    rounds, dev = made.read(codec)
    german, english = (codec.encode([line], code)[0] for line, code in (("Datei", "de"), ("File", "en")))
    wanted = [(german, english), (english, german)]
    assert [tuple(map(list, row)) for row in rounds.epoch(0)] == wanted and rounds.rows == 2
    assert [(one.language, [tuple(map(list, row)) for row in one.rows]) for one in dev] == [("en", wanted[:1]), ("de", wanted[1:])]


def test_settings_that_decide_the_rows_tell_checkpoints_apart(tmp_path):
    bitext = [Bitext("a.de-en", {"de": ["Datei"], "en": ["File"]})]
    plans = []
    for number, changes in enumerate(({}, {"temperature": 2.0}, {"direction": "many-to-one", "pivot": "de"})):
        made = registry.entry("objective", "translation").prepare(
            block(**changes), Text({}, bitext), Text({}, bitext), 1, tmp_path / str(number)
        )
        plans.append(made.text["plan.json"].read_text())
    assert len({*plans}) == 3


def test_translation_and_its_control_go_on_from_one_model(corpora, tmp_path):
    text = {"languages": ("de", "en", "fr"), "bitext": files(corpora, "train"), "bitext_dev": files(corpora, "dev")}
    first = run(tmp_path, Backbone(small=small(tmp_path, text={}, bitext=["a", "b"], dev_lines=5, training=SHORT), kind="small"), **text)
    assert first["objective"] == "denoising" and first["pairs"]["a.de-en"] > 100 and {*first["sentences"]} == {"de", "en", "fr"}
    assert str(corpora / "b.en-fr/train.fr") in first["checksums"]
    start = (tmp_path / "out").rename(tmp_path / "first") / "model"
    reports, weights = {}, {}
    for name, settings in {
        "m2m": {"objective": "translation", "continued": block(temperature=2.0)},
        "m2o": {"objective": "translation", "continued": block(direction="many-to-one")},
        "control": {"objective": "denoising", "continued": block()},
    }.items():
        reports[name] = run(tmp_path, Backbone(kind="continued", from_="first", **settings), start=start, **text)
        weights[name] = load_file((tmp_path / "out").rename(tmp_path / name) / "model/model.safetensors")
    assert all(math.isfinite(reports[name]["translation_loss"]) for name in ("m2m", "m2o"))
    assert reports["m2m"]["sentences"] == {} and reports["m2m"]["pairs"] == reports["control"]["pairs"] == first["pairs"]
    before = load_file(start / "model.safetensors")
    assert not any(same(one, other) for one in weights.values() for other in [before, *(w for w in weights.values() if w is not one)])


def test_translation_needs_pairs(corpora, tmp_path):
    run(
        tmp_path,
        Backbone(small=small(corpora, text={}, bitext=["a", "b"], dev_lines=5, training=SHORT), kind="small"),
        **{"languages": ("de", "en", "fr"), "bitext": files(corpora, "train"), "bitext_dev": files(corpora, "dev")},
    )
    start = (tmp_path / "out").rename(tmp_path / "first") / "model"
    with pytest.raises(InputError, match=r"objective translation needs parallel text; name corpora in `continued.bitext`"):
        run(tmp_path, Backbone(kind="continued", objective="translation", continued=Pretraining()), start=start, languages=())


def test_without_its_pairing_each_line_comes_once():
    bitext = [Bitext("a", {"de": ["eins", "zwei"], "en": ["one", "two"]}), Bitext("b", {"en": ["two", "three"], "fr": ["deux", "trois"]})]
    assert unpaired(bitext) == {"de": ["eins", "zwei"], "en": ["one", "two", "three"], "fr": ["deux", "trois"]}
    assert unpaired(bitext, 1) == {"de": ["eins"], "en": ["one"], "fr": ["deux"]}
