// A port that is in use: which texts say so, whose choice the port was, and what that means for the trials beside it.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/runner/runner_fixture.h"
#include "runner/classify.h"
#include "runner/trial_files.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TakenPort : public TempDirTest {
 protected:
  TakenPort() {
    facts_.trial_dir = dir();
    facts_.config = {{"train_batch_size", 8}, {"gradient_accumulation_steps", 1}};
    facts_.exit = {1, 0};
  }
  void stderr_is(const std::string& text) { write_text(dir() / kStderrFile, text); }
  TrialEnd end() { return classify(facts_); }

  RunFacts facts_;
};

TEST_F(TakenPort, APortInUseCountsWhereTheRanksMeet) {
  for (const char* line : {"[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - "
                           "Address already in use).",
                           "torch.distributed.DistNetworkError: The server socket has failed to listen: EADDRINUSE, "
                           "address already in use",
                           "RuntimeError: Address already in use"}) {
    stderr_is(std::string(line) + "\n");
    EXPECT_TRUE(end().infrastructure) << line;
    EXPECT_EQ(end().outcome, Outcome::failed) << line;
  }
  stderr_is("metrics server on port 9090: [Errno 98] Address already in use; going on without it\nKeyError: 'x'\n");
  EXPECT_FALSE(end().infrastructure);
  EXPECT_EQ(end().reason, "exit status 1: KeyError: 'x'");
}

TEST_F(TakenPort, APortThatTheScriptChoseIsKnownByItsNumber) {
  facts_.port = 29617;
  stderr_is("[c10d] The server socket has failed to bind to [::]:29617 (errno: 98 - Address already in use).\n");
  EXPECT_FALSE(end().chose_port);
  EXPECT_EQ(end().reason, "its rendezvous port was taken by another program");
  for (const char* other : {"[::]:29500", "[::]:129617", "an address"}) {
    stderr_is(fmt::format("[c10d] The server socket has failed to bind to {} (Address already in use).\n", other));
    EXPECT_TRUE(end().infrastructure && end().chose_port) << other;
    EXPECT_EQ(end().reason, "a port that its script chose itself was taken by another program") << other;
  }
}

// The port is written in a file that no text of the command shows; another trial listens on it.
class OwnPort : public RunnerTest {
 protected:
  OwnPort() {
    write_text(dir() / "meet.py", R"(
import os, pathlib, socket, sys, time
listener = socket.socket()
port = pathlib.Path("port")
listener.bind(("127.0.0.1", int(port.read_text()) if port.exists() else 0))
listener.listen()
if not port.exists():
    pathlib.Path("port.new").write_text(str(listener.getsockname()[1]))
    os.rename("port.new", port)
while not os.path.exists("go"): time.sleep(0.01)
)");
    make_runner_for({"python3", "-S", "-E", "meet.py", "--deepspeed_config", "user.json"}, 3);
    runner_->on_notice = [this](const std::string& notice) { notices_.push_back(notice); };
    runner_->start(spec(0));
    wait_for_file(dir() / "port");
  }
  void go() { write_text(dir() / "go", "go"); }

  std::vector<std::string> notices_;
};

TEST_F(OwnPort, TrialsThatMeetThereRunOneAtATimeFromThenOn) {
  EXPECT_EQ(room(), 2);
  EXPECT_TRUE(run(spec(1)).chose_port) << ends_[1].reason;
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("one at a time from now on: the script of trial 1 chose its port")));
  EXPECT_EQ(room(), 0) << "trial 0 runs";
  go();
  EXPECT_FALSE(wait(0).infrastructure);
  EXPECT_EQ(room(), 1);
  ends_.clear();
  EXPECT_FALSE(run(spec(1)).infrastructure) << ends_[1].reason;
  EXPECT_EQ(notices_.size(), 1u);
}

// Another program's port: no trial is to blame, and room stays.
TEST_F(OwnPort, NobodyIsHeldBackWhereNoOtherTrialRuns) {
  go();
  wait(0);
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(read_text(dir() / "port"))));
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  EXPECT_TRUE(run(spec(1)).chose_port);
  EXPECT_EQ(room(), 3);
  EXPECT_THAT(notices_, IsEmpty());
  ::close(listener);
}

}  // namespace
}  // namespace dsat::host
