rule embeddings:
    input:
        unpack(of(lexicon_inputs.pieces_of)),
        text="results/corpora/{corpus}.{a}-{b}/train.{lang}",
    output:
        vectors="results/lexicons/{corpus}.{a}-{b}/{lexicon}/{lang}.vec",
    log:
        "results/logs/embeddings/{corpus}.{a}-{b}/{lexicon}.{lang}.log",
    benchmark:
        "results/benchmarks/embeddings/{corpus}.{a}-{b}/{lexicon}.{lang}.tsv"
    priority: urgency.SHARED
    conda:
        "../envs/crossgap.yaml"
    # preflight asks without a lexicon, and gets the most workers of any
    threads: lambda w: max((each.embeddings.workers for name, each in CONFIG.lexicons.items() if w.get("lexicon", name) == name), default=1)
    params:
        model=lambda w, input: flags(input, "model"),
        seed=lambda w: CONFIG.corpora[w.corpus].seed,
        settings=lambda w: as_json(CONFIG.lexicons[w.lexicon].embeddings),
    shell:
        "python -m workflow_scripts.lexicon.embeddings --text {input.text:q} --vectors {output.vectors:q} "
        "--language {wildcards.lang:q} {params.model:q} --seed {params.seed} --settings {params.settings:q} > {log:q} 2>&1"
