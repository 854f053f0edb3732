// Sums of gradients over the ranks, whatever their type: with overlap_comm on the communication thread.
//
// Threading: all members on the compute thread. Ownership: a sum under way owns its tensors until it has been waited
// for. Units: elements. Errors: PeerLost.
//
// fp32 is summed in place, and bf16 where the group adds it in fp32 (Comm::sums_bfloat16): half as many bytes travel
// then. Other 16-bit floats pass through an fp32 staging buffer, chunk by chunk, so that the sum is rounded once. A
// device, whose collectives take long to start, has larger chunks.
#ifndef DSAT_TRAINER_ZERO_REDUCER_H_
#define DSAT_TRAINER_ZERO_REDUCER_H_

#include <memory>
#include <string>
#include <vector>

#include "zero/zero_context.h"

namespace dsat::trainer {

class Reducer {
 public:
  static constexpr int64_t kStagingElements = int64_t{1} << 18;
  static constexpr int64_t kDeviceStagingElements = int64_t{1} << 24;

  explicit Reducer(const ZeroContext& context) : c_(context) {}

  // Takes and gives back the staging buffer, where sums need one.
  void begin_step();
  void end_step() { staging_.reset(); }

  // Sums all of them, with overlap_comm beside the computation; nullptr: there is nothing to wait for. `name`: what the
  // launcher reports that this rank waits in.
  std::unique_ptr<Pending> start(std::string name, std::vector<Summand> summands);
  // The sums of the elements of the flat array from `begin` on, which `values` holds: with reduce_scatter each element
  // goes to its owner only (ZeRO stages 1 to 3), else to all ranks. `bucket`: its number, for the name.
  std::unique_ptr<Pending> start_bucket(int64_t bucket, const at::Tensor& values, int64_t begin);

 private:
  ZeroContext c_;
  at::Tensor staging_;  // fp32; none where gradients are summed in place
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_REDUCER_H_
