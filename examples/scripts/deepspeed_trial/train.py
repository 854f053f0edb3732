#!/usr/bin/env python3
"""Trains with a training class: what Determined's launcher did for one."""
import deepspeed

import dsat
from model_def import ClassifierTrial

DEFAULTS = {"deepspeed_config": "ds_config.json", "width": 1024, "layers": 8, "steps": 100}


def main():
    hparams = dsat.get_hparams(DEFAULTS)
    deepspeed.init_distributed()
    trial = ClassifierTrial(hparams)
    timer = dsat.StepTimer()
    steps = 0
    with dsat.dsat_reporting_context(timer=timer):
        for batch in trial.build_training_data_loader():
            boundary = trial.engine.is_gradient_accumulation_boundary()  # of the micro step that follows
            loss = trial.train_batch(batch)
            if not boundary:
                continue
            timer.step()
            steps += 1
            if steps % 10 == 0 and trial.engine.global_rank == 0:
                print(f"step {steps} loss {loss:.3f}", flush=True)
            if steps == hparams["steps"]:
                break


if __name__ == "__main__":
    main()
