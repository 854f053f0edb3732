"""The command line of a Hugging Face script in step with its DeepSpeed configuration."""
import os
import unittest

import dsat
from support import CONFIG, PackageTest


class CommandLine(PackageTest):
    def setUp(self):
        super().setUp()
        self.path = self.write("own.json", {"train_micro_batch_size_per_gpu": "auto",
                                            "gradient_accumulation_steps": "auto"})

    def overwritten(self, args, **overwrites):
        return dsat.get_hf_args_with_overwrites(args, {"overwrite_deepspeed_args": overwrites})

    def test_without_overwrites_nothing_changes(self):
        args = ["--deepspeed", self.path, "--per_device_train_batch_size", "8"]
        self.assertEqual(dsat.get_hf_args_with_overwrites(args, {}), args)
        self.assertEqual(self.files(), ["own.json"])

    def test_the_file_and_the_flags_follow_the_overwrites(self):
        args = ["--deepspeed", self.path, "--per_device_train_batch_size", "8", "--gradient_accumulation_steps=1",
                "--fp16"]
        result = self.overwritten(args, train_micro_batch_size_per_gpu=4, gradient_accumulation_steps=2)
        self.assertEqual(result, ["--deepspeed", self.path, "--per_device_train_batch_size", "4",
                                  "--gradient_accumulation_steps=2", "--fp16"])
        self.assertEqual(self.result("own.json"), {"train_micro_batch_size_per_gpu": 4,
                                                   "gradient_accumulation_steps": 2})
        self.assertEqual(args[3], "8", "the caller's list was changed")

    def test_doing_it_again_on_another_rank_changes_nothing_more(self):
        args = ["--deepspeed=" + self.path, "--per-device-train-batch-size", "8"]
        once = self.overwritten(args, train_micro_batch_size_per_gpu=4)
        self.assertEqual(once, ["--deepspeed=" + self.path, "--per-device-train-batch-size", "4"])
        self.assertEqual(self.overwritten(args, train_micro_batch_size_per_gpu=4), once)

    def test_a_flag_that_is_not_there_is_added(self):
        result = self.overwritten(["--deepspeed", self.path], train_micro_batch_size_per_gpu=4)
        self.assertEqual(result, ["--deepspeed", self.path, "--per_device_train_batch_size", "4"])

    def test_auto_never_reaches_the_command_line(self):
        args = ["--deepspeed", self.path, "--per_device_train_batch_size", "8"]
        self.assertEqual(self.overwritten(args, gradient_clipping=1.0), args)

    def test_in_a_trial_its_configuration_takes_the_place_of_the_scripts_own(self):
        trial = self.begin_trial()
        before = self.result("own.json")
        result = dsat.get_hf_args_with_overwrites(["--deepspeed", self.path], {})
        self.assertEqual(result, ["--deepspeed", trial, "--per_device_train_batch_size", "4",
                                  "--gradient_accumulation_steps", "2"])
        self.assertEqual(self.result("own.json"), before)

    def test_in_the_full_training_the_scripts_own_file_stays_as_it_is(self):
        best = self.write("best_ds_config.json", CONFIG)
        os.environ["DSAT_DS_CONFIG"] = best
        before = self.result("own.json")
        for overwrites in (CONFIG, {}):
            result = self.overwritten(["--deepspeed", self.path], **overwrites)
            self.assertEqual(result[:4], ["--deepspeed", best, "--per_device_train_batch_size", "4"])
        self.assertEqual((self.result("own.json"), self.result("best_ds_config.json")), (before, CONFIG))

    def test_in_a_trial_the_trials_values_win_and_other_overwrites_stay(self):
        trial = self.begin_trial()
        before = self.result("ds_config.json")
        result = self.overwritten(["--deepspeed", trial], train_micro_batch_size_per_gpu=64, gradient_clipping=1.0)
        self.assertIn("4", result)
        self.assertEqual(result[1], str(self.dir / "ds_config_with_overwrites.json"))
        config = self.result("ds_config_with_overwrites.json")
        self.assertEqual((config["train_micro_batch_size_per_gpu"], config["gradient_clipping"]), (4, 1.0))
        self.assertEqual(self.result("ds_config.json"), before)

    def test_in_a_trial_without_deepspeed_the_command_line_stays(self):
        self.begin_trial()
        args = ["--per_device_train_batch_size", "4"]
        self.assertEqual(dsat.get_hf_args_with_overwrites(args, {}), args)

    def test_words_are_a_list_of_any_kind_and_no_text(self):
        for args in ("--deepspeed " + self.path, b"--fp16", None, 3):
            for hparams in ({}, {"overwrite_deepspeed_args": {"a": 1}}):
                with self.subTest((args, hparams)), self.assertRaisesRegex(dsat.Error, "args is a list"):
                    dsat.get_hf_args_with_overwrites(args, hparams)
        words = ["--deepspeed", self.path]
        for args in (tuple(words), iter(words)):
            self.assertEqual(self.overwritten(args, train_micro_batch_size_per_gpu=4),
                             [*words, "--per_device_train_batch_size", "4"])

    def test_bad_input(self):
        for args, overwrites, words in ((["--fp16"], {"a": 1}, "add --deepspeed FILE"),
                                        (["--deepspeed"], {"a": 1}, "add --deepspeed FILE"),
                                        (["--deepspeed", "--fp16"], {"a": 1}, "add --deepspeed FILE"),
                                        (["--deepspeed", str(self.dir / "none.json")], {"a": 1}, "none.json"),
                                        (["--deepspeed", self.path, "--per_device_train_batch_size"],
                                         {"train_micro_batch_size_per_gpu": 2}, "last argument")):
            with self.subTest(args), self.assertRaisesRegex(dsat.Error, words):
                self.overwritten(args, **overwrites)
        with self.assertRaisesRegex(dsat.Error, "dictionary"):
            dsat.get_hf_args_with_overwrites(["--deepspeed", self.path], {"overwrite_deepspeed_args": [CONFIG]})


if __name__ == "__main__":
    unittest.main()
