// Plans how many slots a trial takes: the requested sizes or total, or else all slots. Describes the plan in a line.
#include "slots/slots.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "dsat/base/units.h"
#include "dsat/config/world.h"
#include "dsat/error.h"
#include "slots/find_slots.h"

namespace dsat::host {

namespace {

void check_positive(const std::optional<int>& value, const char* option) {
  if (value && *value < 1) throw Error(fmt::format("{} is {}: it must be at least 1", option, *value));
}

void check_positive(const std::vector<int>& values, const char* option) {
  for (const int value : values) check_positive(value, option);
}

// Whether options or configuration give a trial's size as nodes and GPUs per node.
bool is_sized(const SlotRequest& request) {
  return !request.num_gpus.empty() || !request.num_nodes.empty() || !request.section_gpus.empty() ||
         !request.section_nodes.empty();
}

void check_request(const SlotRequest& request) {
  check_positive(request.slots, "--slots");
  check_positive(request.slots_per_trial, "--slots-per-trial");
  check_positive(request.max_slots, "--max-slots");
  check_positive(request.command_slots, "the number of processes in the command");
  check_positive(request.num_gpus, "num_gpus");
  check_positive(request.section_gpus, "num_gpus");
  check_positive(request.num_nodes, "num_nodes");
  check_positive(request.section_nodes, "num_nodes");
  if (request.slots_per_trial && is_sized(request)) {
    throw Error("--slots-per-trial and num_gpus or num_nodes both say what a trial takes: keep one");
  }
}

std::optional<uint64_t> smallest_memory(const std::vector<Slot>& slots) {
  std::optional<uint64_t> smallest;
  for (const Slot& slot : slots) {
    if (!slot.memory_bytes) return std::nullopt;
    smallest = std::min(smallest.value_or(*slot.memory_bytes), *slot.memory_bytes);
  }
  return smallest;
}

std::string slot_count(int count) { return fmt::format("{} {}", count, count == 1 ? "slot" : "slots"); }

std::string there_are(int count) { return count == 1 ? "there is only 1 slot" : "there are only " + slot_count(count); }

std::string text_of(const TrialShape& shape) {
  const std::vector<int>& shares = shape.node_slots;
  if (shares.size() == 1) return slot_count(shares[0]);
  if (std::all_of(shares.begin(), shares.end(), [&](int share) { return share == shares[0]; })) {
    return fmt::format("{} on each of {} nodes", slot_count(shares[0]), shares.size());
  }
  return fmt::format("{} slots of {} nodes", fmt::join(shares, " + "), shares.size());
}

class Planner {
 public:
  Planner(const SlotRequest& request, SlotPlan& plan)
      : request_(request), plan_(plan), pool_(plan.slots, request.max_slots), hosts_(pool_.hosts()) {}

  void choose() {
    const std::optional<int> total = request_.slots_per_trial ? request_.slots_per_trial : request_.command_slots;
    if (is_sized(request_)) {
      choose_sizes();
    } else if (total) {
      choose_total(*total);
    } else {
      choose_all(hosts_.size());
    }
  }

 private:
  bool fits(const TrialShape& shape) const { return SlotPool(pool_).take(shape).has_value(); }

  // Takes all slots of the first `nodes` hosts, so that no slot of a larger host is left out.
  void choose_all(size_t nodes) {
    TrialShape shape{{}};
    for (size_t i = 0; i < nodes; ++i) shape.node_slots.push_back(hosts_[i].second);
    if (hosts_.size() == 1) shape.node_slots[0] = pool_.free();
    plan_.shape = shape;
    if (!fits(shape)) does_not_fit("a trial takes " + text_of(shape));
  }

  // Takes `total` slots on the smallest number of nodes that share them evenly.
  void choose_total(int total) {
    for (int nodes = 1; nodes <= static_cast<int>(hosts_.size()); ++nodes) {
      if (total % nodes != 0) continue;
      plan_.shape = TrialShape::even(nodes, total / nodes);
      if (fits(plan_.shape)) return;
    }
    does_not_fit(fmt::format("{} {}", request_.slots_per_trial ? "--slots-per-trial is" : "the command takes", total));
  }

  // Takes GPUs per node x nodes, in DeepSpeed's way of counting. If either is a list, sizes are searched.
  void choose_sizes() {
    const bool in_section = !request_.section_gpus.empty() || !request_.section_nodes.empty();
    std::vector<int> gpus = in_section ? request_.section_gpus : request_.num_gpus;
    std::vector<int> nodes = in_section ? request_.section_nodes : request_.num_nodes;
    if (nodes.empty()) nodes = {static_cast<int>(hosts_.size())};
    if (gpus.empty() && nodes.size() == 1) {
      if (nodes[0] <= static_cast<int>(hosts_.size())) return choose_all(static_cast<size_t>(nodes[0]));
      does_not_fit(fmt::format("num_nodes is {}", nodes[0]));
    }
    if (gpus.empty()) gpus = {smallest_host()};
    std::set<int> usable_gpus, usable_nodes;
    for (const int per_node : gpus) {
      for (const int count : nodes) {
        if (!fits(TrialShape::even(count, per_node))) continue;
        if (usable_gpus.empty()) plan_.shape = TrialShape::even(count, per_node);
        usable_gpus.insert(per_node);
        usable_nodes.insert(count);
      }
    }
    if (usable_gpus.empty()) does_not_fit(fmt::format("num_gpus {} on num_nodes {}", gpus[0], nodes[0]));
    keep_usable(gpus, usable_gpus, "num_gpus");
    keep_usable(nodes, usable_nodes, "num_nodes");
    if (gpus.size() * nodes.size() > 1) {
      plan_.num_gpus = std::move(gpus);
      plan_.num_nodes = std::move(nodes);
    }
  }

  int smallest_host() const {
    int smallest = hosts_[0].second;
    for (const auto& host : hosts_) smallest = std::min(smallest, host.second);
    return smallest;
  }

  void keep_usable(std::vector<int>& values, const std::set<int>& usable, const std::string& name) {
    std::vector<int> kept;
    for (const int value : values) {
      if (std::find(kept.begin(), kept.end(), value) != kept.end()) continue;
      if (usable.count(value) != 0) {
        kept.push_back(value);
      } else {
        plan_.notices.push_back(fmt::format("{} {} is left out: {}", name, value, what_there_is()));
      }
    }
    values = std::move(kept);
  }

  std::string what_there_is() const {
    if (hosts_.size() == 1) return there_are(pool_.free());
    std::vector<std::string> parts;
    for (const auto& [name, count] : hosts_) {
      parts.push_back(fmt::format("{} on {}", count, name.empty() ? "localhost" : name));
    }
    const std::string bound = request_.max_slots ? fmt::format(" and --max-slots {}", *request_.max_slots) : "";
    return fmt::format("there are {}{}", fmt::join(parts, ", "), bound);
  }

  [[noreturn]] void does_not_fit(const std::string& wanted) const {
    const char* remedy = hosts_.size() > 1 ? "take fewer GPUs or nodes"
                                           : "give fewer per trial, or more with --slots, --max-slots or --hostfile";
    throw Error(fmt::format("{}, but {}: {}", wanted, what_there_is(), remedy));
  }

  const SlotRequest& request_;
  SlotPlan& plan_;
  const SlotPool pool_;
  const std::vector<std::pair<std::string, int>> hosts_;
};

}  // namespace

int trials_at_once(const SlotPlan& plan, const std::optional<int>& max_slots) {
  int most = 1;
  for (const TrialShape& shape : plan.shapes()) {
    SlotPool pool(plan.slots, max_slots);
    int count = 0;
    while (pool.take(shape)) ++count;
    most = std::max(most, count);
  }
  return most;
}

namespace {

// Describes the slots, what a trial takes, and which slots no trial will use.
void describe(SlotPlan& plan, const std::optional<int>& max_slots) {
  constexpr size_t kShownPlacements = 4;
  plan.at_once = trials_at_once(plan, max_slots);
  if (plan.slots.size() < 2) return;
  plan.placements.push_back("slots: " + slot_list(plan.slots));
  for (const TrialShape& shape : plan.shapes()) {
    SlotPool pool(plan.slots, max_slots);
    std::string shown;
    size_t count = 0;
    while (const auto placement = pool.take(shape)) {
      if (++count <= kShownPlacements) shown += (count > 1 ? " | " : "") + slot_list(*placement);
    }
    if (count == 0) continue;  // a pair of sizes that does not fit
    if (count > kShownPlacements) shown += " | ...";
    const std::string times = count == 1 ? "one" : fmt::format("up to {}", count);
    plan.placements.push_back(fmt::format("a trial takes {}, {} at a time: {}", text_of(shape), times, shown));
    const std::vector<Slot> idle = pool.free_slots();
    if (idle.empty() || max_slots) continue;
    plan.notices.push_back(fmt::format("{} {} idle: a trial takes {}", slot_list(idle),
                                       idle.size() == 1 ? "stays" : "stay", text_of(shape)));
  }
}

// Other programs on the study's devices use memory and slow the trials down.
std::optional<std::string> notice_of_busy_devices(const std::vector<Slot>& slots) {
  constexpr uint64_t kIdleBytes = uint64_t{1} << 30;  // less than this is used by screens and idle services
  std::vector<std::string> busy;
  for (const Slot& slot : slots) {
    if (slot.memory_in_use_bytes < kIdleBytes) continue;
    busy.push_back(
        fmt::format("{} of device {}", format_size(static_cast<double>(slot.memory_in_use_bytes)), slot.name()));
  }
  if (busy.empty()) return std::nullopt;
  return fmt::format(
      "other programs use {}: trials may run out of memory or be slow; end those programs, or leave the device out "
      "(--exclude, or the visibility variable)",
      fmt::join(busy, ", "));
}

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

TrialShape SlotPlan::shape_of(const Json& config) const {
  const std::optional<config::World> world = config::tuned_world(config);
  if (!world || !sizes_are_tuned()) return shape;
  return TrialShape::even(static_cast<int>(world->num_nodes), static_cast<int>(world->num_gpus));
}

std::vector<TrialShape> SlotPlan::shapes() const {
  if (!sizes_are_tuned()) return {shape};
  std::vector<TrialShape> all;
  for (const int nodes : num_nodes) {
    for (const int gpus : num_gpus) all.push_back(TrialShape::even(nodes, gpus));
  }
  return all;
}

SlotPlan plan_slots(const Devices& devices, const SlotRequest& request) {
  check_request(request);
  SlotPlan plan;
  plan.backend = devices.backend;
  plan.slots = find_slots(devices, request, plan.notices);
  const bool elsewhere =
      std::any_of(plan.slots.begin(), plan.slots.end(), [](const Slot& slot) { return !slot.host.empty(); });
  if (elsewhere) {
    plan.hostfile = request.hostfile;
    plan.hostfile_text = request.hostfile_text;
  }
  Planner(request, plan).choose();
  plan.slots_per_trial = plan.shape.slots();
  plan.device_memory_bytes = smallest_memory(plan.slots);
  describe(plan, request.max_slots);
  if (const auto notice = notice_of_busy_devices(plan.slots)) plan.notices.push_back(*notice);
  return plan;
}

}  // namespace dsat::host
