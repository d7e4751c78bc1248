# seeds begin with 1: this is no arm's, whatever arms are called
rule trivial:
    input:
        source=of(arms.test_text, 0),
    output:
        hypotheses="results/runs/{experiment}/trivial/seed0/{testset}.hyp",
    log:
        "results/logs/trivial/{experiment}/{testset}.log",
    benchmark:
        "results/benchmarks/trivial/{experiment}/{testset}.tsv"
    wildcard_constraints:
        experiment=experiments_with(answers="text"),
    localrule: True
    conda:
        "../envs/crossgap.yaml"
    params:
        kind=of(attrgetter("plan.task.trivial")),
        documents=of(arms.documents),
    shell:
        "python -m workflow_scripts.evidence.trivial --source {input.source:q} --hypotheses {output.hypotheses:q} "
        "--kind {params.kind} {params.documents} > {log:q} 2>&1"
