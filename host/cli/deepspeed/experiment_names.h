// Names of trials as DeepSpeed names its experiments: z1_gas1_tmbspg3, then the initials and the value of each further
// key that the trial sets (z2_gas1_tmbspg4_rbs5.0e+08_ocT).
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

// The ZeRO stage of a trial's configuration; 0 if it has none or a wrong one.
int stage_of(const host::TrialRecord& trial);

// Two trials may have the same name.
std::string experiment_name(const host::TrialRecord& trial);

// False for duplicates and refused configurations, which never run.
bool is_experiment(const host::TrialRecord& trial);
bool is_model_information(const host::TrialRecord& trial);

// Unique names: if trials share a name, all but the first get their id as a suffix.
class ExperimentNames {
 public:
  // Trials must come in the order of their ids.
  const std::string& name(const host::TrialRecord& trial);

  // A raised limit withdraws trials, and new ones get their ids. If another trial had this id, forgets and returns its
  // name and the names of all later ids.
  std::vector<std::string> forget_others(const host::TrialRecord& trial);

 private:
  struct Named {
    std::string stem, name;  // without the suffix; with it if there is one
  };
  std::map<uint64_t, Named> names_;
  std::set<std::string> taken_;
};

}  // namespace dsat::cli

#endif  // DSAT_CLI_DEEPSPEED_EXPERIMENT_NAMES_H_
