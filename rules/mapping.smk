rule mapping:
    input:
        unpack(of(lexicon_inputs.mapping_sources)),
    output:
        a="results/lexicons/{corpus}.{a}-{b}/{lexicon}/{a}.mapped.vec",
        b="results/lexicons/{corpus}.{a}-{b}/{lexicon}/{b}.mapped.vec",
        report="results/lexicons/{corpus}.{a}-{b}/{lexicon}/mapping.json",
    log:
        "results/logs/mapping/{corpus}.{a}-{b}/{lexicon}.log",
    benchmark:
        "results/benchmarks/mapping/{corpus}.{a}-{b}/{lexicon}.tsv"
    priority: urgency.SHARED
    conda:
        "../envs/crossgap.yaml"
    params:
        sources=lambda w, input: flags(input, "vectors_a", "vectors_b", "dictionary"),
        languages=of(lexicon_inputs.fold_languages),
        given=of(lexicon_inputs.given_vectors),
        seed=lambda w: CONFIG.corpora[w.corpus].seed,
        settings=lambda w: as_json(CONFIG.lexicons[w.lexicon].mapping),
    shell:
        "python -m workflow_scripts.lexicon.mapping {params.sources:q} --mapped-a {output.a:q} --mapped-b {output.b:q} "
        "--report {output.report:q} {params.languages:q} --seed {params.seed} --threads {threads} "
        "--settings {params.settings:q} > {log:q} 2>&1"
