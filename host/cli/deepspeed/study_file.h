// A study in DeepSpeed's form: where its results go, and whether results that lie there are its own.
//
// DIR/deepspeed.json in the run directory keeps it, so that `dsat-host resume` writes the same files. Threading: plain
// values; the functions read and write files. Errors: dsat::Error that says what to do.
#ifndef DSAT_CLI_DEEPSPEED_STUDY_FILE_H_
#define DSAT_CLI_DEEPSPEED_STUDY_FILE_H_

#include <filesystem>
#include <optional>

#include "dsat/error.h"

namespace dsat::cli {

// The run directory of the study itself, in results_dir.
inline constexpr const char* kDeepspeedRunDir = "dsat";
// In the run directory: that the study is of this form.
inline constexpr const char* kDeepspeedStudyFile = "deepspeed.json";

struct DeepspeedStudy {
  std::filesystem::path dir;                    // dsat's own run directory
  std::filesystem::path results_dir, exps_dir;  // absolute
  bool run = false;                             // train with the best configuration in the end
  Json request;  // what the results depend on: {command, configuration, options, script}; each differs on its own
};

// nullopt: the study was not started in this form.
std::optional<DeepspeedStudy> read_deepspeed_study(const std::filesystem::path& dir);
void write_deepspeed_study(const DeepspeedStudy& study);

enum class ExistingResults { none, of_same_request };

// What lies in results_dir. Results of another request, and DeepSpeed's own, are refused: this study cannot use them.
ExistingResults existing_results(const DeepspeedStudy& study);

// Contents of a file as a short text that changes with them; empty: it cannot be read.
std::string fingerprint(const std::filesystem::path& file);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DEEPSPEED_STUDY_FILE_H_
