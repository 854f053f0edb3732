"""Bad input of every kind: one clear line on stderr that names what, where and what to do; status 2; nothing is run."""
import json
import os
import unittest

from support import BUILD, CONFIG, HostTest


class BadInput(HostTest):
    def refused(self, options, *words, command=None):
        where = [] if "--output-dir" in options else ["--output-dir", "out"]
        result = self.run_host([*where, *options], command)
        self.assertEqual(result.returncode, 2, result.stderr)
        first = result.stderr.splitlines()[0]
        for word in words:
            self.assertIn(word, first)
        self.assertEqual(result.stdout, "")
        self.assertEqual(list(self.dir.glob("out/trials/*")), [], "something was run")
        return first

    def refused_config(self, config, *words, options=()):
        self.write_config(config)
        return self.refused(options, *words)

    # The configuration

    def test_missing_configuration(self):
        (self.dir / "ds_config.json").unlink()
        self.refused([], "ds_config.json")

    def test_malformed_configuration_with_line_and_column(self):
        self.refused_config('{\n  "train_batch_size": 4,\n  "fp16": }\n', "ds_config.json:3:11")

    def test_duplicate_key(self):
        self.refused_config('{"zero_optimization": {"stage": 1,\n "stage": 2}}', "zero_optimization.stage",
                            "ds_config.json:2")

    def test_nan(self):
        self.refused_config('{"gradient_clipping": NaN}', "NaN", "ds_config.json:1")

    def test_misspelt_key_with_a_suggestion(self):
        config = {key: value for key, value in CONFIG.items() if key != "zero_optimization"}
        self.refused_config({**config, "zero_optimisation": {"stage": 1}}, "zero_optimisation", "zero_optimization")

    def test_misspelt_inner_key_with_a_suggestion(self):
        self.refused_config({**CONFIG, "zero_optimization": {"stage": 1, "reduce_bucket_sise": 5}},
                            "reduce_bucket_sise", "reduce_bucket_size")

    def test_contradictory_batch_sizes(self):
        self.refused_config({**CONFIG, "train_batch_size": 7, "train_micro_batch_size_per_gpu": 2,
                             "gradient_accumulation_steps": 2}, "ds_config.json", "train_batch_size", "7")
        self.refused_config({**CONFIG, "train_micro_batch_size_per_gpu": "2"}, "ds_config.json",
                            "train_micro_batch_size_per_gpu")
        self.refused_config({**CONFIG, "pipeline": {"stages": 3}}, "ds_config.json", "pipeline.stages",
                            options=["--slots", 4, "--slots-per-trial", 4])

    def test_pipeline_with_zero_2_and_3(self):
        config = {**CONFIG, "pipeline": {"stages": 2}, "zero_optimization": {"stage": 2}}
        self.refused_config(config, "pipeline", options=["-z", "2", "3", "--slots", "4", "--slots-per-trial", "4"])

    def test_parameter_offload_below_zero_3(self):
        config = {**CONFIG, "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}
        self.refused_config(config, "offload_param", options=["-z", "1", "2"])

    def test_elastic_training_chooses_the_batch_itself(self):
        config = {**CONFIG, "elasticity": {"enabled": True, "ignore_non_elastic_batch_info": True}}
        self.refused_config(config, "ds_config.json", "elasticity.enabled", "false for tuning")

    def test_optimizer_offload_without_zero(self):
        config = {**CONFIG, "zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}}
        self.refused_config(config, "offload_optimizer", options=["-z", "0"])

    def test_configuration_of_a_wrong_type(self):
        self.refused_config("[1, 2]", "ds_config.json")
        self.refused_config({**CONFIG, "train_micro_batch_size_per_gpu": "four"},
                            "train_micro_batch_size_per_gpu", "four")
        self.refused_config({**CONFIG, "zero_optimization": {"stage": 5}}, "stage", "5")

    def test_wrong_types_that_deepspeed_refuses(self):
        for key, value in (("overlap_comm", "soon"), ("reduce_bucket_size", []), ("reduce_bucket_size", {"a": 1}),
                           ("allgather_bucket_size", "x" * 100000), ("stage3_max_live_parameters", 1e300)):
            with self.subTest(key=key):
                config = {**CONFIG, "zero_optimization": {"stage": 1, key: value}}
                self.assertLess(len(self.refused_config(config, "ds_config.json", key)), 1000)

    def test_wrong_types_that_only_the_cost_model_reads(self):
        for section, key, value in (("data_types", "grad_accum_dtype", "fp64"),
                                    ("activation_checkpointing", "partition_activations", "no"),
                                    ("optimizer", "params", {"momentum": "0.9"})):
            with self.subTest(key=key):
                config = {**CONFIG, section: {key: value}}
                if section == "optimizer":
                    config.update({"optimizer": {"type": "SGD", key: value}, "zero_allow_untested_optimizer": True})
                self.refused_config(config, "ds_config.json", section + "." + key)

    # Plugins

    def test_a_searcher_that_everybody_may_change(self):
        library = self.dir / "libown.so"
        library.write_bytes((BUILD / "plugins/librandom.so").read_bytes())
        library.chmod(0o777)
        self.refused(["--searcher", "./libown.so"], "libown.so", "chmod o-w")
        library.chmod(0o755)
        self.dir.chmod(0o777)
        self.refused(["--searcher", "./libown.so"], "libown.so", "its folder")

    def test_unknown_searcher(self):
        self.refused(["--searcher", "ashaa"], "ashaa")

    def test_searcher_file_that_does_not_exist(self):
        self.refused(["--searcher", "./nowhere/libasha.so"], "nowhere/libasha.so")

    def test_searcher_that_is_no_library(self):
        (self.dir / "libtext.so").write_text("not a library")
        self.refused(["--searcher", "./libtext.so"], "libtext.so", "shared library")

    def test_searcher_that_is_a_profiler(self):
        self.refused(["--searcher", "profiler"], "profiler", "searcher")

    def test_library_that_is_no_plugin(self):
        library = next(p for p in ("/usr/lib/x86_64-linux-gnu/libz.so.1", "/lib/x86_64-linux-gnu/libc.so.6",
                                   "/lib/aarch64-linux-gnu/libc.so.6") if os.path.exists(p))
        self.refused(["--searcher", library], "dsat_plugin_entry_v1")

    def test_unknown_option_with_a_suggestion(self):
        self.refused(["--max-trails", 5], "--max-trails", "--max-trials")

    def test_plugin_option_out_of_range(self):
        self.refused(["--searcher", "asha", "--max-rungs", 0], "max-rungs")
        self.refused(["--searcher", "asha", "--max-rungs", "five"], "max-rungs", "five")

    # The command

    def test_command_not_found(self):
        self.refused([], "no-such-program", command=["no-such-program", "--deepspeed_config", "ds_config.json"])

    def test_command_not_executable(self):
        (self.dir / "train").write_text("#!/bin/sh\n")
        self.refused([], "train", "execut", command=["./train", "--deepspeed_config", "ds_config.json"])

    def test_no_command(self):
        self.refused(["--max-trials", 3], "no COMMAND to tune", command=[])

    def test_command_without_a_configuration(self):
        self.refused([], "--deepspeed_config", command=["true"])

    def test_command_with_two_configurations(self):
        self.refused([], "ds_config.json", "other.json", command=self.command("--deepspeed_config", "other.json"))

    # Numbers and folders

    def test_output_folder_with_a_file_as_its_parent(self):
        (self.dir / "file").write_text("")
        self.refused(["--output-dir", "file/out"], "file/out")

    def test_output_folder_that_holds_another_study(self):
        self.assert_ok(self.run_host(["--output-dir", "taken", "--max-trials", 4]))
        before = sorted(p.name for p in (self.dir / "taken/trials").iterdir())
        result = self.run_host(["--output-dir", "taken", "--max-trials", 4])
        self.assertEqual(result.returncode, 2)
        self.assertIn("another study", result.stderr.splitlines()[0])
        self.assertEqual(sorted(p.name for p in (self.dir / "taken/trials").iterdir()), before)

    def test_more_slots_per_trial_than_slots(self):
        self.refused(["--slots", 2, "--slots-per-trial", 4], "4", "2")

    def test_numbers_out_of_range(self):
        self.refused(["-mt", -1], "max-trials", "-1")
        self.refused(["-mt", 99999999999999999999], "max-trials")
        self.refused(["-mct", 0], "max-concurrent-trials")
        self.refused(["-mt", "x"], "max-trials", "x")
        self.refused(["--device-memory", "12 bananas"], "12 bananas")
        self.refused(["--device-memory", "0"], "device-memory")
        self.refused(["--trial-timeout", "-3"], "trial-timeout")
        self.refused(["-z", "4"], "4")

    def test_unknown_metric_with_the_list(self):
        self.refused(["--metric", "speed"], "speed", "FLOPS_per_gpu", "throughput", "latency")

    def test_space_file(self):
        self.refused(["--space", "none.json"], "--space", "none.json")
        (self.dir / "space.json").write_text(json.dumps({"zero_optimization.reduce_bucket_sise": [1, 2]}))
        self.refused(["--space", "space.json"], "--space space.json", "reduce_bucket_sise", "reduce_bucket_size")
        (self.dir / "space.json").write_text(json.dumps({"zero_optimization.overlap_comm": [True, "maybe"]}))
        self.refused(["--space", "space.json"], "--space space.json", "overlap_comm", "maybe")
        (self.dir / "space.json").write_text(json.dumps({"zero_optimization.reduce_bucket_size": []}))
        self.refused(["--space", "space.json"], "reduce_bucket_size")

    def test_global_batch_that_nothing_divides(self):
        self.refused(["--global-batch", 7, "--min-micro-batch", 8], "7")


if __name__ == "__main__":
    unittest.main()
