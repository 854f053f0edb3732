"""What the tests of the stand-in for determined share: an environment and files of an experiment, ranks as threads."""
import json
import os
import threading
from unittest import mock

from support import PackageTest

from determined.core import DistributedContext


class DeterminedTest(PackageTest):
    def setUp(self):
        super().setUp()
        for name in ("DSAT_EXPERIMENT", "LOCAL_RANK", "LOCAL_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "CROSS_RANK",
                     "MASTER_ADDR"):
            os.environ.pop(name, None)
        os.environ["MASTER_PORT"] = str(os.getpid())
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.dir)

    def begin_experiment(self, hparams=None, **config):
        os.environ["DSAT_HPARAMS"] = self.write("hparams.json", {"deepspeed_config": "ds.json", **(hparams or {})})
        os.environ["DSAT_EXPERIMENT"] = self.write("experiment.json", config)

    def reported(self):
        return [json.loads(line) for line in (self.dir / "metrics.jsonl").read_text().splitlines()]

    def forget_what_was_logged(self):
        logged = mock.patch("determined._once._logged", set())
        logged.start()
        self.addCleanup(logged.stop)

    def on_ranks(self, size, work):
        """`work(context)` on `size` ranks, each a thread; their results in order."""
        results = [None] * size

        def run(rank):
            context = DistributedContext(rank=rank, size=size, local_rank=rank, local_size=size,
                                         cross_rank=0, cross_size=1)
            try:
                results[rank] = work(context)
            except Exception as error:  # shown by the test
                results[rank] = error
            finally:
                context.close()

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        return results
