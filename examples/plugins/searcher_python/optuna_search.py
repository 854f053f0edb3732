"""A sampler of Optuna as a searcher: dsat asks it for trials and tells it what they gave."""
import dsat
import optuna


class Optuna(dsat.Searcher):
    """Optuna's TPE over stage, micro batch and the keys of the space"""

    options = [dsat.Option("startup", 8, "trials at random before the sampler learns", min=1)]

    def start(self, study):
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.space, self.metric, self.asked, self.ended = dsat.Space(study["space"]), study["metric"], {}, False
        sampler = optuna.samplers.TPESampler(seed=self.random.randrange(2**31), n_startup_trials=self.option["startup"])
        self.study = optuna.create_study(direction=study["direction"], sampler=sampler)
        for _ in range(study["limits"]["open_trials"]):
            self.ask()

    def on_result(self, result):
        if result.trial in self.asked and self.metric in result.metrics:
            self.study.tell(self.asked.pop(result.trial), result.metrics[self.metric])

    def on_trial_exited(self, exit):
        if exit.trial in self.asked:  # it gave no result
            self.study.tell(self.asked.pop(exit.trial), state=optuna.trial.TrialState.FAIL)
        self.ask()

    def ask(self):
        if self.ended:
            return
        trial, space = self.study.ask(), self.space
        stage = trial.suggest_categorical("stage", space.stages)
        micro_batch = trial.suggest_int("micro_batch", space.min_micro_batch, space.max_micro_batch or 256, log=True)
        while not space.allows_micro_batch(micro_batch):
            micro_batch -= 1
        values = [values[trial.suggest_int(f"{stage}.{key}", 0, len(values) - 1)] for key, values in space.axes(stage)]
        id = self.create_trial(space.overrides(stage, micro_batch, values), note="asked of Optuna")
        if id is None:
            self.ended = True
            self.finish("the trial limit is reached")
        else:
            self.asked[id] = trial
