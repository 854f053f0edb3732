// Writes down, action by action, what a stage does in one optimizer step.
// Neighbours that exchange both ways take turns by the parity of the stage, so that no two sends wait for each other.
#include "layout/pipeline_schedule.h"

#include <algorithm>
#include <utility>

namespace dsat::trainer {
namespace {

class Schedule {
 public:
  Schedule(int stage, int num_stages)
      : is_first_(stage == 0), is_last_(stage == num_stages - 1), sends_first_(stage % 2 == 0) {}

  void receive_activation(int64_t micro_batch) { between(!is_first_, PipelineAction::receive_activation, micro_batch); }
  void send_activation(int64_t micro_batch) { between(!is_last_, PipelineAction::send_activation, micro_batch); }
  void receive_gradient(int64_t micro_batch) { between(!is_last_, PipelineAction::receive_gradient, micro_batch); }
  void send_gradient(int64_t micro_batch) { between(!is_first_, PipelineAction::send_gradient, micro_batch); }
  void forward(int64_t micro_batch) { add(PipelineAction::forward, micro_batch); }
  void backward(int64_t micro_batch) { add(PipelineAction::backward, micro_batch); }

  // With the stage after: the activation of `sent` for the gradient of `received`.
  void exchange_with_next(int64_t sent, int64_t received) {
    if (sends_first_) send_activation(sent);
    receive_gradient(received);
    if (!sends_first_) send_activation(sent);
  }
  // With the stage before: the gradient of `sent` for the activation of `received`.
  void exchange_with_previous(int64_t sent, int64_t received) {
    if (sends_first_) send_gradient(sent);
    receive_activation(received);
    if (!sends_first_) send_gradient(sent);
  }

  std::vector<PipelineInstruction> take() { return std::move(instructions_); }

 private:
  void add(PipelineAction action, int64_t micro_batch) { instructions_.push_back({action, micro_batch}); }
  void between(bool has_neighbour, PipelineAction action, int64_t micro_batch) {
    if (has_neighbour) add(action, micro_batch);
  }

  bool is_first_, is_last_, sends_first_;
  std::vector<PipelineInstruction> instructions_;
};

}  // namespace

std::vector<PipelineInstruction> training_schedule(int stage, int num_stages, int64_t micro_batches) {
  Schedule schedule(stage, num_stages);
  const int64_t ahead = std::min<int64_t>(num_stages - stage - 1, micro_batches);
  for (int64_t i = 0; i < ahead; ++i) {
    schedule.receive_activation(i);
    schedule.forward(i);
    schedule.send_activation(i);
  }
  if (ahead < micro_batches) schedule.receive_activation(ahead);
  for (int64_t i = ahead; i < micro_batches; ++i) {
    const int64_t done = i - ahead;
    schedule.forward(i);
    schedule.exchange_with_next(i, done);
    schedule.backward(done);
    if (i + 1 < micro_batches) {
      schedule.exchange_with_previous(done, i + 1);
    } else {
      schedule.send_gradient(done);
    }
  }
  for (int64_t i = micro_batches - ahead; i < micro_batches; ++i) {
    schedule.receive_gradient(i);
    schedule.backward(i);
    schedule.send_gradient(i);
  }
  return schedule.take();
}

std::vector<PipelineInstruction> evaluation_schedule(int stage, int num_stages, int64_t micro_batches) {
  Schedule schedule(stage, num_stages);
  for (int64_t i = 0; i < micro_batches; ++i) {
    schedule.receive_activation(i);
    schedule.forward(i);
    schedule.send_activation(i);
  }
  return schedule.take();
}

}  // namespace dsat::trainer
