// The page of a build without the charts: text of scripts and users stays text.
#include "page/plain.h"

#include <gmock/gmock.h>

#include "page/page.h"

namespace dsat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kNasty = "</td><script>alert('x' & \"y\")</script>";
constexpr const char* kShown = "&lt;/td&gt;&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;";

TEST(HtmlEscaped, NothingOfATextIsMarkup) {
  EXPECT_EQ(html_escaped(kNasty), kShown);
  EXPECT_EQ(html_escaped("a\x1b[2Jb\n"), "a [2Jb\n") << "control characters are blanks";
}

TEST(PlainStudy, TextOfAnybodysIsShownAsItIs) {
  host::StudyFacts facts;
  facts.metric = "throughput";
  facts.record.study = {{"name", kNasty}};
  facts.record.reason = kNasty;
  host::TrialRecord trial;
  trial.note = kNasty;
  trial.reason = kNasty;
  trial.outcome = host::Outcome::failed;
  facts.record.trials.push_back(trial);
  facts.trials.emplace_back();
  facts.record.best = host::BestRecord{};
  facts.record.best->config = {{kNasty, kNasty}};
  facts.changes.push_back({kNasty, kNasty, kNasty});
  const std::string page = plain_page({&facts}, true);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr(std::string("<h1>") + kShown + "</h1>"));
  EXPECT_THAT(page, HasSubstr(std::string(kShown) + ": " + kShown + "</td>")) << "note and reason of the trial";
  EXPECT_THAT(page, HasSubstr("http-equiv=\"refresh\""));
  EXPECT_THAT(plain_page({&facts}, false), Not(HasSubstr("http-equiv=\"refresh\""))) << "a file is read once";
}

}  // namespace
}  // namespace dsat::cli
