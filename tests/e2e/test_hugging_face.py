"""Hugging Face's Trainer refuses a configuration that differs from its arguments: they are rewritten together."""
import json
import sys
import unittest

from support import CONFIG, FIXTURES, HostTest

SCRIPT = [sys.executable, "-S", "-E", str(FIXTURES / "hf_trial.py"), "--output_dir", "model"]
AUTO = {**CONFIG, "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
        "train_batch_size": "auto"}


class HuggingFace(HostTest):
    def tune(self, *arguments, options=(), head=()):
        command = [*head, *SCRIPT, *map(str, arguments)]
        return self.run_host(["--output-dir", "out", "--max-trials", 7, *options], command)

    def assert_measured(self, result, least=2):
        """More than one micro batch was measured, and nothing failed: the Trainer agreed with every configuration."""
        self.assert_ok(result)
        trials = self.show(self.dir / "out")["trials"]
        self.assertEqual({t["outcome"] for t in trials} - {"completed", "out_of_memory", "stopped"}, set())
        sizes = {t["config"]["train_micro_batch_size_per_gpu"] for t in trials}
        self.assertGreaterEqual(len(sizes), least)
        for file in self.dir.glob("out/trials/*/cmd.txt"):
            self.assertNotIn("auto", file.read_text().replace("autotuning", ""))
        best = json.loads((self.dir / "out/best_ds_config.json").read_text())
        return best, (self.dir / "out/best_cmd.txt").read_text()

    def test_its_flags_follow_the_configuration(self):
        result = self.tune("--deepspeed", "ds_config.json", "--per_device_train_batch_size", 1,
                           "--gradient-accumulation-steps=1")
        best, command = self.assert_measured(result)
        self.assertIn("--per_device_train_batch_size %d" % best["train_micro_batch_size_per_gpu"], command)

    def test_a_flag_that_is_not_given_is_added_because_its_default_would_differ(self):
        self.write_config({**CONFIG, "gradient_accumulation_steps": 2})
        _, command = self.assert_measured(self.tune("--deepspeed=ds_config.json"))
        self.assertIn("--per_device_train_batch_size", command)
        self.assertIn("--gradient_accumulation_steps 2", command)

    def test_auto_stays_in_the_file_and_never_reaches_the_command_line(self):
        mappings = {"train_micro_batch_size_per_gpu": "--per_device_train_batch_size",
                    "gradient_accumulation_steps ": "--gradient_accumulation_steps",
                    "optimizer.params.lr": "--learning_rate"}
        optimizer = {"type": "AdamW", "params": {"lr": "auto"}}
        self.write_config({**AUTO, "optimizer": optimizer, "autotuning": {"enabled": True, "arg_mappings": mappings}})
        result = self.tune("--deepspeed", "ds_config.json", "--per_device_train_batch_size", 4,
                           "--learning_rate", "1e-4")
        best, command = self.assert_measured(result)
        self.assertIn("'gradient_accumulation_steps ' has stray white space", result.stdout + result.stderr)
        self.assertEqual(best["optimizer"]["params"]["lr"], "auto")
        self.assertIsInstance(best["train_micro_batch_size_per_gpu"], int)
        self.assertIn("--learning_rate 1e-4", command)

    def test_a_mapping_to_a_flag_that_the_command_does_not_have_is_refused(self):
        for options, config in ((["--arg-mapping", "optimizer.params.lr=--lr"], CONFIG),
                                ([], {**CONFIG, "autotuning": {"arg_mappings": {"optimizer.params.lr": "--lr"}}})):
            self.write_config(config)
            result = self.tune("--deepspeed", "ds_config.json", options=options)
            self.assert_ok(result, 2)
            self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
            self.assertIn("optimizer.params.lr names --lr", result.stderr)
            self.assertFalse((self.dir / "out").exists())

    def test_mappings_that_are_none_are_refused(self):
        for mappings in (["a"], {"train_batch_size": 3}, {"train_micro_batch_size_per_gpus": "--output_dir"},
                         {"": "--output_dir"}):
            self.write_config({**CONFIG, "autotuning": {"arg_mappings": mappings}})
            result = self.tune("--deepspeed", "ds_config.json")
            self.assert_ok(result, 2)
            self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)


if __name__ == "__main__":
    unittest.main()
