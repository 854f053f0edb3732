// The largest micro batch of each stage: the profile estimates it, and trials narrow it down.
//
// Threading: one thread at a time. Units: samples a device. Errors: none.
#ifndef DSAT_CLI_TERMINAL_CEILINGS_H_
#define DSAT_CLI_TERMINAL_CEILINGS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "dsat/host/record.h"

namespace dsat::cli {

class Ceilings {
 public:
  void take_profile(const Json& profile);
  void take_trial(const host::TrialRecord& trial);

  // "stage 1: 15, stage 2: 16 to 31, stage 3: about 24"; empty: nothing is known.
  std::string text() const;

 private:
  struct Stage {
    std::optional<int64_t> ran, out_of_memory;  // the largest that trained, the smallest that did not fit
    std::optional<double> estimate;
  };
  static std::string text_of(const Stage& stage);

  std::map<int64_t, Stage> stages_;
};

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_CEILINGS_H_
