"""The smallest useful searcher in Python."""
import dsat


class RandomSearch(dsat.Searcher):
    """draws every trial at random"""

    options = [dsat.Option("most-micro-batch", 64, "the largest micro batch to draw", min=1)]

    def start(self, study):
        space = dsat.Space(study["space"])
        self.space, self.ended = space, False
        self.sizes = [n for n in range(1, self.option["most-micro-batch"] + 1) if space.allows_micro_batch(n)]
        for _ in range(study["limits"]["open_trials"]):
            self.ask()

    def on_trial_exited(self, exit):
        self.ask()

    def ask(self):
        if self.ended:
            return
        stage = self.random.choice(self.space.stages)
        values = [self.random.choice(values) for _, values in self.space.axes(stage)]
        overrides = self.space.overrides(stage, self.random.choice(self.sizes), values)
        if self.create_trial(overrides, note="at random") is None:
            self.ended = True
            self.finish("the trial limit is reached")
