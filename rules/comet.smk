# not with --sdm conda, where Snakemake makes the environment of the rule below; a local rule, since it needs network
rule comet_environment:
    input:
        requirements=resource("envs/comet.txt"),
    output:
        "results/environments/comet.json",
    log:
        "results/logs/comet/environment.log",
    benchmark:
        "results/benchmarks/comet/environment.tsv"
    localrule: True
    conda:
        "../envs/crossgap.yaml"
    shell:
        "python -m workflow_scripts.environment --requirements {input.requirements:q} --output {output:q} > {log:q} 2>&1"


rule comet:
    input:
        unpack(own_environment),
        sources=of(arms.test_text, 0),
        hypotheses="results/runs/{experiment}/{arm}/seed{seed}/{testset}.hyp",
        references=of(arms.test_text, 1),
    output:
        scores=report(
            "results/runs/{experiment}/{arm}/seed{seed}/{testset}.comet.json",
            caption="../docs/captions/comet.rst",
            category="Scores",
            subcategory="{experiment}",
            labels={"test set": "{testset}", "arm": "{arm}", "seed": "{seed}"},
        ),
    log:
        "results/logs/comet/{experiment}/{arm}.seed{seed}.{testset}.log",
    benchmark:
        "results/benchmarks/comet/{experiment}/{arm}.seed{seed}.{testset}.tsv"
    conda:
        "../envs/comet.yaml"
    resources:
        gpu=GPU,
    params:
        environment=lambda w, input: flags(input, "environment"),
        settings=lambda w: as_json(CONFIG.experiments[w.experiment].comet or Comet()),
    shell:
        "python -m workflow_scripts.evidence.comet --sources {input.sources:q} --hypotheses {input.hypotheses:q} "
        "--references {input.references:q} --output {output.scores:q} {params.environment:q} --threads {threads} "
        "--settings {params.settings:q} > {log:q} 2>&1"
