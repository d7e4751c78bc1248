"""How a model is asked: templates as ids, prefixes, and where an answer ends."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tiny_decoders import small_decoder
from tiny_models import manual_pairs, small_model, small_t5

from workflow_scripts.models.templates import (
    Frame,
    Templates,
    first_line,
    line_breaks,
    plain,
    prompt_of,
    read_templates,
    word_blank,
    write_templates,
)
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError


@pytest.fixture(scope="module", params=["gemma3_text", "qwen2"])
def loaded(request, tmp_path_factory):
    """A tokenizer of words behind blanks and with <bos>, and one of bytes without."""
    return load_codec(small_decoder(tmp_path_factory.mktemp(request.param), request.param, chat=True))


@pytest.fixture
def codec(loaded):
    """One of them, with the usual templates."""
    return replace(loaded)


def test_a_prompt_is_the_template_with_the_source_in_it(codec):
    german, english = manual_pairs(20)
    frame = codec.frame(("de", "en"))
    for source, target in zip(german, english, strict=True):
        pieces = codec.pieces(codec.behind_blank([source]), 1000)[0]
        answer = codec.fitted(codec.pieces(codec.behind_blank([target]), 1000), "en", 1000, labels=True)[0]
        read, labels = frame.row(pieces, answer)
        assert codec.tokenizer.decode(read) == codec.tokenizer.decode(frame.begin) + f"German: {source}\nEnglish: {target}"
        assert len(read) == len(labels)
        # each place that has a label is followed by it, and the last one by the end
        assert [piece for piece, label in zip(read[1:], labels, strict=False) if label != -100] == answer[:-1]
        assert labels[-1] == codec.tokenizer.eos_token_id and [one for one in labels if one != -100] == answer
        assert prompt_of((read, labels)) == frame.prompt(pieces) == codec.asked([pieces], ("de", "en"))[0]


def test_what_is_cut_has_no_end(codec):
    whole = codec.pieces(codec.behind_blank(manual_pairs(1)[1]), 1000)
    (row,) = codec.fitted(whole, "en", 6, labels=True)
    assert row == whole[0][:4]


def test_without_a_source_a_text_is_plain_text(codec):
    answer = [7, 8, 1]
    read, labels = codec.frame(("de", "de"), "restore").row([], answer)
    if codec.tokenizer.bos_token is None:
        assert (read, labels) == ([7, 8], [8, 1])
    else:
        assert (read, labels) == ([codec.tokenizer.bos_token_id, 7, 8], answer)


def test_masks_are_text(codec):
    (ids,) = codec.pieces(["a <mask> b"], 100, masks=True)
    assert codec.tokenizer.decode(ids) == "a ___ b"
    codec.templates = Templates(mask="…")
    assert codec.tokenizer.decode(codec.pieces(["a <mask> b"], 100, masks=True)[0]) == "a … b"


def test_examples_stand_before_the_source(codec):
    codec.templates = Templates(examples=[("Ja.", "Yes."), ("Nein.", "No.")])
    text = codec.tokenizer.decode(codec.asked(codec.pieces(codec.behind_blank(["Gut."]), 100), ("de", "en"))[0], skip_special_tokens=True)
    assert text == "German: Ja.\nEnglish: Yes.\n\nGerman: Nein.\nEnglish: No.\n\nGerman: Gut.\nEnglish:"
    # in the languages that they are in, whatever those of the source
    codec.templates = replace(codec.templates, examples_in=["en", "en"])
    text = codec.tokenizer.decode(codec.frame(("de", "de")).prompt([]), skip_special_tokens=True)
    assert text == "English: Ja.\nEnglish: Yes.\n\nEnglish: Nein.\nEnglish: No.\n\nGerman:\nGerman:"
    with pytest.raises(InputError, match=r"examples_in: \['en'\] are not two languages"):
        Templates(examples_in=["en"])
    # sentences that are restored have none
    restored = codec.tokenizer.decode(codec.frame(("de", "de"), "restore").prompt([]), skip_special_tokens=True)
    assert restored == "Mixed German:\nGerman:"


@pytest.mark.parametrize("template", ["Translate:\n{source}\nAnswer:", "{source} =", "Text: {source}\nAnswer:"])
def test_the_source_stands_behind_a_blank_only_where_the_template_has_one(codec, template):
    codec.templates = Templates(task=template, examples=[("Ja.", "Yes.")])
    text = codec.tokenizer.decode(codec.asked(codec.pieces(codec.behind_blank(["Gut."]), 100), ("de", "en"))[0], skip_special_tokens=True)
    assert text == f"{template.format(source='Ja.')} Yes.\n\n{template.format(source='Gut.')}"
    assert codec.behind_blank(["Gut."], kind="restore") == [f"{word_blank(codec.tokenizer)}Gut."]


def test_a_chat_has_the_models_own_turns_and_their_end(codec):
    codec.templates = Templates(chat=True, examples=[("Ja.", "Yes.")])
    frame = codec.frame(("de", "en"))
    asked = codec.tokenizer.decode(frame.prompt(codec.pieces(codec.behind_blank(["Gut."]), 100)[0]))
    turns = ["user\nGerman: Ja.\nEnglish:", "assistant\nYes.", "user\nGerman: Gut.\nEnglish:"]
    begin = codec.tokenizer.bos_token or ""
    assert asked == begin + "".join(f"<|turn|>{turn}<|end|>\n" for turn in turns) + "<|turn|>assistant\n"
    assert frame.end == codec.tokenizer.convert_tokens_to_ids("<|end|>")
    assert codec.behind_blank(["Good."], answers=True) == ["Good."]
    assert codec.fitted([[7]], "en", 10, labels=True) == [[7, frame.end]]
    codec.tokenizer.chat_template, kept = None, codec.tokenizer.chat_template
    with pytest.raises(InputError, match=r"templates\.chat: the model has no chat template"):
        codec.frame(("de", "en"))
    codec.tokenizer.chat_template = kept


def test_plain_text_is_the_same_whether_the_task_is_asked_in_a_chat(codec):
    rows = []
    for chat in (False, True):
        codec.templates = Templates(chat=chat)
        labels = codec.fitted([[7, 8]], "en", 10, labels=True)[0]
        rows.append(codec.joins(("en", "en"), "restore")([], labels))
    assert rows[0] == rows[1] and rows[1][1][-1] == codec.tokenizer.eos_token_id


def in_chat(codec, template):
    """The tokenizer, that is asked in this chat template."""
    tokenizer = copy.deepcopy(codec.tokenizer)
    tokenizer.chat_template = template
    return replace(codec, tokenizer=tokenizer, templates=Templates(chat=True))


ANSWER = "{% for turn in messages %}{{ turn.role }}: {{ turn.content }}"


@pytest.mark.parametrize(
    ("behind", "end"), [(" {{ eos_token }}", "eos"), (" <|end|>\n", "<|end|>"), ("\n", "\n"), (" \n", "\n"), (" ###", "eos"), ("", "eos")]
)
def test_an_answer_ends_with_what_only_ends_it(codec, behind, end):
    asked = in_chat(codec, ANSWER + behind + "{% endfor %}")
    found = asked.frame(("de", "en")).end
    assert found == codec.tokenizer.eos_token_id if end == "eos" else codec.tokenizer.decode([found]).strip(" ") == end


TURNS = "{% for turn in messages %}<|turn|>{{ turn.role }}\n"
CONTENT = "{{ turn.content }}<|end|>\n{% endfor %}"


@pytest.mark.parametrize(
    ("template", "after"),
    [
        # a thought is opened for each answer, and stands empty before one that was written
        (
            TURNS
            + "{% if turn.role == 'assistant' and loop.last %}<think>\n\n</think>\n\n{% endif %}"
            + CONTENT
            + "{% if add_generation_prompt %}<|turn|>assistant\n<think>\n{% endif %}",
            "<think>\n\n</think>\n\n",
        ),
        # the answer has a channel of its own
        (
            TURNS
            + "{% if turn.role == 'assistant' %}final: {% endif %}"
            + CONTENT
            + "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}",
            "final: ",
        ),
        (TURNS + CONTENT + "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}", ""),
    ],
)
def test_a_model_that_thinks_is_asked_behind_its_thought(codec, template, after):
    frame = in_chat(codec, template).frame(("de", "en"))
    assert codec.tokenizer.decode(frame.after).endswith(f"<|turn|>assistant\n{after}")


def test_a_model_that_always_thinks_is_refused(codec):
    template = TURNS + CONTENT + "{% if add_generation_prompt %}<|turn|>assistant\n<think>\n{% endif %}"
    template = template.replace(CONTENT, "{% if turn.role == 'assistant' %}<think>\n{% endif %}" + CONTENT)
    with pytest.raises(InputError, match=r"templates.chat: the model thinks before it answers"):
        in_chat(codec, template).frame(("de", "en"))


def test_a_prompt_is_the_same_on_each_day(codec):
    by_clock = "{% if date_string is not defined %}{% set date_string = strftime_now('%d %b %Y') %}{% endif %}{{ date_string }}\n"
    asked = in_chat(codec, by_clock + "{{ strftime_now('%d %B %Y') }}\n" + ANSWER + "{% endfor %}")
    assert codec.tokenizer.decode(asked.frame(("de", "en")).prompt([])).startswith("26 Jul 2024\n26 July 2024\n")


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("sign", ["\N{REPLACEMENT CHARACTER}", "\N{OBJECT REPLACEMENT CHARACTER}"])
def test_any_sign_may_stand_in_an_example_or_template(codec, chat, sign):
    whole = "German: Ein {0} Haus.\nEnglish: A {0} house.\n\nGerman: Gut.\nEnglish:".format
    codec.templates = Templates(chat=chat, examples=[("Ein x Haus.", "A x house.")])
    usual = codec.frame(("de", "en"))
    codec.templates = Templates(chat=chat, examples=[(f"Ein {sign} Haus.", f"A {sign} house.")])
    frame = codec.frame(("de", "en"))
    assert frame.end == usual.end and frame.after == usual.after
    asked = codec.tokenizer.decode(frame.prompt(codec.pieces(codec.behind_blank(["Gut."]), 100)[0]))
    if not chat:
        assert asked.removeprefix(codec.tokenizer.bos_token or "") == whole(sign)
    codec.templates = Templates(chat=chat, task=f"{sign} {{source}} {sign}")
    assert codec.tokenizer.decode(codec.asked([[7]], ("de", "en"))[0]).count(sign) == 2


def test_a_document_is_running_text_to_a_decoder(codec):
    """The piece for the end of all text stands in no document, wherever that is read, written or shown."""
    codec.documents = True
    document, summary = "Der erste Satz. </s> Der zweite Satz.", "Kurz. </s> Und gut."
    codec.templates = Templates(task="Text: {source}\nSummary:", examples=[(document, summary)])
    said = "Text: Der erste Satz. Der zweite Satz.\nSummary:"
    (row,) = codec.asked(codec.pieces(codec.behind_blank([document]), 999), ("de", "de"))
    assert codec.tokenizer.decode(row).removeprefix(codec.tokenizer.bos_token or "") == f"{said} Kurz. Und gut.\n\n{said}"
    (answer,) = codec.fitted(codec.pieces(codec.behind_blank([summary], answers=True), 999), "de", 999, labels=True)
    assert answer.count(codec.tokenizer.eos_token_id) == 1 and answer[-1] == codec.tokenizer.eos_token_id
    assert codec.tokenizer.decode(answer[:-1]) == " Kurz. Und gut."


def test_the_names_of_special_pieces_are_text_in_an_example(codec):
    end = codec.tokenizer.eos_token
    codec.templates = Templates(examples=[(f"Ein {end} Haus.", f"A {end} house.")])
    assert codec.tokenizer.eos_token_id not in codec.frame(("de", "en")).before


def test_the_mark_of_a_line_break_in_bytes_is_a_letter_elsewhere(codec):
    codec.tokenizer = copy.deepcopy(codec.tokenizer)
    codec.tokenizer.add_tokens(["Ċentru"])
    is_break = codec.tokenizer.convert_tokens_to_ids("Ċentru") in line_breaks(codec.tokenizer)
    assert is_break == (codec.tokenizer.bos_token is None)  # the one of bytes


def test_an_answer_ends_with_its_line(codec):
    ends = codec.ends(SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=[5])))
    line_break = codec.tokenizer("\n", add_special_tokens=False)["input_ids"][0]
    assert {codec.tokenizer.eos_token_id, line_break, 5} <= {*ends}
    assert first_line(" Save it.\nGerman: no") == "Save it." and first_line("\n") == ""


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("German:", r"templates\.task: 'German:' has \{source\} 0 times"),
        ("{source} {source}", "has {source} 2 times".replace("{", r"\{").replace("}", r"\}")),
        ("{source} {target}", r"there is no \{target\}; a template has \{source\}"),
        ("{source} {", r"cannot be read .*; write \{\{ and \}\} for braces of its own"),
    ],
)
def test_a_template_that_cannot_be_filled_is_refused(template, said):
    with pytest.raises(InputError, match=said):
        Templates(task=template)


def test_templates_come_back_from_a_models_folder(tmp_path):
    templates = Templates(task="{source} =>", mask="_", examples=[("a", "b")])
    write_templates(templates, tmp_path)
    assert read_templates(tmp_path) == templates and read_templates(tmp_path / "none") == Templates()
    assert Frame([1], [1, 2], [4], 9, 9).prompt([3]) == [1, 2, 3, 4]


# ---------------------------------------------------------------------------------------------
# T5's kin


@pytest.fixture(scope="module", params=["mt5", "byt5"])
def prefixed(request, tmp_path_factory):
    return load_codec(small_t5(tmp_path_factory.mktemp(request.param), request.param))


SAID = Templates(prefix="translate {source_language} to {target_language}: ", restore_prefix="restore {target_language}: ")


def test_a_prefix_stands_before_the_source_in_training_and_in_use(prefixed):
    (german,), (english,) = manual_pairs(1)
    whole = replace(prefixed, templates=SAID)
    source, labels = whole.encode([german], "de")[0], whole.encode([english], "en")[0]
    read, written = whole.joins(("de", "en"))(source, labels)
    assert read == prefixed.encode([f"translate German to English: {german}"], "de")[0] and written == labels
    assert whole.asked(whole.pieces([german], 1000), ("de", "en")) == [read]
    restored, _ = whole.joins(("en", "en"), "restore")(source, labels)
    assert restored == prefixed.encode([f"restore English: {german}"], "de")[0]
    # without a prefix nothing is joined, and other models read none
    assert prefixed.joins(("de", "en")) is None and prefixed.asked([[7]], ("de", "en")) == prefixed.framed([[7]], "de")


def test_models_with_tags_read_no_prefix(tmp_path):
    codec = replace(load_codec(small_model(tmp_path)), templates=SAID)
    assert codec.joins(("de", "en")) is None and codec.own_templates is None
    assert codec.asked([[7]], ("de", "en")) == codec.framed([[7]], "de")


def test_a_folder_keeps_the_prefix_and_nothing_where_there_is_none(prefixed, tmp_path):
    assert prefixed.own_templates is None and "prefix" not in plain(Templates())
    write_templates(replace(prefixed, templates=SAID).own_templates, tmp_path)
    assert read_templates(tmp_path) == SAID


@pytest.mark.parametrize(
    ("prefix", "said"),
    [("{source}: ", "which stands behind a prefix in any case"), ("{target}: ", r"there is no \{target\}"), ("{", "cannot be read")],
)
def test_a_prefix_that_cannot_be_is_refused(prefix, said):
    with pytest.raises(InputError, match=said):
        Templates(prefix=prefix)
