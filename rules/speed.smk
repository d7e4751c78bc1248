# By itself on the machine: what runs beside it would be measured, too.
rule speed:
    input:
        unpack(of(arms.speed_plugin)),
        models=of(arms.first_models),
        source=of(arms.first_test, 0),
        target=of(arms.first_test, 1),
    output:
        "results/runs/{experiment}/speed.json",
    log:
        "results/logs/speed/{experiment}.log",
    benchmark:
        "results/benchmarks/speed/{experiment}.tsv"
    wildcard_constraints:
        experiment=experiments_with(answers="text"),
    conda:
        "../envs/crossgap.yaml"
    threads: 1024  # all cores that there are: Snakemake gives no job more
    resources:
        gpu=GPU,
    params:
        arms=of(attrgetter("plan.arms")),
        languages=of(arms.first_direction),
        documents=of(arms.documents),
        scores=of(arms.scores_flags),
        lengths=of(arms.lengths_flags),
        settings=settings_of("speed"),
    shell:
        "python -m workflow_scripts.evidence.speed --output {output:q} --models {input.models:q} --source {input.source:q} "
        "--target {input.target:q} --arms {params.arms:q} --languages {params.languages:q} {params.documents} "
        "{params.scores:q} {params.lengths} --settings {params.settings:q} > {log:q} 2>&1"
