rule codeswitch:
    input:
        unpack(of(bridges.noise_sources)),
        text_a=of(bridges.side, "train", 0),
        text_b=of(bridges.side, "train", 1),
        dev_a=of(bridges.side, "dev", 0),
        dev_b=of(bridges.side, "dev", 1),
    output:
        folder=directory("results/codeswitch/{experiment}/{noise}/seed{seed}"),
    log:
        "results/logs/codeswitch/{experiment}/{noise}.seed{seed}.log",
    benchmark:
        "results/benchmarks/codeswitch/{experiment}/{noise}.seed{seed}.tsv"
    wildcard_constraints:
        experiment=experiments_with(text="corpora"),
    priority: of(urgency.of_noise)
    conda:
        "../envs/crossgap.yaml"
    params:
        languages=of(bridges.sides),
        documents=of(bridges.noised_documents),
        kind=of(bridges.noise_kind),
        more=lambda w, input: flags(input, "lexicon_ab", "lexicon_ba", "model"),
        own=of(bridges.noise_settings),
        tokens=of(bridges.tokens),
        settings=settings_of("codeswitch"),
    shell:
        "python -m workflow_scripts.noise.codeswitch parallel --text-a {input.text_a:q} --text-b {input.text_b:q} "
        "--dev-a {input.dev_a:q} --dev-b {input.dev_b:q} "
        "--output {output.folder:q} --languages {params.languages:q} --kind {params.kind} {params.more:q} {params.documents} {params.own:q} "
        "--seed {wildcards.seed} --tokens {params.tokens} --settings {params.settings:q} > {log:q} 2>&1"


# Text with labels has one side, whatever its task; each sentence is switched into one of several languages.
rule labelled_codeswitch:
    input:
        unpack(of(bridges.noise_plugin)),
        text=of(bridges.one_side, "train"),
        dev=of(bridges.one_side, "dev"),
        lexicons=of(bridges.given_lexicon),
    output:
        folder=directory("results/codeswitch/{experiment}/{noise}/seed{seed}"),
    log:
        "results/logs/codeswitch/{experiment}/{noise}.seed{seed}.log",
    benchmark:
        "results/benchmarks/codeswitch/{experiment}/{noise}.seed{seed}.tsv"
    wildcard_constraints:
        experiment=experiments_with(text="labelled"),
    priority: of(urgency.of_noise)
    conda:
        "../envs/crossgap.yaml"
    params:
        language=of(attrgetter("plan.trained_languages")),
        into=lambda w, input: ["--into", *of(bridges.switched_into)(w)] if input.lexicons else [],
        lexicons=lambda w, input: flags(input, "lexicons"),
        own=of(bridges.noise_settings),
        pairs=of(bridges.pairs_flag),
        kind=of(bridges.noise_kind),
        tokens=of(bridges.tokens),
        settings=settings_of("codeswitch"),
    shell:
        "python -m workflow_scripts.noise.codeswitch labelled --text {input.text:q} --dev {input.dev:q} {params.lexicons:q} "
        "--output {output.folder:q} --language {params.language:q} {params.into:q} --kind {params.kind} {params.pairs} {params.own:q} "
        "--seed {wildcards.seed} --tokens {params.tokens} --settings {params.settings:q} > {log:q} 2>&1"
