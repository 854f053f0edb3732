// What -o must not overwrite.
#include "commands/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/temp_dir.h"

namespace dsat::cli {
namespace {

using ::testing::HasSubstr;

std::string why_not_written(const std::filesystem::path& dir, const std::string& within, bool takes_page = false) {
  return error_of([&] { refuse_files_of_the_study(dir, dir / within, takes_page); });
}

TEST(OutputFile, IsNoneOfTheStudysOwn) {
  const TempDir run;
  for (const char* own :
       {"dsat.db", "dsat.db-wal", "dsat.plan.json", "experiment.json", "deepspeed.json", "best_ds_config.json",
        "summary.txt", "report.html", "trials/3/metrics.json", "a/../trials"}) {
    EXPECT_THAT(why_not_written(run.path(), own), HasSubstr("-o ")) << own;
  }
}

TEST(OutputFile, MayLieBesideThem) {
  const TempDir run;
  EXPECT_EQ(why_not_written(run.path(), "study.csv"), "no error");
  EXPECT_EQ(why_not_written(run.path(), "../deepspeed.json"), "no error");
  EXPECT_EQ(why_not_written(run.path(), "report.html", true), "no error");
}

}  // namespace
}  // namespace dsat::cli
