// Does the script's batch follow its configuration?
//
// Purpose: a script with a batch size of its own takes the same time and memory at every micro batch, and so does one
//   whose data set is smaller than a batch, while the engine reports a throughput that grows with the configured one.
//   Such a search finds nothing but large numbers.
// Threading: control thread. Errors: none.
#ifndef DSAT_HOST_STUDY_WATCH_BATCH_WATCH_H_
#define DSAT_HOST_STUDY_WATCH_BATCH_WATCH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

class BatchWatch {
 public:
  // A trial has ended. What to tell the user, once for a study: of two configurations that differ in their micro batch
  // alone, the much larger one took no more time and no other memory. How much larger depends on what the memory shows:
  // 4 times with a device's peak, 16 times with a process's, 64 times without any: small models take as long for 16
  // samples as for one.
  std::optional<std::string> add(const Trial& trial);

 private:
  // What equal times and peaks prove: of micro batches that differ by this factor or more.
  struct Evidence {
    double factor;
    std::optional<double> memory_tolerance;  // within this share two peaks are equal; nullopt: they say nothing
  };
  struct Measured {
    uint64_t trial;
    int64_t micro_batch;
    double latency_us, peak_bytes;
    Evidence evidence;
  };
  static Evidence evidence_of(const TrialRecord& record);
  static bool took_the_same(const Measured& small, const Measured& large);

  std::map<std::string, std::vector<Measured>> measured_;  // by the configuration without its batch sizes
  bool is_reported_ = false;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_WATCH_BATCH_WATCH_H_
