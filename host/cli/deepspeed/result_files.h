// Results in DeepSpeed's format, beside dsat's own: results_dir/NAME/ and exps_dir/NAME.json for every trial, and at
// the end summary.txt, ds_config_optimal.json and cmd_optimal.txt.
//
// Threading: as ResultWriter. Ownership: the console outlives the writer. Errors: the first file that cannot be written
// is reported; the study goes on.
#ifndef DSAT_CLI_DEEPSPEED_RESULT_FILES_H_
#define DSAT_CLI_DEEPSPEED_RESULT_FILES_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "deepspeed/experiment_names.h"
#include "deepspeed/study_file.h"
#include "dsat/base/files.h"
#include "terminal/console.h"
#include "terminal/result_writer.h"

namespace dsat::cli {

class DeepspeedOutput final : public ResultWriter {
 public:
  DeepspeedOutput(DeepspeedStudy study, Console& console);

  void on_trial_submitted(const host::TrialRecord& trial) override;
  void on_trial_ended(const host::TrialRecord& trial) override;
  void finish() override;
  std::string place() const override;

  const DeepspeedStudy& study() const { return study_; }

 private:
  Json description(const host::TrialRecord& trial);
  void describe(const host::TrialRecord& trial);
  void keep(const host::TrialRecord& trial);
  void write(const std::filesystem::path& file, const std::string& text, Durability durability,
             Access access = Access::by_umask);
  void complain(const std::string& what);

  DeepspeedStudy study_;
  Console& console_;
  ExperimentNames names_;
  bool complained_ = false;
};

// The writer for a study of this form; nullptr: the study in the run directory has another form.
std::unique_ptr<DeepspeedOutput> deepspeed_output(const std::filesystem::path& dir, Console& console);

// The files and folders that a study wrote into its results_dir and exps_dir.
std::vector<std::filesystem::path> deepspeed_results(const DeepspeedStudy& study);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DEEPSPEED_RESULT_FILES_H_
