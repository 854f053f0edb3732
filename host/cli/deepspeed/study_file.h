// A study in DeepSpeed's form: the folders of its results, and whether earlier results there are its own.
//
// DIR/deepspeed.json in the run directory records the form, so that `dsat-host resume` writes the same files.
// Threading: plain values; the functions read and write files. Errors: dsat::Error that says what to do.
#ifndef DSAT_CLI_DEEPSPEED_STUDY_FILE_H_
#define DSAT_CLI_DEEPSPEED_STUDY_FILE_H_

#include <filesystem>
#include <optional>

#include "dsat/error.h"

namespace dsat::cli {

// The run directory of the study, in results_dir.
inline constexpr const char* kDeepspeedRunDir = "dsat";
// The file in the run directory of a study of this form.
inline constexpr const char* kDeepspeedStudyFile = "deepspeed.json";

struct DeepspeedStudy {
  std::filesystem::path dir;                    // dsat's own run directory
  std::filesystem::path results_dir, exps_dir;  // absolute
  bool run = false;                             // train with the best configuration at the end
  Json request;                                 // the inputs of the results: {command, configuration, options, script}
};

// nullopt: the study was not started in this form.
std::optional<DeepspeedStudy> read_deepspeed_study(const std::filesystem::path& dir);
void write_deepspeed_study(const DeepspeedStudy& study);

enum class ExistingResults { none, of_same_request };

// Looks for results in results_dir. Refuses results of another request and DeepSpeed's own, because this study cannot
// use them.
ExistingResults existing_results(const DeepspeedStudy& study);

// A short text that changes with the contents of the file; empty: the file cannot be read.
std::string fingerprint(const std::filesystem::path& file);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DEEPSPEED_STUDY_FILE_H_
