// Losses and gradient norms from files and lines, right and wrong ones.
#include "outputs/curve.h"

#include <gmock/gmock.h>
#include <re2/re2.h>

#include <cmath>
#include <limits>

#include "host/runner/support.h"
#include "outputs/log_lines.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Values = std::vector<std::optional<double>>;

TEST(CurveTest, AJournalKeepsWhatJsonHasNoNumberFor) {
  const double inf = std::numeric_limits<double>::infinity();
  const Curve curve{{2.5, std::nullopt, std::nan("")}, {inf, -inf}};
  const Json json = to_json(curve);
  EXPECT_EQ(json.dump(), R"({"losses":[2.5,null,"nan"],"grad_norms":["inf","-inf"]})");
  const Curve read = curve_from_json(json);
  ASSERT_THAT(read.losses, SizeIs(3));
  EXPECT_EQ(read.losses[0], 2.5);
  EXPECT_EQ(read.losses[1], std::nullopt);
  EXPECT_TRUE(std::isnan(*read.losses[2]));
  EXPECT_THAT(read.grad_norms, ElementsAre(Optional(inf), Optional(-inf)));
  EXPECT_TRUE(to_json(Curve()).is_null());
  EXPECT_TRUE(curve_from_json(Json()).empty());
}

TEST(CurveTest, WhatIsNoListOfNumbersGivesNothing) {
  EXPECT_TRUE(curve_from_json({{"losses", 3}, {"grad_norms", {{"a", 1}}}}).empty());
  EXPECT_EQ(curve_from_json({{"losses", {1, true, "x", Json::array(), "1e3"}}}).losses,
            (Values{1, std::nullopt, std::nullopt, std::nullopt, 1000}));
  EXPECT_THAT(curve_from_json({{"losses", Json(std::vector<double>(10000, 1.0))}}).losses, SizeIs(kMostCurveSteps));
}

class CurveFile : public TempDirTest {
 protected:
  Curve read(const std::string& text) {
    warnings_.clear();
    write_text(dir() / "steps.json", text);
    return read_curve_file(dir() / "steps.json", warnings_);
  }
  std::vector<std::string> warnings_;
};

TEST_F(CurveFile, AFileThatIsNoneIsOneWarning) {
  EXPECT_EQ(read(R"({"losses": [1, 2], "grad_norms": [null, 3]})").grad_norms, (Values{std::nullopt, 3}));
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_TRUE(read("{\"losses\": [1, NaN").empty());
  EXPECT_THAT(warnings_, ElementsAre(AllOf(StartsWith("losses and gradient norms are left out"), HasSubstr("steps"))));
  EXPECT_TRUE(read("[1]").empty());
  EXPECT_TRUE(read(std::string(2 << 20, ' ')).empty());
  EXPECT_THAT(warnings_, SizeIs(1));
  std::vector<std::string> none;
  EXPECT_TRUE(read_curve_file(dir() / "no.json", none).empty());
  EXPECT_THAT(none, IsEmpty());
}

Values numbers(const std::vector<std::string>& lines, const std::string& pattern,
               std::vector<std::string>* warnings = nullptr) {
  std::vector<std::string> ignored;
  return numbers_in(lines, *compiled_number_pattern("--loss-pattern", pattern), "--loss-pattern",
                    warnings != nullptr ? *warnings : ignored);
}

TEST(CurveLines, AGroupIsTheNumberOfAStep) {
  EXPECT_EQ(numbers({"begin", "step 1 loss: 2.5", "eval: 9", "step 2 loss: +1e-3", "{'loss': 7}"}, "loss: (\\S+)"),
            (Values{2.5, 1e-3}));
  const Values odd = numbers({"loss: nan", "loss: -inf"}, "loss: (\\S+)");
  ASSERT_THAT(odd, SizeIs(2));
  EXPECT_TRUE(std::isnan(*odd[0]) && std::isinf(*odd[1]));
}

TEST(CurveLines, ThousandsMayBeGroupedAndOtherRanksDoNotCount) {
  EXPECT_EQ(numbers({"[rank0]:tps: 12,345.5", "[rank1]:tps: 1", "[default12]: tps: 2", "[default0]: tps: 1,000"},
                    "tps: ([0-9.,]+)"),
            (Values{12345.5, 1000}));
}

TEST(CurveLines, AGroupThatIsNoNumberIsOneWarning) {
  std::vector<std::string> warnings;
  EXPECT_EQ(numbers({"loss: n/a", "loss: 2,5", "loss: 3"}, "loss: (\\S+)", &warnings),
            (Values{std::nullopt, std::nullopt, 3}));
  EXPECT_THAT(warnings, ElementsAre(AllOf(StartsWith("--loss-pattern"), HasSubstr("'n/a'"))));
}

TEST(CurveLines, RefusesAPatternWithoutAGroup) {
  const auto why = [](const char* pattern) {
    return error_of([&] { compiled_number_pattern("--grad-norm-pattern", pattern); });
  };
  EXPECT_THAT(why("norm: \\d+"), AllOf(StartsWith("--grad-norm-pattern 'norm"), HasSubstr("no group")));
  EXPECT_THAT(why("(norm): (\\d+)"), HasSubstr("several groups"));
  EXPECT_THAT(why("(a"), HasSubstr("parentheses"));
  EXPECT_EQ(why("(?:norm|gn): (\\d+)"), "no error");
}

}  // namespace
}  // namespace dsat::host
