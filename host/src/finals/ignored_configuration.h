// Does the script follow its configuration? If not, no figure of its trials counts, and nothing is handed back.
//
// Purpose: three proofs. Two trials deviated from one key of their configurations in the same way, and no trial
// followed
//   the key. Or DeepSpeed's engine was fed tensors of one shape in all trials, whatever their micro batches. Or a step
//   takes the same time whatever it is given (ignored_batch.h). The first two rest on what the memory probe saw.
// Threading: control thread. Errors: none. Cost: the proof looks at one entry for each key.
#ifndef DSAT_HOST_FINALS_IGNORED_CONFIGURATION_H_
#define DSAT_HOST_FINALS_IGNORED_CONFIGURATION_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "finals/ignored_batch.h"
#include "record/trial.h"

namespace dsat::host {

struct IgnoredKey {
  std::string key;             // of the configuration, or kDataParallelSize
  std::optional<int64_t> had;  // what the trials ran with; nullopt: unknown
  std::string evidence;        // begin of a line
};

class IgnoredConfiguration {
 public:
  // Adds an ended trial, in any order.
  void add(const Trial& trial);
  std::optional<IgnoredKey> find() const;

 private:
  // The trials that deviated from one key.
  struct Deviations {
    std::vector<uint64_t> trials;
    std::set<int64_t> had;
  };
  std::optional<IgnoredKey> from_deviations() const;
  std::optional<IgnoredKey> from_inputs() const;

  std::map<std::string, Deviations> by_key_;
  std::map<std::string, std::set<int64_t>> followed_;          // values of keys with which trials completed
  std::map<std::string, std::map<int64_t, uint64_t>> inputs_;  // shapes -> micro batch -> its first trial
  IgnoredBatch batches_;
};

// One line: the evidence, and what to do. `flag`: the flag of the command that takes the value; empty: unknown.
std::string describe(const IgnoredKey& ignored, const std::string& flag);

// The proof from these trials, as a line; nullopt: there is none.
std::optional<std::string> proof_of_ignored_configuration(const std::vector<Trial>& trials);

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_IGNORED_CONFIGURATION_H_
