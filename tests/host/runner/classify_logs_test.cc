// How lines of a trial's logs are read: one whose beginning is missing, and those before which pdsh wrote a host.
#include <gmock/gmock.h>

#include "host/runner/classify_fixture.h"

namespace dsat::host {
namespace {

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

}  // namespace
}  // namespace dsat::host
