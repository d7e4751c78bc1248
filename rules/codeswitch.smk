rule codeswitch:
    input:
        unpack(of(arms.codeswitch_sources)),
        text_a=of(arms.corpus_side, "train", 0),
        text_b=of(arms.corpus_side, "train", 1),
        dev_a=of(arms.corpus_side, "dev", 0),
        dev_b=of(arms.corpus_side, "dev", 1),
    output:
        folder=directory("results/codeswitch/{experiment}/{noise}/seed{seed}"),
    log:
        "results/logs/codeswitch/{experiment}/{noise}.seed{seed}.log",
    benchmark:
        "results/benchmarks/codeswitch/{experiment}/{noise}.seed{seed}.tsv"
    wildcard_constraints:
        experiment=experiments_with(text="corpora"),
    priority: AHEAD
    conda:
        "../envs/crossgap.yaml"
    params:
        languages=of(arms.experiment_languages),
        documents=of(arms.documents),
        kind=lambda w: w.noise.partition(".")[0],
        model=lambda w, input: flags(input, "model"),
        tokens=of(arms.pretext_tokens),
        settings=settings_of("codeswitch"),
    shell:
        "python -m workflow_scripts.noise.codeswitch parallel --text-a {input.text_a:q} --text-b {input.text_b:q} "
        "--dev-a {input.dev_a:q} --dev-b {input.dev_b:q} --lexicon-ab {input.ab:q} --lexicon-ba {input.ba:q} "
        "--output {output.folder:q} --languages {params.languages:q} --kind {params.kind} {params.model:q} {params.documents} "
        "--seed {wildcards.seed} --tokens {params.tokens} --settings {params.settings:q} > {log:q} 2>&1"


# Text with labels has one side, whatever its task; each sentence is switched into one of several languages.
rule labelled_codeswitch:
    input:
        text=of(arms.switched_text, "train"),
        dev=of(arms.switched_text, "dev"),
        lexicons=of(inputs.given_lexicon),
    output:
        folder=directory("results/codeswitch/{experiment}/{noise}/seed{seed}"),
    log:
        "results/logs/codeswitch/{experiment}/{noise}.seed{seed}.log",
    benchmark:
        "results/benchmarks/codeswitch/{experiment}/{noise}.seed{seed}.tsv"
    wildcard_constraints:
        experiment=experiments_with(text="labelled"),
    priority: AHEAD
    conda:
        "../envs/crossgap.yaml"
    params:
        language=of(arms.direction),
        into=of(arms.switched_into),
        kind=of(arms.kind_of_noise),
        tokens=of(arms.pretext_tokens),
        settings=settings_of("codeswitch"),
    shell:
        "python -m workflow_scripts.noise.codeswitch labelled --text {input.text:q} --dev {input.dev:q} --lexicons {input.lexicons:q} "
        "--output {output.folder:q} --language {params.language:q} --into {params.into:q} --kind {params.kind} "
        "--seed {wildcards.seed} --tokens {params.tokens} --settings {params.settings:q} > {log:q} 2>&1"
