// Children that are started, watched and ended: what they inherit, how their ends are known. /bin/sh is the child.
#include "base/subprocess.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "dsat/host/environment.h"
#include "host/runner/support.h"

namespace dsat::host {
namespace {

using ::testing::HasSubstr;

class SubprocessTest : public TempDirTest {
 protected:
  SpawnOptions shell(const std::string& script) {
    SpawnOptions options;
    options.argv = {"/bin/sh", "-c", script};
    options.environment = {"PATH=/usr/bin:/bin", "GREETING=hello"};
    options.cwd = dir();
    options.stdout_file = dir() / "out";
    options.stderr_file = dir() / "err";
    return options;
  }
  ExitStatus run(const SpawnOptions& options) {
    std::optional<ExitStatus> ended;
    auto child = Subprocess::spawn(loop_, options, [&](const ExitStatus& status) { ended = status; });
    run_until(loop_, [&] { return ended.has_value(); });
    return ended.value_or(ExitStatus{});
  }
  Loop loop_;
};

TEST_F(SubprocessTest, KeepsExitCodeAndSignalApart) {
  ExitStatus status = run(shell("exit 7"));
  EXPECT_EQ(status.code, 7);
  EXPECT_EQ(status.signal, 0);
  status = run(shell("kill -TERM $$"));
  EXPECT_EQ(status.code, -1);
  EXPECT_EQ(status.signal, SIGTERM);
}

TEST_F(SubprocessTest, GivesFolderEnvironmentAndFiles) {
  run(shell("echo $GREETING; pwd; echo oops >&2; cat"));  // cat ends at once: stdin is empty
  EXPECT_EQ(read_text(dir() / "out"), "hello\n" + dir().string() + "\n");
  EXPECT_EQ(read_text(dir() / "err"), "oops\n");
}

TEST_F(SubprocessTest, StartsWithEmptyFilesAndASessionOfItsOwn) {
  write_text(dir() / "out", "a long text of an earlier run");
  run(shell("ps -o sid= -p $$ | tr -d ' '; echo $$"));
  const std::string out = read_text(dir() / "out");
  const size_t line = out.find('\n');
  EXPECT_EQ(out.substr(0, line + 1), out.substr(line + 1)) << out;
}

TEST_F(SubprocessTest, InheritsNoDescriptors) {
  const int leak = open("/usr", O_RDONLY | O_DIRECTORY);  // without close-on-exec, as libraries open theirs
  run(shell("for fd in /proc/$$/fd/*; do readlink $fd; done"));
  close(leak);
  const std::string out = read_text(dir() / "out");
  EXPECT_NE(out.find("/dev/null\n"), std::string::npos) << out;
  EXPECT_EQ(out.find("/usr\n"), std::string::npos) << out;
}

TEST_F(SubprocessTest, ReportsWhatCannotBeStarted) {
  const auto message = [&](const SpawnOptions& options) {
    return error_of([&] { Subprocess::spawn(loop_, options, [](const ExitStatus&) {}); }, DSAT_INTERNAL);
  };
  SpawnOptions options = shell("true");
  options.argv[0] = "/no/such/program";
  EXPECT_THAT(message(options), HasSubstr("/no/such/program"));
  EXPECT_THAT(message(options), HasSubstr("No such file"));
  options = shell("true");
  options.cwd = dir() / "missing";
  EXPECT_THAT(message(options), HasSubstr("missing"));
  options = shell("true");
  options.stdout_file = dir() / "missing" / "out";
  EXPECT_THAT(message(options), HasSubstr("/bin/sh"));
}

TEST_F(SubprocessTest, DestroyingItEndsTheChild) {
  pid_t pid = 0;
  {
    auto child = Subprocess::spawn(loop_, shell("exec sleep 600"), [](const ExitStatus&) { FAIL(); });
    pid = child->pid();
    EXPECT_TRUE(is_alive(pid));
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST_F(SubprocessTest, MayBeDestroyedInItsOwnCallback) {
  bool ended = false;
  std::unique_ptr<Subprocess> child = Subprocess::spawn(loop_, shell("true"), [&](const ExitStatus&) {
    child.reset();
    ended = true;
  });
  run_until(loop_, [&] { return ended; });
  EXPECT_EQ(child, nullptr);
}

TEST_F(SubprocessTest, WaitForEndsWithTheChildAndSilencesTheCallback) {
  auto child = Subprocess::spawn(loop_, shell("exec sleep 600"), [](const ExitStatus&) { FAIL(); });
  EXPECT_FALSE(child->has_ended());
  EXPECT_FALSE(child->wait_for(std::chrono::milliseconds(1)));
  child->signal(SIGKILL);
  EXPECT_TRUE(child->wait_for(std::chrono::seconds(60)));
  EXPECT_TRUE(child->has_ended());
  child->signal(SIGKILL);  // to nobody
}

}  // namespace
}  // namespace dsat::host
