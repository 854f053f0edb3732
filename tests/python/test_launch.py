"""The launch modules of the stand-in for determined: what they become."""
import os
import unittest
from unittest import mock

from determined.launch import _start, deepspeed, torch_distributed


class Launch(unittest.TestCase):
    def become(self, module, arguments, programs, **variables):
        kept = {name: value for name, value in os.environ.items() if name != "MASTER_PORT"}
        with mock.patch.dict(os.environ, {**kept, "CUDA_VISIBLE_DEVICES": "0,1", **variables}, clear=True), \
                mock.patch.object(_start, "launcher", lambda name: name in programs), \
                mock.patch.object(_start, "become", side_effect=SystemExit) as become:
            self.assertRaises(SystemExit, module.main, arguments)
        return become.call_args.args[0]

    def port(self, module, arguments=("t.py",), programs=("torchrun", "deepspeed"), **variables):
        words = self.become(module, arguments, programs, **variables)
        return words[words.index("--master_port") + 1]

    def test_the_port_is_that_of_the_trial(self):
        for module in (deepspeed, torch_distributed):
            self.assertEqual(self.port(module, MASTER_PORT="23456"), "23456")
        self.assertEqual(self.port(deepspeed, programs=("torchrun",), MASTER_PORT="23456"), "23456")

    def test_without_one_it_is_no_fixed_port(self):
        for module in (deepspeed, torch_distributed):
            ports = {self.port(module) for _ in range(4)}
            self.assertGreater(len(ports), 1)
            self.assertNotIn("29500", ports)

    def test_a_rendezvous_of_the_users_own_stays(self):
        for own in (["--master_port", "1"], ["--master-port=1"], ["--standalone"], ["--rdzv-endpoint", "h:1"],
                    ["--nnodes", "2"]):
            words = self.become(torch_distributed, [*own, "--", "t.py"], ("torchrun",), MASTER_PORT="23456")
            self.assertEqual(words, ["torchrun", "--nproc_per_node", "2", *own, "--no_python", "t.py"])

    def test_the_launchers_own_options_stand_before_two_dashes(self):
        words = self.become(deepspeed, ["--master_addr", "h", "--", "--trial", "m:T"], ("deepspeed",), MASTER_PORT="1")
        self.assertEqual(words[:3], ["deepspeed", "--master_addr", "h"])
        self.assertEqual(words[-4:], ["-m", "determined.exec.harness", "--train-entrypoint", "m:T"])
        words = self.become(deepspeed, ["--num_gpus", "1", "--", "t.py"], ("deepspeed",), MASTER_PORT="1")
        self.assertNotIn("--include", words)
        words = self.become(deepspeed, ["--", "--trial", "m:T"], ("deepspeed",), MASTER_PORT="1")
        self.assertEqual(words[-2:], ["--train-entrypoint", "m:T"])
        words = self.become(deepspeed, ["t.py", "--", "--x"], ("deepspeed",), MASTER_PORT="1")
        self.assertEqual(words[-3:], ["t.py", "--", "--x"], "they are the script's")


if __name__ == "__main__":
    unittest.main()
