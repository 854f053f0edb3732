"""Resident memory beside the reported peak: what the kernel counts for a rank, less what a tiny model of the same kind
takes, which uses the same pages of LibTorch."""
import json
import os
import subprocess
import tempfile

from programs import environment, free_port, zero

MODELS = (  # and the tiny ones
    ("--model gpt --layers 8 --hidden 256 --heads 4 --seq 64 --vocab 512",
     "--model gpt --layers 1 --hidden 8 --heads 2 --seq 8 --vocab 16"),
    ("--model mlp --layers 6 --hidden 1024", "--model mlp --layers 1 --hidden 8"),
)
RANKS = 2
LIMIT = 0.10


def ranks_of(trial, options, config):
    """(resident bytes of the neediest rank, reported peak), the ranks being started one by one."""
    with tempfile.TemporaryDirectory() as folder:
        metrics, file = os.path.join(folder, "metrics.json"), os.path.join(folder, "config.json")
        tuning = {"enabled": True, "metric_path": metrics, "start_profile_step": 1, "end_profile_step": 2}
        with open(file, "w") as stream:
            json.dump({**config, "autotuning": tuning}, stream)
        group = {"WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        ranks = [subprocess.Popen([trial.program, *options.split(), "--deepspeed_config", file],
                                  env=environment(RANK=str(rank), **group), stdout=subprocess.DEVNULL)
                 for rank in range(RANKS)]
        ended = [os.wait4(rank.pid, 0) for rank in ranks]
        if any(status != 0 for _, status, _ in ended):
            raise SystemExit(f"{options}: a rank failed")
        with open(metrics) as stream:
            return max(usage.ru_maxrss for _, _, usage in ended) * 1024, json.load(stream)["peak_memory"]


def run(trial, o):
    print("\nResident memory: 2 ranks over Gloo, default buckets, more than a tiny model takes\n\n"
          "| model | stage | precision | resident MB | reported MB | off by | |\n|---|---|---|---|---|---|---|")
    all_held = True
    for model, tiny in MODELS:
        for bf16, stage in ((False, 0), (False, 1), (False, 3), (True, 0), (True, 3)):
            config = {"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": bf16},
                      "zero_optimization": zero(stage)}
            base, small = ranks_of(trial, tiny, config)
            resident, reported = ranks_of(trial, model, config)
            off = (resident - base) / (reported - small) - 1
            held = abs(off) <= LIMIT
            all_held = all_held and held
            print(f"| {model.split()[1]} | {stage} | {'bf16' if bf16 else 'fp32'} | {(resident - base) / 1e6:.1f} | "
                  f"{(reported - small) / 1e6:.1f} | {100 * off:+.1f} % | {'held' if held else 'MISSED'} |", flush=True)
    return all_held
