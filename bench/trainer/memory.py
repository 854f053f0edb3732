"""Model states beside the formula of docs/trainer.md, at every stage and offload setting; what offload saves."""
from programs import zero

MODEL = "--model gpt --layers 4 --hidden 128 --heads 4 --seq 64 --vocab 512"
PARAMETERS = 932608
RANKS = 2


def formula(stage, bf16, offloaded):
    """Bytes a rank between steps: on the device, on the host."""
    width, master, shared = (2, 4, 1 / RANKS) if bf16 else (4, 0, 1 / RANKS)
    parameters = width * (shared if stage == 3 else 1)
    gradients = width * (shared if stage >= 2 else 1)
    states = (master + 8) * (shared if stage >= 1 else 1)
    if not offloaded:
        return (parameters + gradients + states) * PARAMETERS, 0
    on_device = parameters + (gradients if stage < 2 else 0)
    return on_device * PARAMETERS, (4 + 8 + width) * shared * PARAMETERS


def run(trial, o):
    print("\nMemory: gpt, 932,608 parameters, Adam, 2 ranks, bytes a rank\n\n"
          "| stage | precision | offload | model states | formula | off by | on the host | formula | peak lower by | "
          "predicted | |\n|---|---|---|---|---|---|---|---|---|---|---|")
    all_held = True
    for bf16 in (False, True):
        for stage in range(4):
            kept = None
            for offloaded in (False, True) if stage else (False,):
                section = zero(stage, **({"offload_optimizer": {"device": "cpu"}} if offloaded else {}))
                config = {"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": bf16}, "zero_optimization": section}
                result = trial.measure(f"{MODEL} --ranks {RANKS}", config)
                device, host = formula(stage, bf16, offloaded)
                off = result["model_state_bytes"] / device - 1
                held = abs(off) <= 0.02 and abs(result["host_memory_bytes"] - host) <= 0.02 * host
                saved = predicted = ""
                if offloaded:
                    lower = kept["peak_memory"] - result["peak_memory"]
                    expected = formula(stage, bf16, False)[0] - device
                    held = held and abs(lower - expected) <= 0.1 * expected
                    saved, predicted = f"{lower:,}", f"{expected:,.0f}"
                kept = kept or result
                all_held = all_held and held
                print(f"| {stage} | {'bf16' if bf16 else 'fp32'} | {'optimizer' if offloaded else '-'} | "
                      f"{result['model_state_bytes']:,} | {device:,.0f} | {100 * off:.3f} % | "
                      f"{result['host_memory_bytes']:,} | {host:,.0f} | {saved} | {predicted} | "
                      f"{'held' if held else 'MISSED'} |", flush=True)
    return all_held
