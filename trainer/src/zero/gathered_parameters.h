// Stage 3: each rank holds its shard; a group of parameters is gathered whole just before an operation reads it.
//
// A group's tensors are views of one storage that has no memory of its own. Gathering lends it a block; autograd keeps
// views of the storage for backward and finds the data there once the group is gathered again. What an operation reads
// stays until it has ended. By default at most one group is there at a time, in an arena of the largest one's size,
// unless an operation reads several. With stage3_max_live_parameters or stage3_max_reuse_distance groups stay while
// they are soon used again, with stage3_prefetch_bucket_size the next ones are gathered ahead, with overlap_comm beside
// the computation; both go by the trace of the micro step before. Then a block is taken for each group and given back
// at its release. Groups of parameters that stage3_param_persistence_threshold keeps are whole on every rank, always.
//
// Memory: P/N elements (with offload_param the host's), during a step the arena or the blocks.
// Errors: an operation cannot be stopped from here. After a failure groups get their block, or where there is none
// memory of the host with nothing in it, and check() tells.
#ifndef DSAT_TRAINER_ZERO_GATHERED_PARAMETERS_H_
#define DSAT_TRAINER_ZERO_GATHERED_PARAMETERS_H_

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/comm_thread.h"
#include "layout/use_trace.h"
#include "zero/parameters.h"
#include "zero/storage_use.h"

namespace dsat::trainer {

class GatheredParameters : public Parameters, public StorageUser {
 public:
  GatheredParameters(const ZeroContext& context, std::vector<Tensors> leaves);
  ~GatheredParameters() override;

  at::Tensor shard() const override { return shard_; }
  void bind() override;
  void publish() override;
  void begin_step() override;
  void begin_micro_step() override { trace_.begin(); }
  void group_done(size_t group) override;
  void end_step() override;
  void compare_uses() override;
  void check() override;

  void before_use(size_t id) noexcept override;
  void after_use(size_t id) noexcept override { --groups_[id].uses; }

 private:
  struct Group {
    c10::Storage storage;
    int64_t size = 0;
    int64_t shard_begin = 0;
    bool is_persistent = false;
    at::Tensor block;                  // lent to the storage, or about to be
    std::unique_ptr<Pending> pending;  // still being gathered
    bool is_ahead = false;             // gathered for a use that has not come yet
    int uses = 0;                      // operations under way that read it
  };

  bool keeps_groups() const { return c_.settings.max_live_parameters > 0 || c_.settings.max_reuse_distance >= 0; }
  bool is_wanted(size_t id) const;
  void make_room(size_t id);
  void release_idle(size_t except);
  std::optional<size_t> farthest_idle(size_t except) const;
  void prefetch();
  at::Tensor take_block(int64_t size);
  Lane::Operation gathering(size_t id);
  std::string name_of_gathering(size_t id) const;
  void gather_now(size_t id);
  void start_gathering(size_t id);
  void finish_gathering(size_t id);
  void release(size_t id);
  void lend_nothing(size_t id) noexcept;
  void lend(Group& group, void* data);

  ZeroContext c_;
  at::Tensor shard_;
  std::vector<Group> groups_;
  AccessTrace trace_;
  int64_t live_ = 0;  // elements of gathered groups and of those under way, without persistent ones
  at::Tensor arena_;
  std::exception_ptr failure_;
  Tensors nothing_;  // what groups are lent after a failure
  std::optional<AccessWatch> watch_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_GATHERED_PARAMETERS_H_
