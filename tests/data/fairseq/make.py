"""Make the checkpoints of this folder anew, by fairseq itself, and write what fairseq computes with them.

fairseq is no part of this project, and wants an environment of its own. Its last release, 0.12.2, does not run on Python 3.11;
`ve-fairseq` is the code after it, built for newer Pythons. With 0.12.2 on Python 3.10 the model `xlmr` was made and compared as well; that
needs `--validpref` beside `--trainpref`, and its layers have copies of their weights.

    python3.11 -m venv ENV && ENV/bin/pip install ve-fairseq==0.12.3 torch==2.13.0 sentencepiece 'numpy<2'
    ENV/bin/python tests/data/fairseq/make.py

Each model is trained for some updates on the sentences below: the numbers are as good as random, but none of them is still what a network
begins with. `expected.npz` has ids, as SentencePiece and fairseq's dictionary make them of `text.txt`, and fairseq's scores.
"""

import os
import random
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

import numpy
import sentencepiece
import torch
from fairseq.checkpoint_utils import load_model_ensemble_and_task

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # fairseq is older than this default of torch; the files are its own
HERE = Path(__file__).parent
LANGUAGES = ("de_DE", "en_XX")
SUBJECTS = (("Das Haus", "The house"), ("Der Hund", "The dog"), ("Ein Vogel", "A bird"), ("Unser Garten", "Our garden"))
VERBS = (("sieht", "sees"), ("findet", "finds"), ("kennt", "knows"), ("braucht", "needs"))
OBJECTS = (("den Baum", "the tree"), ("das Wasser", "the water"), ("einen Freund", "a friend"), ("die Sonne", "the sun"))
SHAPE = "--encoder-embed-dim 16 --encoder-ffn-embed-dim 32 --encoder-attention-heads 2 --encoder-layers 2"
DECODER = "--decoder-embed-dim 16 --decoder-ffn-embed-dim 32 --decoder-attention-heads 2 --decoder-layers 3"
TRAINING = (
    "--optimizer adam --lr 0.01 --batch-size 8 --max-update 30 --cpu --seed 1 --num-workers 0 --no-save-optimizer-state "
    "--no-epoch-checkpoints --disable-validation --log-format none"
)
NOISE = (
    "--criterion cross_entropy --mask 0.3 --mask-length span-poisson --replace-length 1 --rotate 0 --tokens-per-sample 40 "
    "--sample-break-mode eos --max-source-positions 40 --max-target-positions 40"
)
MODELS = {
    "xlmr": f"--task masked_lm --criterion masked_lm --arch roberta_base --max-positions 40 --tokens-per-sample 40 "
    f"--sample-break-mode eos {SHAPE}",
    "mbart": f"--task multilingual_denoising --add-lang-token --langs {','.join(LANGUAGES)} {NOISE} --arch mbart_base "
    f"--encoder-normalize-before --decoder-normalize-before --layernorm-embedding {SHAPE} {DECODER}",
    "bart": f"--task denoising {NOISE} --arch bart_base {SHAPE} {DECODER}",
}


def run(command: str) -> None:
    program, *words = command.split()
    subprocess.run([str(Path(sys.executable).with_name(program)), *words], check=True)


def sentences(side: int) -> list[str]:
    lines = [f"{s[side]} {v[side]} {o[side]}." for s in SUBJECTS for v in VERBS for o in OBJECTS]
    random.Random(1).shuffle(lines)
    return lines


def make(name: str, flags: str, work: Path) -> None:
    """Write the folder of one model: SentencePiece model, dictionary, checkpoint, text, and what fairseq makes of it."""
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    pieces = folder / "sentencepiece.bpe.model"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*sentences(0), *sentences(1)]),
        model_prefix=str(work / "spm"),
        vocab_size=60,
        normalization_rule_name="identity",
        minloglevel=2,
    )
    pieces.write_bytes((work / "spm.model").read_bytes())
    cut = sentencepiece.SentencePieceProcessor(model_file=str(pieces))
    data = work / name
    # mBART's dictionary is in the order of SentencePiece, as the published one; the others are fairseq's own, by frequency
    (work / "given.txt").write_text("".join(f"{cut.id_to_piece(i)} 1\n" for i in range(3, len(cut))), "utf-8")
    parts = {code: sentences(side) for side, code in enumerate(LANGUAGES)} if name == "mbart" else {".": [*sentences(0), *sentences(1)]}
    for part, lines in parts.items():
        (work / "train").write_text("".join(f"{' '.join(cut.encode(line, out_type=str))}\n" for line in lines), "utf-8")
        given = f"--srcdict {work}/given.txt" if name == "mbart" else ""
        run(f"fairseq-preprocess --trainpref {work}/train --destdir {data / part} --workers 1 --only-source {given}")
    if name == "mbart":
        (data / "dict.txt").write_bytes((data / LANGUAGES[0] / "dict.txt").read_bytes())
    run(f"fairseq-train {data} {flags} {TRAINING} --save-dir {work}/{name}.saved")
    torch_file = work / f"{name}.saved" / "checkpoint_last.pt"
    (folder / "model.pt").write_bytes(torch_file.read_bytes())
    (folder / "dict.txt").write_bytes((data / "dict.txt").read_bytes())
    texts = [sentences(0)[0], sentences(1)[1], "Der Baum kennt das Haus."]
    (folder / "text.txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    expect(folder, "model.pt", data, [" ".join(cut.encode(text, out_type=str)) for text in texts], "expected.npz")
    if name == "xlmr":
        write_old(folder)
        expect(folder, "old.pt", data, [" ".join(cut.encode(text, out_type=str)) for text in texts], "old.npz")


def expect(folder: Path, file: str, data: Path, lines: list[str], output: str) -> None:
    """Write the ids of lines of pieces, and the scores that fairseq's model in `file` gives."""
    (model,), _, task = load_model_ensemble_and_task([str(folder / file)], arg_overrides={"data": str(data)})
    model.eval()
    dictionary = task.source_dictionary
    rows = [dictionary.encode_line(line, add_if_not_exist=False).long() for line in lines]
    assert not any((row == dictionary.unk()).any() for row in rows)
    ids = torch.full((len(rows), max(map(len, rows))), dictionary.pad())
    for row, filled in zip(rows, ids, strict=True):
        filled[: len(row)] = row
    written = ids.roll(1, dims=0)[:, :7].contiguous()  # what the decoder has written: the beginning of another line
    written[written == dictionary.pad()] = dictionary.unk()
    with torch.no_grad():
        if hasattr(model, "decoder"):
            scores, _ = model(ids, (ids != dictionary.pad()).sum(dim=1), written)
        else:
            scores, _ = model(ids)
    numpy.savez_compressed(folder / output, ids=ids.numpy(), written=written.numpy(), scores=scores.numpy())


def write_old(folder: Path) -> None:
    """Write RoBERTa's checkpoint in the form that fairseq had when XLM-R was published; fairseq still reads it."""
    checkpoint = torch.load(folder / "model.pt", weights_only=False)
    weights, old = checkpoint["model"], {}
    for name, weight in weights.items():
        new = name.replace("encoder.", "decoder.", 1).replace(".layernorm_embedding.", ".emb_layer_norm.")
        if ".self_attn.q_proj." in name:
            parts = [weights[name.replace("q_proj", f"{part}_proj")] for part in "qkv"]
            old[new.replace("q_proj.", "in_proj_")] = torch.cat(parts)
        elif ".self_attn.k_proj." not in name and ".self_attn.v_proj." not in name and name.split(".")[-1] not in COPIES:
            old[new] = weight
    model = checkpoint["cfg"]["model"]
    arguments = Namespace(**(vars(model) if isinstance(model, Namespace) else model))
    arguments.task, arguments.criterion, arguments.arch = "masked_lm", "masked_lm", "roberta_base"
    del checkpoint["cfg"]
    torch.save({**checkpoint, "args": arguments, "model": old}, folder / "old.pt", _use_new_zipfile_serialization=False)


COPIES = {f"{part}_{kind}" for part in ("in_proj", "out_proj", "fc1", "fc2") for kind in ("weight", "bias")}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        for one in sys.argv[1:] or MODELS:
            make(one, MODELS[one], Path(temporary))
