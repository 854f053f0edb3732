"""What a search hands back, and that the same seed gives the same one."""
import json
import unittest

from support import CONFIG, HostTest

MEMORY = ["--device-memory", "1GB"]


class SameSeedSameSearch(HostTest):
    def search_twice(self, searcher, concurrency):
        runs = []
        for name in ("first", "second"):
            result = self.run_host(["--searcher", searcher, "--max-trials", 20, "-mct", concurrency, "--slots", 8,
                                    "--slots-per-trial", 1, "--output-dir", name, "--quiet", *MEMORY])
            self.assert_ok(result)
            runs.append(self.decisions(self.dir / name))
        self.assertEqual(len(runs[0]), 20)
        self.assertEqual(runs[0], runs[1])

    def test_asha_one_at_a_time(self):
        self.search_twice("asha", 1)

    def test_asha_eight_at_a_time(self):
        self.search_twice("asha", 8)

    def test_binary_one_at_a_time(self):
        self.search_twice("binary", 1)

    def test_binary_eight_at_a_time(self):
        self.search_twice("binary", 8)

    def test_random_one_at_a_time(self):
        self.search_twice("random", 1)

    def test_random_eight_at_a_time(self):
        self.search_twice("random", 8)

    def test_another_seed_is_another_search(self):
        for seed in (1, 2):
            self.assert_ok(self.run_host(["--searcher", "random", "-mt", 10, "-r", seed,
                                          "--output-dir", f"seed{seed}", *MEMORY]))
        self.assertNotEqual(self.decisions(self.dir / "seed1"), self.decisions(self.dir / "seed2"))


class WhatIsHandedBack(HostTest):
    USERS_OWN = {
        **CONFIG,
        "my_launcher": {"queue": "long", "retries": 3},
        "gradient_clipping": 1.0,
        "autotuning": {"enabled": True, "my_note": "kept in trials"},
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": True}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}},
    }

    def assert_contains(self, whole, part, path=""):
        for key, value in part.items():
            self.assertIn(key, whole, path + key)
            if isinstance(value, dict):
                self.assert_contains(whole[key], value, path + key + ".")

    def test_keeps_every_key_of_the_user(self):
        self.write_config(self.USERS_OWN)
        result = self.run_host(["--max-trials", 8, "--output-dir", "out", *MEMORY])
        self.assert_ok(result)
        best = json.loads((self.dir / "out/best_ds_config.json").read_text())
        self.assertNotIn("autotuning", best)
        wanted = {key: value for key, value in self.USERS_OWN.items() if key != "autotuning"}
        self.assert_contains(best, wanted)
        self.assertEqual(best["my_launcher"], self.USERS_OWN["my_launcher"])
        self.assertEqual(best["zero_optimization"]["offload_optimizer"], {"device": "cpu", "pin_memory": True})
        for key in ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"):
            self.assertIsInstance(best[key], int)
        for trial in (self.dir / "out/trials").iterdir():
            config = json.loads((trial / "ds_config.json").read_text())
            self.assert_contains(config, self.USERS_OWN)
            self.assertEqual(config["autotuning"]["my_note"], "kept in trials")

    def test_stages_that_the_users_keys_forbid_are_left_out_with_a_notice(self):
        self.write_config(self.USERS_OWN)  # optimizer offload: not with stage 0; grid is soon in the others
        options = ["--searcher", "grid", "--max-trials", 8, "--output-dir", "out", *MEMORY]
        result = self.run_host(["-z", "0", "2", "3", *options])
        self.assert_ok(result)
        self.assertIn("stage 0", result.stderr + result.stdout)
        stages = {t["config"]["zero_optimization"]["stage"] for t in self.show(self.dir / "out")["trials"]}
        self.assertEqual(stages, {2, 3})

    def best_and_all(self, metric, name):
        result = self.run_host(["--metric", metric, "--max-trials", 12, "--output-dir", name, "--json", *MEMORY])
        self.assert_ok(result)
        summary = json.loads(result.stdout)
        canonical = {"flops": "FLOPS_per_gpu", "fwd": "forward"}.get(metric, metric)
        values = [t["metrics"][canonical] for t in self.show(self.dir / name)["trials"]
                  if t["outcome"] == "completed" and canonical in t["metrics"]]
        return summary["best"]["metrics"][canonical], values

    def test_throughput_is_maximised(self):
        best, values = self.best_and_all("throughput", "throughput")
        self.assertEqual(best, max(values))

    def test_flops_is_an_alias(self):
        best, values = self.best_and_all("flops", "flops")
        self.assertEqual(best, max(values))

    def test_latency_is_minimised(self):
        best, values = self.best_and_all("latency", "latency")
        self.assertEqual(best, min(values))

    def test_forward_is_minimised(self):
        best, values = self.best_and_all("fwd", "forward")
        self.assertEqual(best, min(values))

    def test_the_global_batch_stays_fixed(self):
        result = self.run_host(["--global-batch", 24, "--max-trials", 12, "--output-dir", "out",
                                "--searcher", "binary", *MEMORY])
        self.assert_ok(result)
        for trial in self.show(self.dir / "out")["trials"]:
            if trial["kind"] != "profile":
                self.assertEqual(trial["config"]["train_batch_size"], 24)

    def test_the_searcher_says_how_long_a_profile_is_unless_the_user_does(self):
        for i, (options, count) in enumerate(((["--searcher", "guided"], 2), (["--searcher", "binary"], 3),
                                              (["--searcher", "guided", "--profile-trials", 3], 3))):
            self.assert_ok(self.run_host(["--max-trials", 4, "--output-dir", f"out{i}", *options, *MEMORY]))
            kinds = [trial["kind"] for trial in self.show(self.dir / f"out{i}")["trials"]]
            self.assertEqual(kinds.count("profile"), count, options)

    def test_json_is_one_object(self):
        result = self.run_host(["--max-trials", 6, "--output-dir", "out", "--json", *MEMORY])
        self.assert_ok(result)
        summary = json.loads(result.stdout)
        self.assertEqual(set(summary),
                         {"status", "reason", "best", "gain", "check", "trials", "metric", "dir", "files"})
        self.assertEqual(summary["status"], "completed")
        self.assertEqual(sum(summary["trials"].values()), 6)
        shown = self.show(self.dir / "out")
        self.assertEqual(set(shown), {"study", "profile", "trials", "best", "progress"})
        self.assertEqual([t["id"] for t in shown["trials"]], list(range(len(shown["trials"]))))
        for trial in shown["trials"]:
            self.assertRegex(trial["started_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")

    def test_the_run_directory_is_whole(self):
        self.assert_ok(self.run_host(["--max-trials", 5, "--output-dir", "out", *MEMORY]))
        for name in ("dsat.db", "best_ds_config.json", "best_ds_metrics.json", "best_cmd.txt", "summary.txt"):
            self.assertTrue((self.dir / "out" / name).is_file(), name)
        for trial in (self.dir / "out/trials").iterdir():
            for name in ("ds_config.json", "cmd.txt", "stdout.log", "stderr.log", "exit.json"):
                self.assertTrue((trial / name).is_file(), f"{trial}/{name}")
        self.assertEqual(sorted(p.name for p in (self.dir / "out").iterdir() if p.name.startswith("dsat")),
                         ["dsat.db", "dsat.plan.json"])

    def test_the_full_experiment_follows_with_the_best_configuration(self):
        witness = 'test -n "$DSAT_TRIAL_ID" || echo "$*" >>full_experiment; exec "$@"'
        self.assert_ok(self.run_host(["--max-trials", 5, "--output-dir", "out", "--run-full-experiment", *MEMORY],
                                     ["sh", "-c", witness, "sh", *self.command()]))
        runs = (self.dir / "full_experiment").read_text().splitlines()
        self.assertEqual(len(runs), 1)
        self.assertIn(f"--deepspeed_config {self.dir}/out/best_ds_config.json", runs[0])


if __name__ == "__main__":
    unittest.main()
