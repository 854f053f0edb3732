"""The largest model under a cap on each rank's memory, at stage 3 beside stage 0."""
from programs import Failed, zero

CAP = "96MiB"
RANKS = 4
LIMIT = 3.2  # times stage 0's parameters; 4 would be all of it
SHAPE = "--hidden 128 --heads 4 --seq 8 --vocab 128"


def fits(trial, stage, layers):
    config = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": zero(stage, reduce_bucket_size=200000)}
    options = f"--model gpt --layers {layers} {SHAPE} --ranks {RANKS} --device-memory {CAP} --activation-checkpointing"
    try:
        trial.measure(options, config, steps=2)
    except Failed as failure:
        if "OutOfMemoryError" not in str(failure):
            raise
        return False
    return True


def largest(trial, stage):
    """Layers, by doubling and halving."""
    low, high = 1, 2
    while fits(trial, stage, high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(trial, stage, middle) else (low, middle)
    return low


def run(trial, o):
    def parameters(stage):
        layers = largest(trial, stage)
        information = trial.information(f"--model gpt --layers {layers} {SHAPE}", {"train_micro_batch_size_per_gpu": 1})
        return information["num_params"]

    replicated, partitioned = parameters(0), parameters(3)
    ratio = partitioned / replicated
    held = ratio >= LIMIT
    print(f"\nLargest gpt in {CAP} a rank, {RANKS} ranks, buckets of 200,000 elements: {replicated:,} parameters at "
          f"stage 0, {partitioned:,} at stage 3: {ratio:.2f} times, at least {LIMIT}: {'held' if held else 'MISSED'}")
    return held
