"""Configurations made of a file, overwrites and a trial."""
import os
import unittest

import dsat
from support import CONFIG, PackageTest


class Overwriting(PackageTest):
    def test_leaves_are_replaced_and_objects_merge(self):
        base = {"a": {"b": 1, "c": [1, 2]}, "d": "auto"}
        result = dsat.overwrite_deepspeed_config(base, {"a": {"c": [3]}, "d": {"e": 4}, "f": None})
        self.assertEqual(result, {"a": {"b": 1, "c": [3]}, "d": {"e": 4}, "f": None})

    def test_the_arguments_stay_as_they_are(self):
        base, source = {"a": {"b": 1}}, {"a": {"c": {"d": 2}}}
        result = dsat.overwrite_deepspeed_config(base, source)
        result["a"]["c"]["d"] = 3
        self.assertEqual((base, source), ({"a": {"b": 1}}, {"a": {"c": {"d": 2}}}))

    def test_a_file_may_be_the_base(self):
        path = self.write("c.json", {"zero_optimization": {"stage": 1, "overlap_comm": True}})
        result = dsat.overwrite_deepspeed_config(path, {"zero_optimization": {"stage": 3}})
        self.assertEqual(result, {"zero_optimization": {"stage": 3, "overlap_comm": True}})

    def test_what_overwrites_must_be_a_dictionary(self):
        with self.assertRaisesRegex(dsat.Error, "dictionary"):
            dsat.overwrite_deepspeed_config({}, ["stage", 3])

    def test_what_is_overwritten_is_a_path_or_a_dictionary(self):
        for base in (None, 3, ["ds.json"]):
            with self.subTest(base), self.assertRaisesRegex(dsat.Error, "a dictionary, not "):
                dsat.overwrite_deepspeed_config(base, {})
        path = self.dir / "c.json"
        self.write(path.name, {"a": 1})
        self.assertEqual(dsat.overwrite_deepspeed_config(path, {}), {"a": 1})


class FromHparams(PackageTest):
    def test_the_file_with_the_overwrites(self):
        self.write("ds.json", CONFIG)
        hparams = {"deepspeed_config": "ds.json", "overwrite_deepspeed_args": {"zero_optimization": {"stage": 2}}}
        result = dsat.get_ds_config_from_hparams(hparams, self.dir)
        self.assertEqual(result, {**CONFIG, "zero_optimization": {"stage": 2}})

    def test_without_overwrites_the_file_itself(self):
        self.write("ds.json", CONFIG)
        for hparams in ({"deepspeed_config": "ds.json"},
                        {"deepspeed_config": "ds.json", "overwrite_deepspeed_args": None}):
            self.assertEqual(dsat.get_ds_config_from_hparams(hparams, str(self.dir)), CONFIG)

    def test_in_a_trial_the_trials_values_win_and_other_overwrites_stay(self):
        self.begin_trial()
        hparams = {"deepspeed_config": "not there.json",
                   "overwrite_deepspeed_args": {"train_batch_size": 1, "gradient_clipping": 0.5}}
        result = dsat.get_ds_config_from_hparams(hparams)
        self.assertEqual((result["train_batch_size"], result["gradient_clipping"]), (32, 0.5))
        self.assertTrue(result["autotuning"]["enabled"])

    def test_in_the_full_training_after_a_study_it_is_the_best_one(self):
        self.write("ds.json", {"train_batch_size": 1})
        os.environ["DSAT_DS_CONFIG"] = self.write("best_ds_config.json", CONFIG)
        hparams = {"deepspeed_config": "ds.json",
                   "overwrite_deepspeed_args": {"train_batch_size": 1, "gradient_clipping": 0.5}}
        self.assertEqual(dsat.get_ds_config_from_hparams(hparams, self.dir), {**CONFIG, "gradient_clipping": 0.5})

    def test_in_a_trial_the_result_is_the_callers_to_change(self):
        self.begin_trial()
        dsat.get_ds_config_from_hparams({})["zero_optimization"]["stage"] = 3
        self.assertEqual(dsat.get_ds_config_from_hparams({})["zero_optimization"]["stage"], 1)

    def test_missing_and_senseless_hyperparameters(self):
        for hparams, words in (({}, "no 'deepspeed_config'"), ({"deepspeed_config": 3}, "no 'deepspeed_config'"),
                               ("ds.json", "dictionary of hyperparameters"),
                               ({"deepspeed_config": "none.json"}, "cannot read .*none.json"),
                               ({"deepspeed_config": "x", "overwrite_deepspeed_args": "a=b"},
                                "dictionary of DeepSpeed keys")):
            with self.assertRaisesRegex(dsat.Error, words):
                dsat.get_ds_config_from_hparams(hparams, self.dir)


class Hyperparameters(PackageTest):
    def test_without_an_experiment_file_they_are_the_scripts_own(self):
        own = {"width": 8}
        self.assertEqual(dsat.get_hparams(own), own)
        self.assertIsNot(dsat.get_hparams(own), own)
        self.assertEqual(dsat.get_hparams(), {})

    def test_those_of_the_experiment_file_win(self):
        os.environ["DSAT_HPARAMS"] = self.write("hparams.json", {"width": 16, "deepspeed_config": "/t/ds_config.json"})
        self.assertEqual(dsat.get_hparams({"width": 8, "layers": 2}),
                         {"width": 16, "layers": 2, "deepspeed_config": "/t/ds_config.json"})

    def test_the_scripts_own_are_a_dictionary(self):
        for default in ("x", 3, [("width", 8)]):
            with self.subTest(default), self.assertRaisesRegex(dsat.Error, "dictionary, not "):
                dsat.get_hparams(default)

    def test_a_file_that_is_not_there(self):
        os.environ["DSAT_HPARAMS"] = str(self.dir / "none.json")
        with self.assertRaisesRegex(dsat.Error, "none.json"):
            dsat.get_hparams()


class Trials(PackageTest):
    def test_there_is_none_outside_a_tuning_run(self):
        self.assertIsNone(dsat.current_trial())

    def test_there_is_none_where_tuning_is_not_enabled(self):
        self.begin_trial(enabled=False)
        self.assertIsNone(dsat.current_trial())

    def test_a_measured_run(self):
        path = self.begin_trial(start=1, end=2)
        trial = dsat.current_trial()
        self.assertEqual((trial.id, trial.directory), (os.environ["DSAT_TRIAL_ID"], str(self.dir)))
        self.assertEqual((trial.config_path, trial.config["train_batch_size"]), (path, 32))
        self.assertEqual((trial.start_step, trial.end_step, trial.model_info), (1, 2, False))
        self.assertEqual(trial.result_path, str(self.dir / "metrics.json"))

    def test_a_run_that_asks_for_the_models_size(self):
        self.begin_trial(model_info=True)
        trial = dsat.current_trial()
        self.assertEqual((trial.model_info, trial.result_path), (True, str(self.dir / "model_info.json")))

    def test_damaged_descriptions(self):
        for i, (autotuning, words) in enumerate((
                ({"metric_path": None}, "autotuning.metric_path"), ({"metric_path": 3}, "autotuning.metric_path"),
                ({"start_profile_step": -1}, "start_profile_step is -1"),
                ({"end_profile_step": "5"}, "end_profile_step is '5'"),
                ({"end_profile_step": True}, "end_profile_step is True"),
                ({"end_profile_step": 2}, "end_profile_step 2 is before"))):
            self.begin_trial(**autotuning)
            with self.subTest(i), self.assertRaisesRegex(dsat.Error, words):
                dsat.current_trial()

    def test_a_configuration_that_is_not_there(self):
        path = self.begin_trial()
        (self.dir / "ds_config.json").unlink()
        with self.assertRaisesRegex(dsat.Error, f"{path}: No such file"):
            dsat.current_trial()


if __name__ == "__main__":
    unittest.main()
