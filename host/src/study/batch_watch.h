// Does the script's batch follow its configuration?
//
// Purpose: a script with a batch size of its own takes the same time and memory at every micro batch, while its engine
//   reports a throughput that grows with the configured one. Such a search finds nothing but large numbers.
// Threading: control thread. Errors: none.
#ifndef DSAT_HOST_STUDY_BATCH_WATCH_H_
#define DSAT_HOST_STUDY_BATCH_WATCH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "record/trial.h"

namespace dsat::host {

class BatchWatch {
 public:
  // A trial has ended. What to tell the user, once for a study: two configurations that differ in their micro batch
  // alone, by a factor of 4 or more, took the same time and the same memory. Where no memory is reported the factor is
  // 64: small models take as long for 16 samples as for one.
  std::optional<std::string> add(const Trial& trial);

 private:
  struct Measured {
    uint64_t trial;
    int64_t micro_batch;
    double latency_us;
    std::optional<uint64_t> peak_bytes;
  };
  std::map<std::string, Measured> smallest_;  // by the configuration without its batch sizes
  bool is_told_ = false;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_BATCH_WATCH_H_
