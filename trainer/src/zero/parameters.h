// Who holds the parameters: every rank all of them (stages 0 to 2, replicated_parameters.h), or each rank its shard,
// with groups gathered whole while operations read them (stage 3, gathered_parameters.h).
//
// Ownership: the model's own tensors become views of memory that is held here. Threading: the compute thread; what
// gathers or publishes is collective. Errors: PeerLost; dsat::Error; c10::OutOfMemoryError where memory is taken.
#ifndef DSAT_TRAINER_ZERO_PARAMETERS_H_
#define DSAT_TRAINER_ZERO_PARAMETERS_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "zero/zero_context.h"

namespace dsat::trainer {

using Tensors = std::vector<at::Tensor>;

class Parameters {
 public:
  virtual ~Parameters() = default;

  // The model's tensors by group, in the order of the layout.
  const std::vector<Tensors>& groups() const { return leaves_; }
  // This rank's own elements, which its optimizer updates. Zero at first.
  virtual at::Tensor shard() const = 0;
  // The group's tensors take the memory that is held here; before that they are as the model made them.
  virtual void bind(size_t group) = 0;
  virtual void all_bound() {}
  // After the shard has changed: every rank gets the other ranks' new elements, as far as it holds them between steps.
  virtual void publish() = 0;

  // Around an edit of a group's tensors, all collective: hold() makes them whole; take() makes rank 0's values those of
  // this rank's shard, and of the whole group where a rank has it; then the group may go again.
  virtual void hold(size_t group) = 0;
  virtual void take(size_t group) = 0;

  // Around an optimizer step, and at the begin of each of its micro steps: memory that only a step needs is taken and
  // given back.
  virtual void begin_step() {}
  virtual void begin_micro_step() {}
  // In backward: the group's last gradient has arrived.
  virtual void group_done(size_t /*group*/) {}
  virtual void end_step() {}
  // Before the update, collective: throws if ranks have gathered different groups, or in different orders.
  virtual void compare_uses() {}
  // Throws what went wrong while an operation's parameters were gathered.
  virtual void check() {}

 protected:
  explicit Parameters(std::vector<Tensors> leaves) : leaves_(std::move(leaves)) {}
  std::vector<Tensors> leaves_;
};

// Collective, in place: parts[r] is rank r's part, all of one size and neighbours in memory. `bucket` elements of all
// ranks together travel at a time, with `one_by_one` (allgather_partitions false) as a broadcast of each rank. Returns
// when all is there: call it on the communication thread.
void all_gather(Comm& comm, const Tensors& parts, int64_t bucket, bool one_by_one);

// Makes `leaves` views of `flat`, which holds the elements from `begin` on.
void make_views(const Tensors& leaves, const GroupSlot& layer, const at::Tensor& flat, int64_t begin);

// Leaves that are no views of `flat` any more become such again, with the values that they have now.
void take_back(const Tensors& leaves, const GroupSlot& layer, const at::Tensor& flat, int64_t begin);

// Rank `root`'s elements for all; 16-bit floats travel as bytes.
void broadcast_elements(Comm& comm, const at::Tensor& flat, int root);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_PARAMETERS_H_
