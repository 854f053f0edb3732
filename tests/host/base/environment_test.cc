// Variables of an environment by name, and the search for a program as a shell does it.
#include "dsat/host/environment.h"

#include <gmock/gmock.h>

#include "host/runner/support.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using FindProgram = TempDirTest;

TEST(Environment, SetsAndReplacesByWholeName) {
  Environment environment{"PATHS=x", "PATH=/bin", "EMPTY=", "PATH=/again"};
  EXPECT_EQ(get_variable(environment, "PATH"), "/bin");
  EXPECT_EQ(get_variable(environment, "EMPTY"), "");
  EXPECT_EQ(get_variable(environment, "NONE"), std::nullopt);
  set_variable(environment, "PATH", "/usr/bin");
  EXPECT_EQ(environment, (Environment{"PATHS=x", "EMPTY=", "PATH=/usr/bin"}));
}

TEST_F(FindProgram, LooksThroughPathAndSkipsWhatCannotRun) {
  for (const char* folder : {"a", "b", "c"}) std::filesystem::create_directories(dir() / folder);
  write_text(dir() / "a" / "train", "no program");
  std::filesystem::create_directories(dir() / "b" / "train");
  write_program(dir() / "c" / "train", "#!/bin/sh\n");
  const Environment environment{"PATH=" + (dir() / "a").string() + ":b:" + (dir() / "c").string()};
  const auto found = find_program("train", dir(), environment);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found.value(), dir() / "c" / "train");
}

TEST_F(FindProgram, APathIsRelativeToTheCommandsFolder) {
  write_program(dir() / "train", "#!/bin/sh\n");
  EXPECT_TRUE(find_program("./train", dir(), {"PATH=/nowhere"}).ok());
  EXPECT_TRUE(find_program((dir() / "train").string(), "/", {}).ok());
}

TEST_F(FindProgram, SaysWhatIsWrong) {
  write_text(dir() / "train.py", "");
  const Environment environment{"PATH=" + dir().string()};
  const auto message = [&](const std::string& name, const Environment& variables) {
    const auto found = find_program(name, dir(), variables);
    EXPECT_EQ(found.status().code(), Status::Code::invalid);
    return found.status().message();
  };
  EXPECT_THAT(message("./train.py", environment), HasSubstr("not executable"));
  EXPECT_THAT(message("train.py", environment), HasSubstr("not executable"));
  EXPECT_THAT(message("train.py", {"PATH=/nowhere"}), HasSubstr("'./train.py'"));
  EXPECT_THAT(message("./missing", environment), AllOf(HasSubstr("no such file"), HasSubstr(dir().string())));
  EXPECT_THAT(message("missing", environment), HasSubstr("in PATH"));
  EXPECT_THAT(message("./.", environment), HasSubstr("folder"));
  EXPECT_THAT(message("", environment), HasSubstr("empty"));
}

}  // namespace
}  // namespace dsat::host
