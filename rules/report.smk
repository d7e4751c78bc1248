# The report reads it from a file: of a hundred experiments it is too long for a command line. The parameter is a digest,
# since Snakemake prints parameters that changed, and stores them.
rule configuration:
    output:
        "results/configuration.json",
    log:
        "results/logs/configuration.log",
    priority: urgency.SHARED  # a page on what is there so far reads it
    localrule: True
    params:
        digest=hashlib.sha256(dumped(CONFIG).encode()).hexdigest(),
    run:
        with atomic(Path(output[0])) as file:
            print(dumped(CONFIG), file=file)


rule report:
    input:
        files=report_inputs.report_inputs(PLANS),
        transfers=transfer_comparisons.results(PLANS),
        configuration="results/configuration.json",
    output:
        html=report(
            "results/report.html",
            caption="../docs/captions/report.rst",
            category="Crossgap report",
            labels={"what": "overview of all experiments" if report_inputs.report_pages(CONFIG.run) else "all on one page"},
        ),
        scores=report(
            "results/scores.tsv",
            caption="../docs/captions/scores_table.rst",
            category="Crossgap report",
            labels={"what": "scores as a table"},
        ),
        tables=report_inputs.report_tables(CONFIG.run),
        translations=directory("results/translations"),
        pages=[
            report(
                page,
                caption="../docs/captions/report_page.rst",
                category="Crossgap report",
                labels={"what": Path(page).stem},
            )
            for page in report_inputs.report_pages(CONFIG.run)
        ],
    log:
        "results/logs/report.log",
    benchmark:
        "results/benchmarks/report.tsv"
    localrule: True
    conda:
        "../envs/crossgap.yaml"
    params:
        pages=lambda w, output: flags(output, "pages", "tables"),
    shell:
        "python -m workflow_scripts.report --results results --html {output.html:q} --scores {output.scores:q} "
        "--configuration {input.configuration:q} {params.pages:q} --translations {output.translations:q} > {log:q} 2>&1"
