rule generation_sides:
    input:
        examples="results/labelled/{labelled}/{labelled_part}.{a}.tsv",
    output:
        source="results/labelled/{labelled}/{labelled_part}.{a}-{b}.source.{a}",
        target="results/labelled/{labelled}/{labelled_part}.{a}-{b}.target.{b}",
    log:
        "results/logs/labelled/{labelled}/{labelled_part}.{a}-{b}.sides.log",
    benchmark:
        "results/benchmarks/labelled/{labelled}/{labelled_part}.{a}-{b}.sides.tsv"
    wildcard_constraints:
        labelled_part=r"train|dev|(test|translations|translated)/[\w-]+",
    localrule: True
    conda:
        "../envs/crossgap.yaml"
    shell:
        "python -m workflow_scripts.tasks.generation sides --examples {input.examples:q} "
        "--source {output.source:q} --target {output.target:q} > {log:q} 2>&1"


# One job for all test sets: the model is loaded once.
rule generation_decoding:
    input:
        unpack(of(arms.writing_plugin)),
        model="results/runs/{experiment}/{arm}/seed{seed}/finetune/model",
        sources=of(arms.tested_texts),
    output:
        folder=directory("results/runs/{experiment}/{arm}/seed{seed}/predictions"),
    log:
        "results/logs/generation/{experiment}/{arm}.seed{seed}.log",
    benchmark:
        "results/benchmarks/generation/{experiment}/{arm}.seed{seed}.tsv"
    wildcard_constraints:
        experiment=experiments_with(text="labelled", answers="text"),
    priority: of(urgency.of_score)
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        testsets=of(arms.testsets),
        languages=of(arms.tested_directions, 0),
        target_languages=of(arms.tested_directions, 1),
        settings=settings_of("decoding"),
    shell:
        "python -m workflow_scripts.tasks.generation decode --model {input.model:q} --sources {input.sources:q} --folder {output.folder:q} "
        "--testsets {params.testsets:q} --languages {params.languages:q} --target-languages {params.target_languages:q} "
        "--threads {threads} --seed {wildcards.seed} --settings {params.settings:q} > {log:q} 2>&1"


# what is scored and tested is a file for each test set, as in translation
rule generation_answers:
    input:
        folder="results/runs/{experiment}/{arm}/seed{seed}/predictions",
    output:
        hypotheses="results/runs/{experiment}/{arm}/seed{seed}/{testset}.hyp",
    log:
        "results/logs/generation/{experiment}/{arm}.seed{seed}.{testset}.log",
    wildcard_constraints:
        experiment=experiments_with(text="labelled", answers="text"),
        seed=r"[1-9]\d*",
    localrule: True
    conda:
        "../envs/crossgap.yaml"
    shell:
        "cp {input.folder:q}/{wildcards.testset:q}.hyp {output.hypotheses:q} 2> {log:q}"
