#include "slots/hostfile.h"

#include <gmock/gmock.h>

#include "host/runner/support.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Hostfile : public TempDirTest {
 protected:
  Result<std::vector<HostEntry>> read(const std::string& text) {
    write_text(dir() / "hosts", text);
    return read_hostfile(dir() / "hosts");
  }
  std::string error_of(const std::string& text) {
    const auto hosts = read(text);
    EXPECT_EQ(hosts.status().code(), Status::Code::invalid) << text;
    EXPECT_EQ(hosts.status().message().find('\n'), std::string::npos);
    return hosts.status().message();
  }
  std::string at(int line) const { return (dir() / "hosts").string() + ":" + std::to_string(line) + ": "; }
};

TEST_F(Hostfile, ReadsHostsWithCommentsAndBlankLines) {
  const auto hosts =
      read("# the pool\n\nworker-1 slots=4\r\n  10.0.0.2\tslots=2  # half\nworker-3 slots=8 max_slots=8\n");
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  ASSERT_EQ(hosts->size(), 3u);
  EXPECT_EQ(hosts.value()[0].name, "worker-1");
  EXPECT_EQ(hosts.value()[0].slots, 4);
  EXPECT_EQ(hosts.value()[1].name, "10.0.0.2");
  EXPECT_EQ(hosts.value()[1].line, 4);
  EXPECT_EQ(hosts.value()[2].slots, 8);
}

TEST_F(Hostfile, RefusesWithFileAndLine) {
  EXPECT_THAT(error_of("a slots=2\n\na slots=4\n"), HasSubstr(at(3) + "host a is on line 1 already"));
  EXPECT_THAT(error_of("a slots=0\n"), HasSubstr(at(1) + "a has slots=0"));
  EXPECT_THAT(error_of("a slots=99999999999\n"), HasSubstr(at(1) + "a has slots=99999999999"));
  for (const char* line :
       {"a", "a 4", "a slots", "a slots=", "a slots=four", "a slots=-1", "a slots=2x", "a slots = 2", "slots=4",
        "a slots=2 b", "a:1 slots=2", "a@b slots=2", "-oProxyCommand=x slots=2", "\x01\x02"}) {
    EXPECT_THAT(error_of("b slots=1\n" + std::string(line) + "\n"), HasSubstr(at(2))) << line;
  }
}

TEST_F(Hostfile, RefusesAFileWithoutHosts) {
  EXPECT_THAT(error_of(""), HasSubstr("names no host"));
  EXPECT_THAT(error_of("# nothing\n"), HasSubstr("names no host"));
  EXPECT_THAT(read_hostfile(dir() / "none").status().message(), HasSubstr("cannot be read"));
  EXPECT_THAT(read_hostfile(dir()).status().message(), HasSubstr("is a folder"));
}

TEST(NodeFilters, ReadsDeepSpeedsSyntax) {
  const auto filters = parse_node_filters("worker-0@worker-1:0,2", "--include");
  ASSERT_TRUE(filters.ok());
  ASSERT_EQ(filters->size(), 2u);
  EXPECT_EQ(filters.value()[0].host, "worker-0");
  EXPECT_THAT(filters.value()[0].slots, IsEmpty());
  EXPECT_THAT(filters.value()[1].slots, ElementsAre("0", "2"));
  for (const char* text : {"", "@", "a@", ":0", "a:", "a:0,", "a:,1", "a b", "a:0@@b"}) {
    EXPECT_THAT(parse_node_filters(text, "--exclude").status().message(), HasSubstr("--exclude '")) << text;
  }
}

TEST(ThisMachine, HasMoreThanOneName) {
  EXPECT_TRUE(is_this_machine("localhost"));
  EXPECT_TRUE(is_this_machine("127.0.0.1"));
  EXPECT_FALSE(is_this_machine("worker-9.example"));
}

}  // namespace
}  // namespace dsat::host
