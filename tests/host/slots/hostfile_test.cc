// Hostfiles and node filters in DeepSpeed's syntax, and the names of this host.
#include "slots/hostfile.h"

#include <gmock/gmock.h>

#include "host/runner/support.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Hostfile : public TempDirTest {
 protected:
  std::vector<HostEntry> read(const std::string& text) {
    write_text(dir() / "hosts", text);
    return read_hostfile(dir() / "hosts");
  }
  std::string why_not(const std::string& text) {
    return error_of([&] { read(text); });
  }
  std::string at(int line) const { return (dir() / "hosts").string() + ":" + std::to_string(line) + ": "; }
};

TEST_F(Hostfile, ReadsHostsWithCommentsAndBlankLines) {
  const auto hosts =
      read("# the pool\n\nworker-1 slots=4\r\n  10.0.0.2\tslots=2  # half\nworker-3 slots=8 max_slots=8\n");
  ASSERT_EQ(hosts.size(), 3u);
  EXPECT_EQ(hosts[0].name, "worker-1");
  EXPECT_EQ(hosts[0].slots, 4);
  EXPECT_EQ(hosts[1].name, "10.0.0.2");
  EXPECT_EQ(hosts[1].line, 4);
  EXPECT_EQ(hosts[2].slots, 8);
}

TEST_F(Hostfile, AByteOrderMarkIsNoPartOfAName) {
  EXPECT_EQ(read("\xEF\xBB\xBFworker-1 slots=4\n")[0].name, "worker-1");
}

TEST_F(Hostfile, AUserIsAPartOfTheNameAndTheMachineIsWhatFollows) {
  const auto hosts = read("ann@w1 slots=2\nw2 slots=2\n");
  EXPECT_EQ(hosts[0].name, "ann@w1");
  EXPECT_TRUE(names_a_user(hosts[0].name));
  EXPECT_FALSE(names_a_user(hosts[1].name));
  EXPECT_TRUE(is_this_machine("ann@localhost"));
  EXPECT_FALSE(is_this_machine("localhost@w1"));
  EXPECT_THAT(why_not("ann@w1 slots=2\nben@w1 slots=2\n"), HasSubstr("host ben@w1 is on line 1"));
}

TEST_F(Hostfile, RefusesWithFileAndLine) {
  EXPECT_THAT(why_not("a slots=2\n\na slots=4\n"), AllOf(HasSubstr(at(3) + "host a "), HasSubstr("line 1")));
  EXPECT_THAT(why_not("a slots=0\n"), HasSubstr(at(1) + "a has slots=0"));
  EXPECT_THAT(why_not("a slots=99999999999\n"), HasSubstr(at(1) + "a has slots=99999999999"));
  for (const char* line :
       {"a", "a 4", "a slots", "a slots=", "a slots=four", "a slots=-1", "a slots=2x", "a slots = 2", "slots=4",
        "a slots=2 b", "a:1 slots=2", "a@b@c slots=2", "@b slots=2", "a@ slots=2", "-oProxyCommand=x slots=2",
        "\x01\x02"}) {
    EXPECT_THAT(why_not("b slots=1\n" + std::string(line) + "\n"), HasSubstr(at(2))) << line;
  }
}

TEST_F(Hostfile, RefusesAFileWithoutHosts) {
  EXPECT_THAT(why_not(""), HasSubstr("names no host"));
  EXPECT_THAT(why_not("# nothing\n"), HasSubstr("names no host"));
  EXPECT_THAT(error_of([&] { read_hostfile(dir() / "none"); }), HasSubstr("cannot be read"));
  EXPECT_THAT(error_of([&] { read_hostfile(dir()); }), HasSubstr("is a folder"));
}

TEST(NodeFilters, ReadsDeepSpeedsSyntax) {
  const auto filters = parse_node_filters("worker-0@worker-1:0,2", "--include");
  ASSERT_EQ(filters.size(), 2u);
  EXPECT_EQ(filters[0].host, "worker-0");
  EXPECT_THAT(filters[0].slots, IsEmpty());
  EXPECT_THAT(filters[1].slots, ElementsAre("0", "2"));
  for (const char* text : {"", "@", "a@", ":0", "a:", "a:0,", "a:,1", "a b", "a:0@@b"}) {
    EXPECT_THAT(error_of([&] { parse_node_filters(text, "--exclude"); }), HasSubstr("--exclude '")) << text;
  }
}

TEST(ThisMachine, HasMoreThanOneName) {
  EXPECT_TRUE(is_this_machine("localhost"));
  EXPECT_TRUE(is_this_machine("127.0.0.1"));
  EXPECT_FALSE(is_this_machine("worker-9.example"));
}

}  // namespace
}  // namespace dsat::host
