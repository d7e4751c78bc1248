"""Slurm's ways of writing, and jobs that no node can take."""

import pytest

from workflow_scripts.run.partitions import Nodes, check_job, cpus_of, gpu_here, gpus_in, gpus_of, machine_memory, minutes
from workflow_scripts.stage import InputError


def test_slurms_ways_of_writing():
    assert [minutes(limit) for limit in ("infinite", "2-00:00:00", "1:30:00", "45:00", "n/a")] == [float("inf"), 2880, 90, 45, float("inf")]
    assert gpus_in("gpu:a100:4(S:0-1),gpu:v100:2,mps:100") == {"a100": 4, "v100": 2} and gpus_in("gpu:3(IDX:0,2)") == {"": 3}
    assert gpus_in("(null)") == {} and gpus_in("gpu:a100") == {"a100": 1}
    assert gpus_of({"gres": "gpu:2"}) == (2, "") and gpus_of({"gpu": 1, "gpu_model": "a100"}) == (1, "a100") and gpus_of({}) == (0, "")


CLUSTER = {"cpu": [Nodes(120.0, 16, 64_000, {})], "gpu": [Nodes(1440.0, 32, 128_000, {"a100": 4}), Nodes(1440.0, 8, 500_000, {"v100": 2})]}


@pytest.mark.parametrize(
    "job, said",
    [
        ({"slurm_partition": "gup"}, "there is no partition 'gup'; .* cpu, gpu"),
        ({"slurm_partition": "cpu", "runtime": 121}, r"runtime 121 is more than cpu has \(120\)"),
        ({"slurm_partition": "cpu", "threads": 17}, r"threads 17 is more than cpu has \(16\)"),
        ({"slurm_partition": "gpu", "threads": 16, "mem_mb": 200_000}, r"mem_mb 200000 is more than gpu has \(128000\)"),
        ({"slurm_partition": "cpu", "cpus_per_task": 17}, r"cpus_per_task 17 is more than cpu has \(16\); .* set-resources: finetune"),
        ({"slurm_partition": "gpu", "gpu": 4, "cpus_per_gpu": 9}, r"cpus_per_gpu × GPUs 36 is more than gpu has \(32\)"),
        ({"slurm_partition": "gpu", "gres": "gpu:4", "cpus_per_gpu": 9}, r"cpus_per_gpu × GPUs 36 is more than gpu has \(32\)"),
        (
            {"slurm_partition": "cpu", "threads": 8, "mem_mb": 1, "mem_mb_per_cpu": 9000},
            r"mem_mb_per_cpu × CPUs 72000 is more than cpu has",
        ),
        ({"slurm_partition": "cpu", "gpu": 1}, r"GPUs 1 is more than cpu has \(0\)"),
        ({"slurm_partition": "gpu", "gpu": 2, "gpu_model": "h100"}, r"GPUs h100 2 is more than gpu has \(0; its models are a100, v100\)"),
    ],
)
def test_a_job_that_no_node_can_take_is_refused(job, said):
    with pytest.raises(InputError, match=said):
        check_job("finetune", job, CLUSTER)


@pytest.mark.parametrize(
    ("asked", "cpus"),
    [
        ({"cpus_per_task": 6}, 6),
        ({"cpus_per_task": -1}, 1),
        ({"cpus_per_gpu": 6}, 4),
        ({"cpus_per_gpu": 6, "slurm_extra": "--gpus-per-node=2"}, 4),
        ({"cpus_per_task": 2, "cpus_per_gpu": 6, "gpu": 2}, 2),
        ({"cpus_per_gpu": 6, "gpu": 2}, 12),
        ({"cpus_per_gpu": "six", "gpu": 2}, 4),
    ],
)
def test_the_cpus_are_those_that_the_plugin_asks_for(asked, cpus):
    assert cpus_of({"threads": 4, **asked})[0] == cpus


def test_a_job_that_a_node_can_take():
    job = {"slurm_partition": "cpu,gpu", "gpu": 2, "gpu_model": "V100", "mem_mb": 400_000, "runtime": 1440, "threads": 8}
    assert check_job("finetune", job, CLUSTER) == "cpu,gpu" and check_job("scores", {"slurm_account": "x"}, CLUSTER) == "any partition"


@pytest.mark.parametrize(
    ("said", "size"), [("81559\n40960", 40960 * 2**20), ("[N/A]", machine_memory()), ("No devices were found", 0.0), ("", 0.0)]
)
def test_the_gpu_of_this_machine_may_share_its_memory(said, size, commands, monkeypatch):
    commands("nvidia-smi", said)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpu_here.cache_clear()
    assert gpu_here() == size
    gpu_here.cache_clear()


@pytest.mark.parametrize(
    ("named", "order", "size"),
    [
        (None, "", 8),
        ("GPU-2a", "", 80),
        ("GPU-1b,GPU-2a41", "", 48),
        ("1", "PCI_BUS_ID", 80),
        ("2, 0", "PCI_BUS_ID", 8),
        ("0", "", 80),
        ("0,1", "", 48),
        ("0,1,2", "", 8),
        ("MIG-5c", "", 8),
        ("7", "PCI_BUS_ID", 8),
        ("-1", "", 0),
    ],
)
def test_the_gpus_are_those_that_the_user_has_named(named, order, size, commands, monkeypatch):
    commands("nvidia-smi", "8, 0, GPU-0c11\n80, 1, GPU-2a41\n48, 2, GPU-1b07")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", order)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES") if named is None else monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    gpu_here.cache_clear()
    assert gpu_here() == size * 2**20
    gpu_here.cache_clear()
