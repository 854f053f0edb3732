// What a plugin hands the host is refused where it makes no sense, and nothing of it does harm.
#include "plugin/service_table.h"

#include <gmock/gmock.h>

#include <thread>

#include "plugin/request_limits.h"

namespace dsat::host {
namespace {

using ::testing::HasSubstr;

struct Granted : RequestAnswers {
  std::optional<uint64_t> create_trial(const Op&) override { return given++; }
  uint64_t next_id() const override { return given; }
  uint64_t given = 0;
};

class ServiceTableTest : public ::testing::Test {
 protected:
  ServiceTableTest()
      : table_(ServiceTable::make([this](int, std::string_view line) { lines_.emplace_back(line); }, false)) {}
  ~ServiceTableTest() override { table_.close(); }

  dsat_status ask(const std::string& overrides, const std::string& note = "") {
    const dsat_trial_request request{sizeof(dsat_trial_request), 0, DSAT_NO_TRIAL, detail::str(overrides),
                                     detail::str(note)};
    return host().create_trial(&host(), &request, &id_);
  }
  const dsat_host& host() const { return *table_.abi(); }

  ServiceTable& table_;
  Granted answers_;
  dsat_trial_id id_ = DSAT_NO_TRIAL;
  std::vector<std::string> lines_;
};

TEST_F(ServiceTableTest, NullArgumentsAreRefused) {
  const dsat_str dangling{nullptr, 7};
  const dsat_trial_request request{sizeof(dsat_trial_request), 0, DSAT_NO_TRIAL, dangling, dangling};
  table_.begin_call(&answers_);
  EXPECT_EQ(host().create_trial(nullptr, &request, &id_), DSAT_INVALID_ARGUMENT);
  EXPECT_EQ(host().create_trial(&host(), nullptr, &id_), DSAT_INVALID_ARGUMENT);
  EXPECT_EQ(host().create_trial(&host(), &request, nullptr), DSAT_INVALID_ARGUMENT);
  EXPECT_EQ(host().create_trial(&host(), &request, &id_), DSAT_INVALID_ARGUMENT);
  EXPECT_THAT(table_.take_error(), HasSubstr("overrides_json is NULL"));
  host().log(&host(), 1, dangling);
  host().set_error(&host(), dangling);
  host().log(nullptr, 1, dangling);
  host().set_error(nullptr, dangling);
  EXPECT_TRUE(table_.take_ops().empty());
}

// A plugin says what it was about, the host what was wrong: a person reads both, and neither twice.
TEST_F(ServiceTableTest, ARefusalIsAddedToWhatThePluginSays) {
  const auto error_with = [&](const std::string& text) {
    table_.begin_call(&answers_);
    ask("{");
    host().set_error(&host(), detail::str(text));
    return table_.take_error();
  };
  const std::string refusal = error_with("");
  ASSERT_THAT(refusal, HasSubstr("create_trial: "));
  EXPECT_EQ(error_with("no first trial"), "no first trial (" + refusal + ")");
  EXPECT_EQ(error_with("no first trial: " + refusal), "no first trial: " + refusal);
  table_.begin_call(&answers_);
  host().set_error(&host(), detail::str(std::string("no first trial")));
  EXPECT_EQ(table_.take_error(), "no first trial") << "nothing was refused";
}

TEST_F(ServiceTableTest, JsonThatIsTooDeepOrTooLargeIsRefusedBeforeItIsParsed) {
  table_.begin_call(&answers_);
  std::string deep;
  for (int i = 0; i < 40000; ++i) deep += "{\"a\":";
  EXPECT_EQ(ask(deep + "1" + std::string(40000, '}')), DSAT_INVALID_ARGUMENT);
  EXPECT_THAT(table_.take_error(), HasSubstr("100 deep"));
  EXPECT_EQ(ask("{\"a\": \"" + std::string(2 << 20, '[') + "\"}"), DSAT_INVALID_ARGUMENT);
  EXPECT_THAT(table_.take_error(), HasSubstr("more than 1048576"));
  EXPECT_EQ(ask("{\"a\": \"" + std::string(1000, '[') + "\"}"), DSAT_OK) << "brackets in a string are text";
}

TEST_F(ServiceTableTest, ThereIsALimitToTheOpsOfOneEvent) {
  table_.begin_call(&answers_);
  for (size_t i = 0; i < kMaxOpsPerEvent; ++i) ASSERT_EQ(ask("{}"), DSAT_OK);
  EXPECT_EQ(ask("{}"), DSAT_RESOURCE_EXHAUSTED);
  table_.end_call();
  table_.begin_call(&answers_);
  EXPECT_EQ(ask("{}"), DSAT_OK) << "the next event has its own";
}

TEST_F(ServiceTableTest, AnOpFromAnotherThreadOrOutsideOfACallIsRefused) {
  EXPECT_EQ(ask("{}"), DSAT_FAILED_PRECONDITION);
  table_.begin_call(&answers_);
  dsat_status elsewhere = DSAT_OK;
  std::thread([&] { elsewhere = ask("{}"); }).join();
  EXPECT_EQ(elsewhere, DSAT_FAILED_PRECONDITION);
  EXPECT_THAT(lines_.back(), HasSubstr("another thread"));
  table_.end_call();
  table_.begin_call(nullptr);
  EXPECT_EQ(ask("{}"), DSAT_FAILED_PRECONDITION);
  EXPECT_THAT(table_.take_error(), HasSubstr("outside an event"));
}

TEST_F(ServiceTableTest, AfterCloseEverythingIsRefused) {
  table_.close();
  host().log(&host(), 1, {"late", 4});
  EXPECT_EQ(ask("{}"), DSAT_FAILED_PRECONDITION);
  EXPECT_TRUE(lines_.empty());
}

TEST_F(ServiceTableTest, TextsBecomeOnePrintableLine) {
  table_.begin_call(&answers_);
  ASSERT_EQ(ask("{}", "two\nlines \x1b[2J\xff" + std::string(100000, 'x')), DSAT_OK);
  const std::string note = table_.take_ops().at(0).note;
  EXPECT_THAT(note, ::testing::StartsWith("two lines"));
  EXPECT_EQ(note.find('\x1b'), std::string::npos);
  EXPECT_LT(note.size(), kMaxLineBytes + 100);
}

TEST_F(ServiceTableTest, AFloodOfLogLinesIsCutOff) {
  table_.begin_call(&answers_);
  for (size_t i = 0; i < 3 * kMaxLogLines; ++i) host().log(&host(), 0, {"again", 5});
  EXPECT_EQ(lines_.size(), kMaxLogLines + 1);
  EXPECT_THAT(lines_.back(), HasSubstr("left out"));
}

}  // namespace
}  // namespace dsat::host
