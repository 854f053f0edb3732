// Trials by the names that DeepSpeed gives its experiments: z1_gas1_tmbspg3, then the first letters and the value of
// every further key that the trial sets (z2_gas1_tmbspg4_rbs5.0e+08_ocT).
//
// Threading: plain values. Errors: none.
#ifndef DSAT_CLI_DEEPSPEED_EXPERIMENT_NAMES_H_
#define DSAT_CLI_DEEPSPEED_EXPERIMENT_NAMES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "dsat/host/record.h"

namespace dsat::cli {

// The ZeRO stage of a trial's configuration; 0 where it names none that there is.
int stage_of(const host::TrialRecord& trial);

// Two trials may bear the same one.
std::string experiment_name(const host::TrialRecord& trial);

// Duplicates and refused configurations were never run.
bool is_experiment(const host::TrialRecord& trial);
bool is_model_information(const host::TrialRecord& trial);

// Unique names: where trials would share one, all but the first to come bear their id as well.
class ExperimentNames {
 public:
  // Trials must come in the order of their ids.
  const std::string& name(const host::TrialRecord& trial);

  // A raised limit takes trials back, and others get their ids. Where another trial had this id, its name and those of
  // all later ids are forgotten, and returned.
  std::vector<std::string> forget_others(const host::TrialRecord& trial);

 private:
  struct Named {
    std::string stem, name;  // without the id, and with it where it must be
  };
  std::map<uint64_t, Named> names_;
  std::set<std::string> taken_;
};

}  // namespace dsat::cli

#endif  // DSAT_CLI_DEEPSPEED_EXPERIMENT_NAMES_H_
