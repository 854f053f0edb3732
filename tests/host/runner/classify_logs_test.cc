// What lines of a trial's logs make of it: whose memory ran out, whom a launcher says was killed; and how lines are
// read whose beginning is missing or a host's name.
#include <gmock/gmock.h>

#include "host/runner/classify_fixture.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Its beginning shows that it is data and no error, but only the end of a long log is read.
TEST_F(Classify, ALineWhoseBeginWasNotReadMeansNothing) {
  const std::string more_than_is_read(1 << 20, 'x');
  const std::string rest = " CUDA out of memory. Tried to allocate 2.00 GiB\nTypeError: no\n";
  stderr_is("{\"text\": \"" + more_than_is_read + rest);
  EXPECT_EQ(end().outcome, Outcome::failed);
  stderr_is(more_than_is_read + "\n" + rest);
  EXPECT_EQ(end().outcome, Outcome::out_of_memory);
}

TEST_F(Classify, LinesThatPdshGaveAHostAreReadWithoutIt) {
  const std::string quoted = "worker-1:     if \"CUDA out of memory. Tried to allocate\" in str(error):\n";
  stderr_is("worker-1: Traceback (most recent call last):\nworker-1:   File \"train.py\", line 3, in <module>\n" +
            quoted + "worker-1: TypeError: no\nworker-2: RuntimeError: Connection closed by peer\n");
  facts_.hosts = {"worker-1", "worker-2"};
  EXPECT_EQ(end().outcome, Outcome::failed);
  EXPECT_EQ(end().reason, "exit status 1: TypeError: no");
  stderr_is("worker-1: RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\nworker-3: alone\n");
  EXPECT_EQ(end().outcome, Outcome::out_of_memory);
  EXPECT_EQ(end().last_line, "worker-3: alone") << "it is no host of this study";
}

TEST_F(Classify, SaysWhoseMemoryRanOut) {
  stderr_is("MemoryError\n");
  EXPECT_EQ(end().reason, "host memory ran out: MemoryError");
  EXPECT_TRUE(end().of_host);
  facts_.on_processors = true;
  EXPECT_FALSE(end().of_host) << "it is the device's memory";
  facts_.on_processors = false;
  stderr_is("MemoryError\nCUDA error: out of memory\n");
  EXPECT_EQ(end().reason, "CUDA error: out of memory") << "the device's message is more exact";
  EXPECT_FALSE(end().of_host);
  // No smaller batch cures it, so it is no bound on the batch.
  stderr_is("MemoryError\nnode-1:88:210 [3] NCCL WARN Failed to CUDA host alloc 10485760 bytes\n");
  EXPECT_EQ(end().outcome, Outcome::failed);
  EXPECT_THAT(end().reason, AllOf(StartsWith("host (pinned)"), HasSubstr("pin_memory: false"), HasSubstr("10485760")));
  EXPECT_FALSE(end().peak_above_bytes);
}

TEST_F(Classify, AScriptThatGoesOnAfterAShortageIsInDoubt) {
  facts_.exit = {0, 0};
  metrics_are(good_);
  EXPECT_FALSE(end().ran_short);
  write_text(dir() / kStdoutFile, "skipped a batch: CUDA out of memory. Tried to allocate 2.00 GiB\n");
  EXPECT_EQ(end().outcome, Outcome::completed);
  EXPECT_TRUE(end().ran_short);
  EXPECT_THAT(end().warnings, ElementsAre(AllOf(HasSubstr("memory ran out"), HasSubstr("2.00 GiB"))));
  facts_.exit = {1, 0};
  EXPECT_TRUE(end().ran_short) << "after its result, perhaps: but it does not run";
  facts_.exit = {0, 0};
  write_text(dir() / kStdoutFile, "{\"text\": \"CUDA out of memory. Tried to allocate 2.00 GiB\"}\n");
  EXPECT_FALSE(end().ran_short) << "data";
  write_text(dir() / kStdoutFile, "RuntimeError: cudaHostAlloc failed: out of memory\n");
  EXPECT_FALSE(end().ran_short) << "the batch is the same without pinned memory";
}

TEST_F(Classify, AKillThatALauncherReportsIsAKill) {
  const std::string table = "Root Cause (first observed failure):\n[0]:\n  rank      : 3 (local_rank: 3)\n";
  for (const std::string& text : {table + "  exitcode  : -9 (pid: 7)\n",
                                  std::string("[launch.py:325:sigkill_handler] [] exits with return code = -9\n")}) {
    stderr_is("torch.distributed.elastic: failed (exitcode: -9) local_rank: 3 (pid: 7)\n" + text);
    EXPECT_THAT(end().reason, AllOf(HasSubstr("signal 9 (Killed)"), HasSubstr("not by dsat-host"))) << text;
    EXPECT_TRUE(end().infrastructure) << "once may be chance";
    facts_.kernel_oom_kills = true;
    EXPECT_EQ(end().outcome, Outcome::out_of_memory) << text;
    facts_.kernel_oom_kills = false;
  }
  // torchrun kills the ranks that outlive the first failure.
  stderr_is("ValueError: mine\nfailed (exitcode: 1) local_rank: 0 (pid: 6)\nFailures:\n[1]:\n  exitcode  : -9\n" +
            table + "  exitcode  : 1 (pid: 6)\n");
  EXPECT_EQ(end().reason, "exit status 1: ValueError: mine");
  EXPECT_FALSE(end().infrastructure);
}

// As torch 2.6 of Debian 13 says it.
TEST_F(Classify, ATorchWithoutLibuvIsNamedWithItsRemedy) {
  const std::string message = "RuntimeError: use_libuv was requested but PyTorch was build without libuv support\n";
  const std::string folder = "  File \"/usr/lib/python3/dist-packages/torch/distributed/";
  stderr_is("Traceback (most recent call last):\n  File \"t.py\", line 9, in <module>\n" + folder +
            "rendezvous.py\", line 278, in _env_rendezvous_handler\n" + message);
  EXPECT_EQ(end().reason, "this torch has no libuv: put USE_LIBUV=0 in front of the command (exit status 1)");
  stderr_is("Traceback (most recent call last):\n  File \"/usr/bin/torchrun\", line 8, in <module>\n" + folder +
            "elastic/rendezvous/static_tcp_rendezvous.py\", line 67, in next_rendezvous\n" + message);
  EXPECT_THAT(end().reason, AllOf(HasSubstr("which torchrun wants"), HasSubstr("--rdzv-conf store_type=file")));
}

}  // namespace
}  // namespace dsat::host
