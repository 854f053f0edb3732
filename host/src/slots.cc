#include "slots.h"

#include <algorithm>

namespace dsat::host {

namespace {

Status check_positive(const std::optional<int>& value, const char* option) {
  if (!value || *value >= 1) return Status();
  return Status::invalid(std::string(option) + " is " + std::to_string(*value) + ": it must be at least 1");
}

Status check_request(const SlotRequest& request) {
  for (const Status& status :
       {check_positive(request.slots, "--slots"), check_positive(request.slots_per_trial, "--slots-per-trial"),
        check_positive(request.max_slots, "--max-slots"),
        check_positive(request.command_slots, "the number of processes in the command")}) {
    if (!status.ok()) return status;
  }
  return Status();
}

std::vector<Slot> numbered_slots(int count) {
  std::vector<Slot> slots;
  for (int i = 0; i < count; ++i) slots.push_back({std::to_string(i), i, std::nullopt});
  return slots;
}

std::optional<uint64_t> smallest_memory(const std::vector<Slot>& slots) {
  std::optional<uint64_t> smallest;
  for (const Slot& slot : slots) {
    if (!slot.memory_bytes) return std::nullopt;
    smallest = std::min(smallest.value_or(*slot.memory_bytes), *slot.memory_bytes);
  }
  return smallest;
}

std::string slot_count(size_t count) { return std::to_string(count) + (count == 1 ? " slot" : " slots"); }

}  // namespace

const char* visibility_variable(Backend backend) {
  switch (backend) {
    case Backend::cuda:
      return "CUDA_VISIBLE_DEVICES";
    case Backend::hip:
      return "HIP_VISIBLE_DEVICES";
    case Backend::rocr:
      return "ROCR_VISIBLE_DEVICES";
    case Backend::level_zero:
      return "ZE_AFFINITY_MASK";
    case Backend::none:
      break;
  }
  return nullptr;
}

Result<SlotPlan> plan_slots(const Devices& devices, const SlotRequest& request) {
  const Status status = check_request(request);
  if (!status.ok()) return status;
  SlotPlan plan;
  plan.backend = devices.backend;
  const std::optional<int> wanted = request.slots_per_trial ? request.slots_per_trial : request.command_slots;

  if (devices.slots.empty()) {
    plan.slots = numbered_slots(request.slots.value_or(wanted.value_or(1)));
    if (!request.slots) {
      plan.notices.push_back("no accelerator found: " + slot_count(plan.slots.size()) +
                             ", so one trial at a time (--slots N for more)");
    }
  } else {
    plan.slots = devices.slots;
    if (request.slots && *request.slots > static_cast<int>(plan.slots.size())) {
      return Status::invalid("--slots " + std::to_string(*request.slots) + ", but only " +
                             std::to_string(plan.slots.size()) + " devices are visible here");
    }
    if (request.slots) plan.slots.resize(static_cast<size_t>(*request.slots));
  }

  const int available = std::min<int>(static_cast<int>(plan.slots.size()),
                                      request.max_slots.value_or(static_cast<int>(plan.slots.size())));
  plan.slots_per_trial = wanted.value_or(available);
  if (plan.slots_per_trial > available) {
    const char* source = request.slots_per_trial ? "--slots-per-trial is " : "the command takes ";
    return Status::invalid(std::string(source) + std::to_string(plan.slots_per_trial) + ", but there " +
                           (available == 1 ? "is only " : "are only ") + slot_count(static_cast<size_t>(available)) +
                           ": give fewer per trial, or more with --slots or --max-slots");
  }
  plan.device_memory_bytes = smallest_memory(plan.slots);
  return plan;
}

SlotPool::SlotPool(std::vector<Slot> slots, std::optional<int> max_in_use)
    : max_in_use_(max_in_use.value_or(static_cast<int>(slots.size()))) {
  for (Slot& slot : slots) entries_.push_back({std::move(slot), false});
}

int SlotPool::free() const { return std::min(static_cast<int>(entries_.size()), max_in_use_) - in_use_; }

std::vector<Slot> SlotPool::take(int count) {
  std::vector<Slot> taken;
  for (Entry& entry : entries_) {
    if (static_cast<int>(taken.size()) == count) break;
    if (entry.taken) continue;
    entry.taken = true;
    taken.push_back(entry.slot);
  }
  in_use_ += static_cast<int>(taken.size());
  return taken;
}

void SlotPool::give_back(const std::vector<Slot>& slots) {
  for (const Slot& slot : slots) {
    const auto it =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.taken && e.slot.id == slot.id; });
    if (it == entries_.end()) continue;
    it->taken = false;
    --in_use_;
  }
}

}  // namespace dsat::host
