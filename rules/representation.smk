rule representation:
    input:
        model="results/runs/{experiment}/{arm}/seed{seed}/{phase}/model",
        source=of(arms.first_test, 0),
        target=of(arms.first_test, 1),
        unaligned=of(arms.unaligned_text),
    output:
        report=report(
            "results/runs/{experiment}/{arm}/seed{seed}/{phase}/representation.json",
            caption="../docs/captions/representation.rst",
            category="Representation",
            subcategory="{experiment}",
            labels={"arm": "{arm}", "seed": "{seed}", "after": "{phase}"},
        ),
        vectors="results/runs/{experiment}/{arm}/seed{seed}/{phase}/representation.npz",
    log:
        "results/logs/representation/{experiment}/{arm}.seed{seed}.{phase}.log",
    benchmark:
        "results/benchmarks/representation/{experiment}/{arm}.seed{seed}.{phase}.tsv"
    conda:
        "../envs/crossgap.yaml"
    resources:
        gpu=GPU,
    params:
        languages=of(attrgetter("plan.trained_languages")),
        documents=of(arms.documents),
        unaligned=lambda w, input: flags(input, "unaligned"),
        settings=settings_of("representation"),
    shell:
        "python -m workflow_scripts.evidence.representation --model {input.model:q} --source {input.source:q} --target {input.target:q} "
        "--output {output.report:q} --vectors {output.vectors:q} --languages {params.languages:q} {params.unaligned:q} "
        "{params.documents} --threads {threads} --settings {params.settings:q} > {log:q} 2>&1"


use rule representation as representation_backbone with:
    input:
        model=lambda w: paths.backbone_model(CONFIG.experiments[w.experiment].backbone),
        source=of(arms.first_test, 0),
        target=of(arms.first_test, 1),
        unaligned=of(arms.unaligned_text),
    output:
        report=report(
            "results/runs/{experiment}/backbone.representation.json",
            caption="../docs/captions/representation.rst",
            category="Representation",
            subcategory="{experiment}",
            labels={"arm": "backbone", "seed": "", "after": "pretraining"},
        ),
        vectors="results/runs/{experiment}/backbone.representation.npz",
    log:
        "results/logs/representation/{experiment}/backbone.log",
    benchmark:
        "results/benchmarks/representation/{experiment}/backbone.tsv"
