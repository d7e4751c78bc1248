# not part of a run: snakemake preflight --cores 1, or snakemake preflight --profile slurm
rule preflight:
    localrule: True


# in Snakemake's own process, which knows what the profile asks for; a job that fails would be tried again
onstart:
    if any(job.rule.name == "preflight" for job in workflow.dag.jobs):
        preflight()
