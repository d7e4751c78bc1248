rule report:
    input:
        files=report_inputs(),
    output:
        html=report(
            "results/report.html",
            caption="../docs/captions/report.rst",
            category="Crossgap report",
            labels={"what": "overview of all experiments" if report_pages() else "all on one page"},
        ),
        scores=report(
            "results/scores.tsv",
            caption="../docs/captions/scores_table.rst",
            category="Crossgap report",
            labels={"what": "scores as a table"},
        ),
        pages=[
            report(
                page,
                caption="../docs/captions/report_page.rst",
                category="Crossgap report",
                labels={"what": Path(page).stem},
            )
            for page in report_pages()
        ],
    log:
        "results/logs/report.log",
    benchmark:
        "results/benchmarks/report.tsv"
    localrule: True
    conda:
        "../envs/crossgap.yaml"
    params:
        pages=lambda w, output: flags(output, "pages"),
        config=json.dumps(dataclasses.asdict(CONFIG), ensure_ascii=False),
    shell:
        "python -m workflow_scripts.report --results results --html {output.html:q} --scores {output.scores:q} "
        "{params.pages:q} --settings {params.config:q} > {log:q} 2>&1"
