"""Model states beside the formula of docs/trainer.md, at every stage and offload setting; what offload and activation
checkpointing save, beside what was foretold."""
import itertools

from programs import zero

MODEL = "--model gpt --layers 4 --hidden 128 --heads 4 --seq 64 --vocab 512"
PARAMETERS = 932608
RANKS = 2
OFFLOADS = {
    0: [()],
    1: [(), ("optimizer",)],
    2: [(), ("optimizer",)],
    3: [(), ("optimizer",), ("param",), ("optimizer", "param")],
}


def formula(stage, bf16, offloaded):
    """Bytes a rank between steps: on the device, on the host."""
    width, master, share = (2, 4, 1 / RANKS) if bf16 else (4, 0, 1 / RANKS)
    parameters = width * (share if stage == 3 else 1)
    gradients = width * (share if stage >= 2 else 1)
    states = (master + 8) * (share if stage >= 1 else 1)
    device, host = parameters + gradients + states, 0
    if "optimizer" in offloaded:
        device -= states + (gradients if stage >= 2 else 0)
        host += (4 + 8 + width) * share
    if "param" in offloaded:
        device -= parameters
        host += parameters
    return device * PARAMETERS, host * PARAMETERS


def near(value, expected, share):
    """Within a share of what was expected, and what a few scalars take."""
    return abs(value - expected) <= share * expected + 64


def measure(trial, stage, bf16, offloaded):
    section = zero(stage, **{f"offload_{part}": {"device": "cpu"} for part in offloaded})
    config = {"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": bf16}, "zero_optimization": section}
    return trial.measure(f"{MODEL} --ranks {RANKS}", config)


def constants(bf16):
    """What every rank holds besides: gpt's attention mask."""
    return (2 if bf16 else 4) * 64 * 64


def states_and_offload(trial):
    print("\nMemory: gpt, 932,608 parameters, Adam, 2 ranks, bytes a rank\n\n"
          "| stage | precision | offload | model states | formula | off by | on the host | formula | peak lower by | "
          "predicted | |\n|---|---|---|---|---|---|---|---|---|---|---|")
    all_held = True
    for bf16, stage in itertools.product((False, True), range(4)):
        kept = None
        for offloaded in OFFLOADS[stage]:
            result = measure(trial, stage, bf16, offloaded)
            device, host = formula(stage, bf16, offloaded)
            states = result["model_state_bytes"] - constants(bf16)
            held = near(states, device, 0.02) and near(result["host_memory_bytes"], host, 0.02)
            saved = predicted = ""
            if offloaded:
                lower, expected = kept["peak_memory"] - result["peak_memory"], formula(stage, bf16, ())[0] - device
                held = held and near(lower, expected, 0.1)
                saved, predicted = f"{lower:,}", f"{expected:,.0f}"
            kept = kept or result
            all_held = all_held and held
            off = f"{100 * (states / device - 1):.3f} %" if device else f"{states} bytes"
            print(f"| {stage} | {'bf16' if bf16 else 'fp32'} | {' and '.join(offloaded) or '-'} | {states:,} | "
                  f"{device:,.0f} | {off} | {result['host_memory_bytes']:,} | {host:,.0f} | {saved} | {predicted} | "
                  f"{'held' if held else 'MISSED'} |", flush=True)
    return all_held


RECOMPUTED = {
    "gpt": "--model gpt --layers 12 --hidden 64 --heads 4 --seq 64 --vocab 256",
    "resnet": "--model resnet --depth 32 --image 16",
    "bottleneck resnet": "--model resnet --depth 50 --image 16",
}


def checkpointing(trial):
    print("\nActivation checkpointing: 2 ranks, micro batch 8, bytes a rank; "
          "predicted from one forward that keeps all\n\n"
          "| model | precision | stage | peak | with checkpointing | lower by | predicted | off by | |\n"
          "|---|---|---|---|---|---|---|---|---|")
    all_held = True
    for (name, model), bf16, stage in itertools.product(RECOMPUTED.items(), (False, True), range(4)):
        config = {"train_micro_batch_size_per_gpu": 8, "bf16": {"enabled": bf16}, "zero_optimization": zero(stage)}
        options = f"{model} --ranks {RANKS}"
        kept = trial.measure(options, config)["peak_memory"]
        recomputed = trial.measure(f"{options} --activation-checkpointing", config)["peak_memory"]
        known = trial.information(options, config)
        predicted = known["activation_peak_kept"] - known["activation_peak_recomputed"]
        held = near(kept - recomputed, predicted, 0.1)
        all_held = all_held and held
        off = f"{100 * ((kept - recomputed) / predicted - 1):+.1f} %" if predicted else ""
        print(f"| {name} | {'bf16' if bf16 else 'fp32'} | {stage} | {kept:,} | {recomputed:,} | "
              f"{kept - recomputed:,} | {predicted:,.0f} | {off} | {'held' if held else 'MISSED'} |", flush=True)
    return all_held


def run(trial, o):
    held = states_and_offload(trial)
    return checkpointing(trial) and held
