// What the exports write: texts that their readers take, and files that readers have open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "export/files.h"
#include "export/flat_study.h"
#include "export/formats.h"
#include "support/temp_dir.h"

namespace dsat::cli {
namespace {

using ::testing::HasSubstr;

host::StudyFacts study_of_one(const Json& config) {
  host::StudyFacts facts;
  facts.record.study = {{"name", "gpt2 \U0001F680"}};
  facts.record.trials.resize(1);
  host::TrialRecord& trial = facts.record.trials[0];
  trial.config = config;
  trial.overrides = Json::object();
  trial.attempt = 1;
  trial.started_at = "2026-01-01T00:00:00Z";
  facts.trials.resize(1);
  return facts;
}

ino_t file_number(const std::filesystem::path& file) {
  struct stat status {};
  stat(file.c_str(), &status);
  return status.st_ino;
}

TEST(CsvOf, KeysThatLookAlikeHaveAColumnEach) {
  const std::string csv = csv_of(study_of_one({{"my", {{"key", 2}}}, {"my.key", 1}}));
  EXPECT_THAT(csv, HasSubstr("config.my.key,config.my.key_2"));
  EXPECT_THAT(csv, HasSubstr(",2,1"));
}

TEST(CsvOf, ATextIsNoFormulaAndANumberStaysANumber) {
  const std::string csv =
      csv_of(study_of_one({{"a", "=HYPERLINK(\"http://x\")"}, {"b", "@x"}, {"c", -1.5}, {"d", "-x"}}));
  EXPECT_THAT(csv, HasSubstr("\"'=HYPERLINK(\"\"http://x\"\")\",'@x,-1.5,'-x"));
}

TEST(CsvOf, NoCellMovesATerminalsCursor) {
  host::StudyFacts facts = study_of_one(Json::object());
  facts.record.trials[0].reason =
      "\x1b[2J\x07 it \x7f"
      "failed\r\n";
  const std::string csv = csv_of(facts);
  EXPECT_THAT(csv, HasSubstr("it failed"));
  EXPECT_EQ(csv.find_first_of("\x1b\x07\x7f"), std::string::npos) << csv;
}

// YAML takes JSON's \ud83d\ude80 for two characters that there are not.
TEST(WriteMlflow, NamesAreInUtf8) {
  const TempDir dir;
  write_mlflow(study_of_one(Json::object()), dir.path());
  std::string names;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    if (std::filesystem::exists(entry.path() / "meta.yaml")) names += read_text(entry.path() / "meta.yaml");
  }
  EXPECT_THAT(names, HasSubstr("name: \"gpt2 \U0001F680\""));
}

// Its host was killed before it wrote the start down.
TEST(StartOf, IsTheOrderWhereNoStartIsOnRecord) {
  host::TrialRecord trial;
  trial.submitted_at = "2026-01-01T00:00:00Z";
  EXPECT_EQ(start_of(trial), trial.submitted_at);
  trial.started_at = "2026-01-01T00:00:09Z";
  EXPECT_EQ(start_of(trial), trial.started_at);
}

TEST(ExtendExport, AFileThatHoldsTheBeginGrowsInPlace) {
  const TempDir dir;
  const std::filesystem::path file = dir.path() / "events";
  extend_export(file, "begin");
  const ino_t first = file_number(file);
  extend_export(file, "begin, end");
  EXPECT_EQ(read_text(file), "begin, end");
  EXPECT_EQ(file_number(file), first);
  extend_export(file, "begin, end");
  EXPECT_EQ(read_text(file), "begin, end");
  extend_export(file, "other");
  EXPECT_EQ(read_text(file), "other");
  extend_export(file, "oth");
  EXPECT_EQ(read_text(file), "oth") << "a longer file is no begin";
}

}  // namespace
}  // namespace dsat::cli
