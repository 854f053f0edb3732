// Runs dsat-trial as a host does: a command, a configuration file, the files that it leaves.
#ifndef DSAT_TESTS_TRAINER_PROGRAM_TRIAL_PROGRAM_H_
#define DSAT_TESTS_TRAINER_PROGRAM_TRIAL_PROGRAM_H_

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "support/temp_dir.h"

namespace dsat::trainer::testing {

struct Ended {
  int status = -1;  // exit status; minus the signal
  std::string out, err;
  std::string last_error_line() const;
};

// What the program does with its arguments, where it is linked into the test program; null: it is not. A start that
// sets no variables of its own is then a fork which calls this. A program that is executed takes half a second of
// processor time to load LibTorch before it reads its command line, and these tests start hundreds.
using Entry = int (*)(const std::vector<std::string>& args);
inline Entry entry = nullptr;

// A folder of its own, removed at the end. One program at a time unless start() is used.
class TrialProgram {
 public:
  TrialProgram() = default;
  ~TrialProgram();
  TrialProgram(const TrialProgram&) = delete;
  TrialProgram& operator=(const TrialProgram&) = delete;

  std::filesystem::path folder() const { return folder_.path(); }
  // Writes ds_config.json: `config` with an autotuning section that names metrics.json in the folder.
  void write_config(Json config, int64_t start_step = 3, int64_t end_step = 5, bool model_info = false);
  // As it is.
  void write_raw_config(const std::string& text);

  // Options separated by spaces; --deepspeed_config is added. `environment`: NAME=VALUE, on top of the test's.
  Ended run(const std::string& options, const std::vector<std::string>& environment = {});
  pid_t start(const std::string& options, const std::vector<std::string>& environment = {});
  Ended wait(pid_t pid);
  // What it has written to stdout so far.
  std::string output_of(pid_t pid) const;

  // What the trial wrote; nullopt: no file.
  std::optional<Json> result() const;

 private:
  TempDir folder_;
  std::vector<pid_t> running_;
};

// Runs with a tuning section and gives the result; a test failure and null when there is none.
Json measure(const std::string& options, const Json& config, int64_t start_step = 1, int64_t end_step = 2);

// What dsat-trial does not take: status 2, one line that `says` so, and nothing is run.
struct BadInput {
  const char* options;
  const char* config;
  const char* says;
};
// The name of the test, which must not hold an address.
inline void PrintTo(const BadInput& input, std::ostream* out) { *out << input.says; }
void expect_refused(const BadInput& input);

// Processes that `pid` has started.
std::vector<pid_t> children_of(pid_t pid);
// False once it is gone or a zombie.
bool is_running(pid_t pid);
// Polls until `condition` holds; false after a minute.
bool eventually(const std::function<bool()>& condition);

}  // namespace dsat::trainer::testing

#endif  // DSAT_TESTS_TRAINER_PROGRAM_TRIAL_PROGRAM_H_
