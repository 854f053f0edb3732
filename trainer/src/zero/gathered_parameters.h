// Stage 3: each rank holds its shard; a group of parameters is gathered whole just before an operation reads it (ZeRO,
// Rajbhandari et al., SC 2020, section 5.3: P/N elements a rank, for one more all-gather of P a micro step).
//
// A group's tensors are views of one storage that has no memory of its own. Gathering points the storage at a block;
// autograd keeps views of the storage for backward and finds the data there once the group is gathered again. What an
// operation reads stays until the operation has ended. By default at most one group is there at a time, in an arena of
// the largest one's size, unless an operation reads several. With stage3_max_live_parameters or
// stage3_max_reuse_distance groups stay while they are soon used again; with stage3_prefetch_bucket_size the next ones
// are gathered ahead, with overlap_comm beside the computation. Both go by the trace of the micro step before. Then a
// block is taken for each group and given back at its release. Groups of parameters that
// stage3_param_persistence_threshold keeps are whole on every rank, always.
//
// Memory: P/N elements (with offload_param on the host); during a step the arena or the blocks as well.
// Threading: all members on the compute thread, before_use() and after_use() out of the operations that it runs; the
// communication thread only fills blocks, between start and wait of a gathering.
// Errors: an operation cannot be stopped from here. After a failure groups keep their block, or get a placeholder in
// host memory where they have none, and check() throws the failure.
#ifndef DSAT_TRAINER_ZERO_GATHERED_PARAMETERS_H_
#define DSAT_TRAINER_ZERO_GATHERED_PARAMETERS_H_

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/absent_memory.h"
#include "autograd/storage_use.h"
#include "comm/comm_thread.h"
#include "layout/use_trace.h"
#include "zero/parameters.h"

namespace dsat::trainer {

class GatheredParameters : public Parameters, public StorageUseListener {
 public:
  GatheredParameters(const ZeroContext& context, std::vector<Tensors> leaves);
  ~GatheredParameters() override;

  at::Tensor shard() const override { return shard_; }
  void bind(size_t group) override;
  void all_bound() override;
  void publish() override;
  void hold(size_t group) override;
  void take(size_t group) override;
  void begin_step() override;
  void begin_micro_step() override { trace_.begin(); }
  void group_done(size_t group) override;
  void end_step() override;
  void compare_uses() override;
  void check() override;

  void before_use(size_t id) noexcept override;
  void after_use(size_t id) noexcept override { --groups_[id].uses; }

 private:
  // A group of the layout, by its number.
  struct GatheredGroup {
    c10::Storage storage;
    int64_t size = 0;         // elements, padded
    int64_t shard_begin = 0;  // of this rank's part
    bool is_persistent = false;
    bool is_held = false;  // for an edit
    bool stays() const { return is_persistent || is_held; }
    std::unique_ptr<AbsentMemory> absent;  // what the storage points at meanwhile; none on a device
    at::Tensor block;                      // what the storage points at, or will when the gathering has ended
    std::unique_ptr<Pending> pending;      // still being gathered
    bool is_prefetched = false;            // gathered for a use that has not come yet
    int uses = 0;                          // operations under way that read it
  };

  bool keeps_groups() const { return c_.settings.max_live_parameters > 0 || c_.settings.max_reuse_distance >= 0; }
  bool is_used_soon(size_t id) const;
  void make_room(size_t id);
  void release_idle(size_t except);
  std::optional<size_t> farthest_idle(size_t except) const;
  void prefetch();
  at::Tensor take_block(int64_t size);
  CommThread::Operation gathering_of(size_t id);
  std::string name_of_gathering(size_t id) const;
  void gather_now(size_t id);
  void start_gathering(size_t id);
  void finish_gathering(size_t id);
  void release(size_t id);
  void use_placeholder(size_t id) noexcept;
  void point_storage_at(GatheredGroup& group, void* data);
  void point_nowhere(GatheredGroup& group) { point_storage_at(group, group.absent ? group.absent->data() : nullptr); }

  ZeroContext c_;
  at::Tensor shard_;
  std::vector<GatheredGroup> groups_;
  UseTrace trace_;
  int64_t live_elements_ = 0;  // elements of gathered groups and of those under way, without persistent ones
  at::Tensor arena_;           // one block for all groups in turn; none where several groups may be there
  std::exception_ptr failure_;
  Tensors placeholders_;  // what groups without a block hold after a failure
  std::optional<StorageUseWatch> watch_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_GATHERED_PARAMETERS_H_
