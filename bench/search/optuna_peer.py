"""Optuna behind a pipe: reads and writes JSON lines.

{"new": {"sampler", "seed", "concurrent", "max_micro_batch", "stages", "known"}}  a fresh study; no answer
{"ask": true}                                      ->  {"id", "stage", "micro_batch", "axes": {dotted key: value}}
{"tell": id, "value": throughput or null}          a trial's end, null for out of memory; no answer

The space is the searchers': the stage is a category, the micro batch a logarithmic range of integers, and each axis a
category with its own name, shared between the stages that have it. `known`: the measured trials of the profile.
"""
import json
import sys
import warnings

try:
    import optuna
except ImportError:
    print(json.dumps({"missing": "python3-optuna"}), flush=True)
    sys.exit(0)

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.filterwarnings("ignore")


class Peer:
    def __init__(self, space):
        if space["sampler"] == "tpe":
            sampler = optuna.samplers.TPESampler(
                seed=space["seed"], multivariate=True, group=True, constant_liar=space["concurrent"])
        else:
            sampler = optuna.samplers.RandomSampler(seed=space["seed"])
        self.study = optuna.create_study(direction="maximize", sampler=sampler)
        self.space = space
        self.open = {}
        for known in space["known"]:
            self.study.enqueue_trial(known["params"])
            self.tell(self.ask()["id"], known["value"])

    def ask(self):
        trial = self.study.ask()
        stages = {str(stage["stage"]): stage for stage in self.space["stages"]}
        chosen = trial.suggest_categorical("stage", list(stages))
        micro_batch = trial.suggest_int("micro_batch", 1, self.space["max_micro_batch"], log=True)
        axes = {axis["key"]: trial.suggest_categorical(axis["key"], axis["values"]) for axis in stages[chosen]["axes"]}
        self.open[trial.number] = trial
        return {"id": trial.number, "stage": int(chosen), "micro_batch": micro_batch, "axes": axes}

    def tell(self, number, value):
        trial = self.open.pop(number)
        if value is not None:
            self.study.tell(trial, value)
        elif self.space["oom"] == "pruned":
            self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        elif self.space["oom"] == "failed":
            self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            self.study.tell(trial, 0.0)


def main():
    print(json.dumps({"version": optuna.__version__}), flush=True)
    peer = None
    for line in sys.stdin:
        message = json.loads(line)
        if "new" in message:
            peer = Peer(message["new"])
        elif "ask" in message:
            print(json.dumps(peer.ask()), flush=True)
        else:
            peer.tell(message["tell"], message["value"])


if __name__ == "__main__":
    main()
