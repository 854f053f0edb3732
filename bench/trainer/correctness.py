"""Losses of every combination beside one process in fp32 that sees the same micro batches one after the other."""
import itertools

from programs import zero

MODELS = {
    "gpt": "--model gpt --layers 2 --hidden 64 --heads 2 --seq 32 --vocab 128",
    "resnet": "--model resnet --depth 8 --image 16",
}
FP32 = 1e-5  # sums in another order
# bf16 has 8 significant bits: a rounding is off by at most 2^-9, and a loss is a mean over many roundings of either
# sign behind a chain of layers. Twice the largest single rounding is asked for.
BF16 = 2 * 2.0**-9
STEPS = 3


def config(stage, accumulation, bf16, overlap):
    return {
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": accumulation,
        "gradient_clipping": 1.0,
        "bf16": {"enabled": bf16},
        "optimizer": {"type": "Adam", "params": {"lr": 1e-3}},
        "zero_optimization": zero(stage, overlap_comm=overlap, reduce_bucket_size=7000, allgather_bucket_size=3000),
    }


def worst(losses, expected):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, expected))


def combinations(bf16, accumulation):
    """Data-parallel ranks, options, configuration: what each model is trained with."""
    for ranks, stage, recomputed, overlap in itertools.product((1, 2, 4), range(4), (False, True), (False, True)):
        yield ranks, "--activation-checkpointing" if recomputed else "", config(stage, accumulation, bf16, overlap)
    for ranks, stage in itertools.product((1, 2, 4), (1, 2, 3)):
        offloaded = config(stage, accumulation, bf16, False)
        offloaded["zero_optimization"]["offload_optimizer"] = {"device": "cpu"}
        if stage == 3:
            offloaded["zero_optimization"]["offload_param"] = {"device": "cpu"}
        yield ranks, "", offloaded
    for stage, ranks in itertools.product((0, 1), (2, 4)):
        yield ranks // 2, f"--pipeline-stages 2 --ranks {ranks}", config(stage, accumulation, bf16, False)


def run(trial, o):
    print("\nCorrectness: largest relative difference of a loss from one fp32 process\n\n"
          "| model | precision | accumulation | combinations | worst | bound | |\n|---|---|---|---|---|---|---|")
    all_held = True
    for name, bf16, accumulation in itertools.product(MODELS, (False, True), (1, 3)):
        model, errors, expected = MODELS[name], [], {}
        # `shares`: data-parallel ranks, which one process stands in for with as many more micro steps.
        for shares, options, settings in combinations(bf16, accumulation):
            if shares not in expected:
                plain = config(0, accumulation * shares, False, False)
                expected[shares] = trial.measure(f"{model} --ranks 1", plain, STEPS)["losses"]
            ranks = "" if "--ranks" in options else f"--ranks {shares}"
            result = trial.measure(f"{model} {ranks} {options}", settings, STEPS)
            errors.append(worst(result["losses"], expected[shares]))
        bound = BF16 if bf16 else FP32
        held = max(errors) <= bound
        all_held = all_held and held
        print(f"| {name} | {'bf16' if bf16 else 'fp32'} | {accumulation} | {len(errors)} | {max(errors):.2e} | "
              f"{bound:.2e} | {'held' if held else 'MISSED'} |", flush=True)
    return all_held
