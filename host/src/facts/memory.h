// The cost model as all trials of a study together teach it.
//
// Threading: pure functions. Errors: none; a model that cannot be made, or a configuration that it cannot read, gives
// no estimate: it is no reason to lose a summary. Units: bytes, samples of a micro batch.
#ifndef DSAT_HOST_FACTS_MEMORY_H_
#define DSAT_HOST_FACTS_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/cost/memory.h"
#include "record/trial.h"

namespace dsat::host {

// What the model learns from beside the trials.
struct MemoryKnowledge {
  const Json& profile;  // null: nothing is learnt
  std::optional<uint64_t> device_memory_bytes;
  int64_t data_parallel_size = 1;
  std::string precision;  // that the command gives in place of "auto" (command/hugging_face.h)
};

class MemoryEstimates {
 public:
  MemoryEstimates(const MemoryKnowledge& knowledge, const std::vector<Trial>& trials);

  std::optional<cost::Interval> peak(const Json& config) const;
  // The largest micro batch, all else as in `config`; nullopt where the device's memory is unknown, too.
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
