"""Names and defaults of Determined's dsat that scripts use."""

ALL_SEARCH_METHOD_NAMES = ["binary", "_test", "asha", "random"]
CONFIG_KEY = "deepspeed_config"
OVERWRITE_KEY = "overwrite_deepspeed_args"
GAS_DEFAULT = 1
SMALLER_IS_BETTER = True
SMALLER_IS_BETTER_METRICS = ["forward", "backward", "latency"]
LARGER_IS_BETTER_METRICS = ["throughput", "FLOPS_per_gpu"]

_bucket_sizes = [digit * 10**power for digit in (1, 5) for power in range(6, 10)]
# The choices that each stage adds to the lower stages.
DEFAULT_ZERO_SEARCH_SPACE = {
    0: {},
    1: {"reduce_bucket_size": _bucket_sizes, "allgather_bucket_size": _bucket_sizes},
    2: {"overlap_comm": [True, False], "reduce_scatter": [True, False], "contiguous_gradients": [True, False]},
    3: {"allgather_partitions": [True, False]},
}

# The defaults of dsat-host, except max-trials (64 in Determined).
AUTOTUNING_ARG_DEFAULTS = {
    "max-trials": 50, "max-concurrent-trials": 16, "zero-stages": [1, 2, 3], "trials-per-random-config": 5,
    "start-profile-step": 3, "end-profile-step": 5, "metric": "FLOPS_per_gpu", "random-seed": 42,
    "run-full-experiment": False, "search-range-factor": 1.0, "divisor": 2, "min-binary-search-trials": 3,
    "max-rungs": 5, "asha-early-stopping": 0,
}
