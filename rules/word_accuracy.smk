rule frequencies:
    input:
        training=of(arms.experiment_text, "train", 1),
    output:
        "results/runs/{experiment}/frequencies.tsv",
    log:
        "results/logs/word_accuracy/{experiment}/frequencies.log",
    benchmark:
        "results/benchmarks/word_accuracy/{experiment}/frequencies.tsv"
    conda:
        "../envs/crossgap.yaml"
    params:
        language=of(arms.target),
        settings=settings_of("word_accuracy"),
    shell:
        "python -m workflow_scripts.evidence.word_accuracy count --training {input.training:q} --output {output:q} "
        "--language {params.language} --settings {params.settings:q} > {log:q} 2>&1"


rule word_accuracy:
    input:
        hypotheses="results/runs/{experiment}/{arm}/seed{seed}/{testset}.hyp",
        references=of(arms.test_text, 1),
        frequencies="results/runs/{experiment}/frequencies.tsv",
    output:
        report(
            "results/runs/{experiment}/{arm}/seed{seed}/{testset}.words.json",
            caption="../docs/captions/word_accuracy.rst",
            category="Word accuracy",
            subcategory="{experiment}",
            labels={"test set": "{testset}", "arm": "{arm}", "seed": "{seed}"},
        ),
    log:
        "results/logs/word_accuracy/{experiment}/{arm}.seed{seed}.{testset}.log",
    benchmark:
        "results/benchmarks/word_accuracy/{experiment}/{arm}.seed{seed}.{testset}.tsv"
    conda:
        "../envs/crossgap.yaml"
    params:
        language=of(arms.target),
        settings=settings_of("word_accuracy"),
    shell:
        "python -m workflow_scripts.evidence.word_accuracy measure --hypotheses {input.hypotheses:q} --references {input.references:q} "
        "--frequencies {input.frequencies:q} --output {output:q} --language {params.language} "
        "--settings {params.settings:q} > {log:q} 2>&1"
