"""DetCallback: metrics, checkpoints, length and preemption of Hugging Face's Trainer, reported to core_context."""
import json
import logging
import os

import transformers

from dsat import Error, current_trial

from .. import _study
from .._info import get_cluster_info

logger = logging.getLogger("determined.transformers")


class DetCallback(transformers.TrainerCallback):
    """`filter_metrics`: report only metrics with one of these texts in the name. `user_data`: kept in checkpoints."""

    def __init__(self, core_context, args, filter_metrics=None, user_data=None):
        super().__init__()
        info = get_cluster_info()
        if info is None:
            raise Error("DetCallback works in an experiment only: tune the experiment file with dsat-host")
        self.core_context = core_context
        self.filter_metrics = filter_metrics
        self.user_data = user_data
        self._restore(info, args)
        self.last_metrics = {"train_step": -1, "eval_step": -1}
        self.searcher_ops = core_context.searcher.operations()
        self.current_op = next(self.searcher_ops)
        self.updating_searcher = False
        searcher = info.trial._config["searcher"]
        self.searcher_metric = searcher.get("metric")
        self.searcher_max_length, unit = _study.training_length(info.trial._config)
        self.searcher_unit = unit or "batches"
        if current_trial() is None:  # a trial ends by itself, so the Trainer's length does not matter
            self._check_length(args)

    def _restore(self, info, args):
        if info.latest_checkpoint is None:
            return
        if getattr(args, "overwrite_output_dir", False):
            logger.info("--overwrite_output_dir: the training does not go on from checkpoint %s",
                        info.latest_checkpoint)
            return
        from transformers import trainer_utils

        self.core_context.checkpoint.download(info.latest_checkpoint, args.output_dir)
        args.resume_from_checkpoint = trainer_utils.get_last_checkpoint(args.output_dir)

    def _check_length(self, args):
        in_epochs = args.max_steps == -1
        trainers = args.num_train_epochs if in_epochs else args.max_steps
        unit = "epochs" if in_epochs else "batches"
        if unit != self.searcher_unit or trainers != self.searcher_max_length:
            raise ValueError(
                f"the Trainer trains {trainers} {unit}, "
                f"searcher.max_length is {self.searcher_max_length} {self.searcher_unit}: "
                "make --max_steps (batches) or --num_train_epochs (epochs) and the experiment file agree")

    def on_log(self, args, state, control, logs=None, **kwargs):
        if not logs:
            return
        kind = "eval" if any(name.startswith("eval_") for name in logs) else "train"
        if not any(name.startswith("test_") for name in logs):
            self._report(kind, self._filtered(logs), state)
        if self.updating_searcher:
            self._complete(state, control)
        if not self.updating_searcher and self.core_context.preempt.should_preempt():
            control.should_training_stop = control.should_save = True

    def _filtered(self, logs):
        if not self.filter_metrics:
            return dict(logs)
        return {name: value for name, value in logs.items() if any(part in name for part in self.filter_metrics)}

    def _report(self, kind, metrics, state):
        step_key = f"{kind}_step"
        if self.last_metrics[step_key] != state.global_step:  # the Trainer logs its last step twice
            if state.is_world_process_zero:
                report = (self.core_context.train.report_validation_metrics if kind == "eval"
                          else self.core_context.train.report_training_metrics)
                report(steps_completed=state.global_step, metrics=metrics)
            self.last_metrics[step_key] = state.global_step
        self.last_metrics.update(metrics)

    def on_save(self, args, state, control, **kwargs):
        info = get_cluster_info()
        name = f"checkpoint-{state.global_step}"
        if state.is_world_process_zero and self.user_data is not None:
            self._on_save_user_data(os.path.join(args.output_dir, name))
        self.core_context.checkpoint.upload(
            args.output_dir, {"steps_completed": state.global_step, "trial_id": info.trial.trial_id}, shard=True,
            selector=lambda path: path.startswith((f"{name}/", "runs/")))

    def _on_save_user_data(self, save_path):
        """Writes `user_data` to the folder of a checkpoint. Subclasses may write something else."""
        with open(os.path.join(save_path, "my_data.json"), "w", encoding="utf-8") as file:
            json.dump(self.user_data, file)

    def on_step_end(self, args, state, control, **kwargs):
        if state.epoch and self.searcher_unit == "batches":
            self._progress(state.global_step, state, control)

    def on_epoch_end(self, args, state, control, **kwargs):
        if state.epoch and self.searcher_unit == "epochs":
            self._progress(state.epoch, state, control)

    def _progress(self, done, state, control):
        if state.is_world_process_zero:
            self.current_op.report_progress(done)
        if done >= self.current_op.length:
            self._complete(state, control)

    def _complete(self, state, control):
        """Reports the searcher's metric after the Trainer has logged and evaluated this step."""
        if {self.last_metrics["train_step"], self.last_metrics["eval_step"]} != {state.global_step}:
            control.should_log = control.should_evaluate = control.should_save = True
            self.updating_searcher = True
            return
        if state.is_world_process_zero:
            if self.searcher_metric not in self.last_metrics:
                logger.warning("searcher.metric is %s, the Trainer logged %s", self.searcher_metric,
                               ", ".join(sorted(set(self.last_metrics) - {"train_step", "eval_step"})))
            self.current_op.report_completed(self.last_metrics.get(self.searcher_metric, state.best_metric))
        self.updating_searcher = False
        self.current_op = next(self.searcher_ops, None) or self.current_op
        control.should_training_stop = True
