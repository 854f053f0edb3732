// A port that is in use: which texts say so, whose choice the port was, and what that means for the trials beside it.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/runner/classify_fixture.h"
#include "host/runner/runner_fixture.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Taken : public Classify {};

TEST_F(Taken, APortInUseCountsWhereTheRanksMeet) {
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

TEST_F(Taken, APortThatTheScriptChoseIsKnownByItsNumber) {
  facts_.port = 29617;
  const auto named = [&](const char* text) {
    stderr_is(fmt::format("[W socket.cpp:4426] [c10d] {} (errno: 98 - Address already in use).\n", text));
    EXPECT_TRUE(end().infrastructure) << text;
    return end().taken_port;
  };
  EXPECT_EQ(named("The server socket has failed to bind to [::]:29617"), TakenPort::given);
  EXPECT_THAT(end().reason, HasSubstr("rendezvous port"));
  EXPECT_EQ(named("failed to listen. port: 29617, useIpv6: false"), TakenPort::given);
  for (const char* other : {"The server socket has failed to bind to [::]:29500", "127.0.0.1:12355", "port: 29500,",
                            "localhost:29500", "('127.0.0.1', 29500)"}) {
    EXPECT_EQ(named(other), TakenPort::chosen) << other;
    EXPECT_THAT(end().reason, HasSubstr("script chose")) << other;
  }
  EXPECT_EQ(named("The server socket has failed to listen"), TakenPort::unnamed);
  EXPECT_THAT(end().reason, HasSubstr("rendezvous port"));
  stderr_is("KeyError: 'port 29500'\n");
  EXPECT_EQ(end().taken_port, TakenPort::none);
}

// The port is written in a file that no text of the command shows; another trial listens on it.
class OwnPort : public RunnerTest {
 protected:
  OwnPort() {
    write_text(dir() / "meet.py", R"(
import os, pathlib, socket, sys, time
listener = socket.socket()
port = pathlib.Path("port")
try:
    listener.bind(("127.0.0.1", int(port.read_text()) if port.exists() else 0))
except OSError as error:
    named = "" if os.path.exists("unnamed") else " at port: " + port.read_text()
    sys.exit(f"OSError: {error}{named}")
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
  EXPECT_EQ(run(spec(1)).taken_port, TakenPort::chosen) << ends_[1].reason;
  EXPECT_THAT(notices_,
              ElementsAre(AllOf(HasSubstr("one at a time"), HasSubstr("trial 1 "), HasSubstr("MASTER_PORT"))));
  EXPECT_EQ(room(), 0) << "trial 0 runs";
  go();
  EXPECT_FALSE(wait(0).infrastructure);
  EXPECT_EQ(room(), 1);
  ends_.clear();
  EXPECT_FALSE(run(spec(1)).infrastructure) << ends_[1].reason;
  EXPECT_EQ(notices_.size(), 1u);
}

TEST_F(OwnPort, OneMessageWithoutItsNumberMayBeChance) {
  write_text(dir() / "unnamed", "yes");
  EXPECT_EQ(run(spec(1)).taken_port, TakenPort::unnamed) << ends_[1].reason;
  EXPECT_EQ(room(), 2);
  run(spec(2));
  EXPECT_EQ(room(), 0);
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
  EXPECT_EQ(run(spec(1)).taken_port, TakenPort::chosen);
  EXPECT_EQ(room(), 3);
  EXPECT_THAT(notices_, IsEmpty());
  ::close(listener);
}

}  // namespace
}  // namespace dsat::host
