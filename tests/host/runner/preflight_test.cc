// What is checked of other hosts before the first trial; ssh is a program that the test puts into PATH.
#include "runner/preflight.h"

#include <gmock/gmock.h>

#include "host/runner/support.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Preflight : public TempDirTest {
 protected:
  Preflight() {
    write_text(dir() / "hosts", "localhost slots=1\n\nw1 slots=2\nw2 slots=2\n");
    write_program(dir() / "deepspeed", "#!/bin/sh\n");
    // Notes what it was asked, and answers for each host as the test says.
    ssh("exec sh -c \"$command\"");
    write_program(dir() / "pdsh", "#!/bin/sh\n");
    environment_ = {"PATH=" + dir().string() + ":/usr/bin:/bin"};
  }
  void ssh(const std::string& answer) {
    write_program(dir() / "ssh",
                  "#!/bin/sh\nwhile [ $# -gt 2 ]; do shift 2; done\nhost=$1 command=$2\necho \"$host $command\" >> " +
                      (dir() / "asked").string() + "\n" + answer + "\n");
  }
  // "no error": every host is ready.
  std::string trouble(const Argv& launcher_options = {}, std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
    Argv argv{"deepspeed"};
    argv.insert(argv.end(), launcher_options.begin(), launcher_options.end());
    argv.insert(argv.end(), {"t.py", "--deepspeed_config", "a.json"});
    const CommandTemplate command({argv, {}, {}, dir(), environment_});
    SlotRequest request{};
    request.hostfile = dir() / "hosts";
    const SlotPlan slots = plan_slots({}, request);
    return error_of([&] { check_hosts({slots, command, environment_, dir(), dir() / "results" / "run", timeout}); });
  }
  Environment environment_;
};

TEST_F(Preflight, AsksEveryOtherHostForTheFolders) {
  EXPECT_EQ(trouble(), "no error");
  const std::string asked = read_text(dir() / "asked");
  EXPECT_THAT(asked, HasSubstr("w1 test -d " + dir().string() + " && test -d " + dir().string()));
  EXPECT_THAT(asked, HasSubstr("w2 test"));
  EXPECT_EQ(asked.find("localhost"), std::string::npos);
}

TEST_F(Preflight, AnUnreachableHostIsNamedWithItsLine) {
  ssh("[ $host = w1 ] || { echo 'ssh: Could not resolve hostname w2: Name or service not known' >&2; exit 255; }");
  EXPECT_THAT(trouble(), AllOf(StartsWith((dir() / "hosts").string() + ":4: host w2 "),
                               HasSubstr("ssh: Could not resolve hostname w2")));
}

TEST_F(Preflight, AHostThatDoesNotSeeTheFoldersIsNamed) {
  ssh("exit 1");
  EXPECT_THAT(trouble(), AllOf(HasSubstr(":3: host w1 "), HasSubstr(dir().string())));
}

TEST_F(Preflight, AHostThatDoesNotAnswerIsWaitedForOnlySoLong) {
  ssh("exec sleep 600");
  EXPECT_THAT(trouble({}, std::chrono::milliseconds(50)), AllOf(HasSubstr("ssh"), HasSubstr("50 ms")));
}

TEST_F(Preflight, NamesTheToolThatIsMissing) {
  std::filesystem::remove(dir() / "pdsh");
  environment_ = {"PATH=" + dir().string()};
  EXPECT_THAT(trouble(), AllOf(HasSubstr("pdsh, "), HasSubstr("PATH"), HasSubstr("--launcher")));
  EXPECT_THAT(trouble({"--launcher", "openmpi"}), HasSubstr("mpirun"));
  write_program(dir() / "pdsh", "#!/bin/sh\n");
  std::filesystem::remove(dir() / "ssh");
  EXPECT_THAT(trouble(), AllOf(HasSubstr("ssh, "), HasSubstr("PATH")));
  EXPECT_EQ(trouble({"--no_ssh_check"}), "no error");
}

TEST_F(Preflight, OnOneMachineNothingIsNeeded) {
  write_text(dir() / "hosts", "localhost slots=4\n");
  environment_ = {"PATH=" + dir().string()};
  std::filesystem::remove(dir() / "pdsh");
  std::filesystem::remove(dir() / "ssh");
  EXPECT_EQ(trouble(), "no error");
}

}  // namespace
}  // namespace dsat::host
