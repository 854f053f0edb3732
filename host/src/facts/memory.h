// The cost model of memory, fitted to all trials of a study.
// Threading: pure functions. Errors: none; if the model cannot be fitted or a configuration cannot be read, there is no
// estimate, but still a summary. Units: bytes, samples of a micro batch.
#ifndef DSAT_HOST_FACTS_MEMORY_H_
#define DSAT_HOST_FACTS_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/cost/memory.h"
#include "record/trial.h"

namespace dsat::host {

// The model's input besides the trials.
struct MemoryKnowledge {
  const Json& profile;  // null: the model learns nothing
  std::optional<uint64_t> device_memory_bytes;
  int64_t data_parallel_size = 1;
  std::string precision;  // the command's precision for "auto" (command/hugging_face.h)
};

class MemoryEstimates {
 public:
  MemoryEstimates(const MemoryKnowledge& knowledge, const std::vector<Trial>& trials);

  std::optional<cost::Interval> peak(const Json& config) const;
  // Returns the largest micro batch for `config`; nullopt also if the device's memory is unknown.
  std::optional<cost::Interval> ceiling(const Json& config) const;

 private:
  cost::Setup setup_of(const Json& config) const;

  int64_t data_parallel_size_;
  std::string precision_;
  cost::Engine engine_ = cost::Engine::deepspeed;
  std::optional<cost::MemoryFit> fit_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_FACTS_MEMORY_H_
