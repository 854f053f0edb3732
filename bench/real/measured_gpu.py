#!/usr/bin/env python3
"""A trial that trains nothing and answers with the times of a real GPU, interpolated between micro batches.

    dsat-host --metric throughput -- /usr/bin/python3 bench/real/measured_gpu.py --deepspeed_config FILE

The GPT of docs/real-deepspeed.md, "On a GPU": one H100, steps in seconds, memory as measured. What the host launches
takes longer than the device below some 25 samples, at stage 3 below some 80. 0.15 % of noise, another one each trial.
"""
import json
import os
import random
import sys

STEPS_S = [(1, .0465), (4, .0476), (32, .0636), (64, .1155), (128, .2196), (256, .4163), (320, .5177), (400, .645)]
STAGE_3_S = [(1, .147), (32, .148), (64, .158), (128, .2406), (256, .4268), (320, .5352), (400, .667)]
PARAMS, SAMPLE_BYTES, NOISE = 86.2e6, .2378e9, .0015
STATE_BYTES, STAGE_0_BYTES, FIXED_BYTES = 1.38e9, 1.72e9, .5e8
DEVICE_BYTES, FREE_BYTES, TAKEN = 85017493504, 82.5e9, 1.047  # the allocator takes more than tensors hold


def step_s(table, micro_batch):
    for (a, at_a), (b, at_b) in zip(table, table[1:]):
        if micro_batch <= b:
            return at_a + (at_b - at_a) * (micro_batch - a) / (b - a)
    return None


def main():
    with open(sys.argv[sys.argv.index("--deepspeed_config") + 1]) as file:
        config = json.load(file)
    tuning, micro_batch = config.get("autotuning", {}), config["train_micro_batch_size_per_gpu"]
    stage = config.get("zero_optimization", {}).get("stage", 0)
    peak = (STATE_BYTES if stage else STAGE_0_BYTES) + FIXED_BYTES + SAMPLE_BYTES * micro_batch
    if peak * TAKEN > FREE_BYTES:
        sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
                 "of 79.18 GiB of which 1.00 GiB is free.")
    memory = {"peak_memory": int(peak), "device_memory": DEVICE_BYTES, "world_size": 1, "rank": 0}
    if tuning.get("model_info", {}).get("profile"):
        path, result = tuning["model_info_path"], {"num_params": int(PARAMS), "trainable_num_params": int(PARAMS),
                                                   "activation_mem_per_gpu": 200_000_000}
    else:
        noise = random.Random(f"{os.environ.get('DSAT_TRIAL_ID')} {stage} {micro_batch}").gauss(0, NOISE)
        seconds = step_s(STAGE_3_S if stage == 3 else STEPS_S, micro_batch) * (1 + noise)
        path, result = tuning["metric_path"], {"throughput": micro_batch / seconds, "latency": seconds * 1e6,
                                               "FLOPS_per_gpu": micro_batch / seconds * 3e11}
    with open(path, "w") as file:
        json.dump({**result, **memory}, file)


if __name__ == "__main__":
    main()
