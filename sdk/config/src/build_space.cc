// build_space(): lays out the default space, the user's lists and the space file by stage, without values that the
// rules forbid.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "default_axes.h"
#include "dsat/base/affix.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/space.h"
#include "dsat/config/world.h"
#include "settle_conditions.h"
#include "space_entries.h"
#include "values.h"
#include "zero_values.h"

namespace dsat::config {
namespace {

// On processors one of two values is wrong at ZeRO 1 and 2, so this key is no axis there.
bool is_fixed(const Axis& axis, int stage, const RuleOptions& rules) {
  return rules.on_processors && (stage == 1 || stage == 2) && axis.key == kContiguousKey;
}

bool applies(const SpaceEntry& entry, int stage) {
  if (!entry.stages) return stage >= lowest_stage(entry.key);
  return std::find(entry.stages->begin(), entry.stages->end(), stage) != entry.stages->end();
}

void put(std::vector<Axis>& axes, const SpaceEntry& entry) {
  for (Axis& axis : axes) {
    if (axis.key == entry.key) {
      axis.values = entry.values;
      return;
    }
  }
  axes.push_back({entry.key, entry.values});
}

// Does the axis have only the base's value? A missing key means "none" for an offload device, false for the old switch.
bool equals_base(const Json& base, const Axis& axis) {
  const Json& value = axis.values.front();
  const Json* given = find(base, axis.key);
  if (given != nullptr && !given->is_null()) return same_value(*given, value);
  return switches_offload(axis.key) && (value == "none" || value == false);
}

struct StageOutcome {
  std::optional<StageSpace> space;  // nullopt: the stage is forbidden
  std::string why_not;
  bool base_forbids = false;  // the base configuration forbids the stage, not an axis
  std::vector<std::string> notices;
};

// forbids_stage() for a configuration without the keys of `axes`. If a rule demands such a key, a value of its axis may
// satisfy the rule.
std::optional<std::string> forbids_with(const std::vector<Axis>& axes, const Json& config, int stage,
                                        const RuleOptions& rules) {
  const std::optional<std::string> broken = forbids_stage(config, stage, rules);
  if (!broken) return std::nullopt;
  for (const Axis& axis : axes) {
    if (find(config, axis.key) != nullptr) continue;
    for (const Json& value : axis.values) {
      Json probe = config;
      set(probe, axis.key, value);
      if (!forbids_stage(probe, stage, rules)) return std::nullopt;
    }
  }
  return broken;
}

// Checks each axis against the rules without the other axes. Two values that only clash together stay, and the trial
// that combines them is refused later.
StageOutcome lay_out(int stage, const std::vector<Axis>& axes, const Json& base, const RuleOptions& rules) {
  StageOutcome out;
  Json neutral = base;
  for (const Axis& axis : axes) erase(neutral, axis.key);
  if (const auto broken = forbids_with(axes, neutral, stage, rules)) {
    out.why_not = *broken;
    out.base_forbids = true;
    return out;
  }
  out.space = StageSpace{stage, {}};
  for (const Axis& axis : axes) {
    Axis legal{axis.key, {}};
    for (const Json& value : axis.values) {
      Json probe = neutral;
      set(probe, axis.key, value);
      const auto broken = forbids_with(axes, probe, stage, rules);
      if (!broken) {
        legal.values.push_back(value);
        continue;
      }
      out.why_not = *broken;
      out.notices.push_back(fmt::format("stage {} leaves out {} {}: {}", stage, axis.key, shown(value), *broken));
    }
    if (legal.values.empty()) {
      out.space.reset();
      out.notices.clear();
      return out;
    }
    if (legal.values.size() > 1 || !equals_base(base, legal)) out.space->axes.push_back(std::move(legal));
  }
  return out;
}

// Stages that are left out for the same reason.
struct LeftOut {
  std::string why;
  std::vector<int> stages;
};

void leave_out(std::vector<LeftOut>& reasons, int stage, const std::string& why) {
  const auto same =
      std::find_if(reasons.begin(), reasons.end(), [&](const LeftOut& other) { return other.why == why; });
  if (same == reasons.end()) {
    reasons.push_back({why, {stage}});
  } else {
    same->stages.push_back(stage);
  }
}

std::vector<int> wanted_stages(const std::vector<int>& requested) {
  std::vector<int> stages = requested;
  std::sort(stages.begin(), stages.end());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  if (stages.empty()) throw Error("no ZeRO stage is wanted; name some of 0 1 2 3 with --zero-stages");
  if (stages.front() < 0 || stages.back() > 3) throw Error("--zero-stages takes 0, 1, 2 and 3 only");
  return stages;
}

// Collects axes. Two keys give no axis: stages restrict `stages`, micro batches bound `space`.
class Builder {
 public:
  explicit Builder(const SpaceRequest& request)
      : request_(request), base_(request.user_config), stages_(wanted_stages(request.stages)) {
    space().min_micro_batch = request.rules.min_micro_batch;
    space().max_micro_batch = request.rules.max_micro_batch;
    if (request.rules.min_micro_batch < 1) throw Error("--min-micro-batch must be at least 1");
  }

  SpaceResult build() {
    const Json* stage = find(base_, kStageKey);
    const Json* section = find(base_, "zero_optimization");
    const bool every_stage = (stage != nullptr && *stage == "all") || (section != nullptr && *section == "all");
    std::vector<SpaceEntry> user = take_user_entries(base_, request_.config_name);
    zero_stage(base_);  // an invalid stage of the user's is reported here, before trials replace it
    std::vector<SpaceEntry> file = read_space_file(request_.space_file, request_.space_name);
    for (const auto* entries : {&user, &file}) {
      for (const SpaceEntry& entry : *entries) take(entry);
    }
    bound_micro_batch();
    settle_lists(user);
    take_world();
    check_partitions();
    fix_contiguous_gradients();
    settle_all_conditions();
    add_stages();
    const bool stage_listed = std::any_of(user.begin(), user.end(), [](const auto& e) { return e.key == kStageKey; });
    if (every_stage || (stage_listed && space().stage(zero_stage(base_)) == nullptr)) {
      set(base_, kStageKey, space().stages.front().stage);
    }
    result_.base_config = std::move(base_);
    return std::move(result_);
  }

 private:
  Space& space() { return result_.space; }

  void take(const SpaceEntry& entry) {
    if (entry.key == kStageKey) {
      restrict_stages(entry);
    } else if (entry.key == kMicroBatchKey) {
      restrict_micro_batch(entry);
    } else if (entry.key == kAccumulationKey && request_.global_batch) {
      throw Error(entry.origin + ": " + entry.key + " follows from --global-batch and cannot be tuned; keep one");
    } else {
      replace_switch(entry.key);
      entries_.push_back(entry);
      refuse_replaced();
    }
  }

  // DeepSpeed refuses an older switch beside the section that replaced it. So an axis in the section replaces the
  // switch.
  void replace_switch(const std::string& key) {
    constexpr std::pair<const char*, const char*> kReplaced[] = {
        {"zero_optimization.cpu_offload", "zero_optimization.offload_optimizer."},
        {"zero_optimization.cpu_offload_param", "zero_optimization.offload_param."}};
    for (const auto& [older, section] : kReplaced) {
      const Json* given = find(base_, older);
      if (!starts_with(key, section) || given == nullptr) continue;
      const bool offloads = *given == true;
      erase(base_, older);
      if (offloads) set(base_, std::string(section) + "device", "cpu");
    }
  }

  // Refuses an older switch together with its replacement, as axes or in the configuration. The last axis is the one
  // that clashes.
  void refuse_replaced() const {
    Json merged = base_;
    for (const SpaceEntry& entry : entries_) set(merged, entry.key, entry.values.front());
    const Json* zero = find(merged, "zero_optimization");
    if (zero == nullptr || !zero->is_object()) return;
    if (const auto broken = broken_by_replaced(*zero)) throw Error(entries_.back().origin + ": " + *broken);
  }

  // The number of devices is an axis of every stage.
  void take_world() {
    erase(base_, kNumGpusKey);
    erase(base_, kNumNodesKey);
    if (request_.num_gpus.empty() || request_.num_nodes.empty()) return share_out_world();
    const auto add = [&](const char* key, const std::vector<int>& sizes) {
      set(base_, key, sizes.front());
      entries_.push_back({key, {sizes.begin(), sizes.end()}, std::nullopt, "the number of devices"});
    };
    add(kNumGpusKey, request_.num_gpus);
    add(kNumNodesKey, request_.num_nodes);
  }

  // Trials have the same size, but different data-parallel sizes.
  void share_out_world() {
    const auto tunes = [](const SpaceEntry& entry) { return entry.key == kPipelineStagesKey; };
    const auto entry = std::find_if(entries_.begin(), entries_.end(), tunes);
    if (entry == entries_.end()) return;
    const int64_t slots = request_.world.size();
    for (const Json& value : entry->values) {
      if (slots % value.get<int64_t>() == 0) continue;
      throw Error(
          fmt::format("{}: {} lists {}, which does not divide the {} slots of a trial; leave it out or change "
                      "--slots-per-trial",
                      entry->origin, entry->key, shown(value), slots));
    }
    set(base_, kNumGpusKey, request_.world.num_gpus);
    set(base_, kNumNodesKey, request_.world.num_nodes);
  }

  // Refuses a partition size that no trial can use. Trials that differ in size are not checked.
  void check_partitions() const {
    if (!request_.num_gpus.empty()) return;
    for (const SpaceEntry& entry : entries_) {
      if (entry.key != "zero_optimization.zero_hpz_partition_size" &&
          entry.key != "zero_optimization.mics_shard_size") {
        continue;
      }
      for (const Json& value : entry.values) {
        Json probe = Json::object();
        set(probe, kStageKey, 3);
        set(probe, entry.key, value);
        if (const auto broken = broken_rule(probe, request_.rules)) throw Error(entry.origin + ": " + *broken);
      }
    }
  }

  // All values that trials may have of a key; nullopt: unknown.
  std::optional<std::vector<Json>> possible_values(const std::string& key) const {
    if (key == kStageKey) return std::vector<Json>(stages_.begin(), stages_.end());
    if (key == kMicroBatchKey || (key == kAccumulationKey && request_.global_batch)) return std::nullopt;
    if (key == kWorldSizeWord) return world_sizes();
    std::vector<Json> values;
    const Json* own = find(base_, key);
    if (own != nullptr && *own == "auto") return std::nullopt;
    if (own != nullptr && !own->is_structured()) values.push_back(*own);
    const auto add = [&, &key = key](const std::string& other, const std::vector<Json>& some) {
      if (other == key) values.insert(values.end(), some.begin(), some.end());
    };
    for (const SpaceEntry& entry : entries_) add(entry.key, entry.values);
    for (const Axis& axis : default_axes(request_.default_axes ? 3 : 0)) add(axis.key, axis.values);
    if (values.empty() && key == kAccumulationKey) values.emplace_back(1);
    return values;
  }

  std::optional<std::vector<Json>> world_sizes() const {
    std::vector<Json> sizes;
    for (const int gpus : request_.num_gpus) {
      for (const int nodes : request_.num_nodes) sizes.emplace_back(int64_t{gpus} * nodes);
    }
    if (sizes.empty() && !request_.rules.world_size) return std::nullopt;
    return sizes.empty() ? std::vector<Json>{*request_.rules.world_size} : sizes;
  }

  void settle_all_conditions() {
    const PossibleValues possible = [this](const std::string& key) { return possible_values(key); };
    for (SpaceEntry& entry : entries_) {
      if (entry.conditions.empty()) continue;
      if (!entry.stages) {
        entry.stages.emplace();
        for (const int stage : {0, 1, 2, 3}) {
          if (stage >= lowest_stage(entry.key)) entry.stages->push_back(stage);
        }
      }
      const Json* own = find(base_, entry.key);
      const auto is_own = [&](const Json& value) { return own != nullptr && same_value(*own, value); };
      const bool is_usual = std::any_of(entry.values.begin(), entry.values.end(), is_own);
      const Json usual = is_usual ? *own : entry.values.front();
      for (Condition& open : settle_conditions(entry, usual, possible, result_.notices)) {
        space().conditions.push_back(std::move(open));
      }
    }
  }

  // Replaces the user's own false where it is wrong: in the base configuration at ZeRO 1 and 2, and in all trials
  // there.
  void fix_contiguous_gradients() {
    const Json* given = find(base_, kContiguousKey);
    if (!request_.rules.on_processors || given == nullptr || *given != false) return;
    entries_.insert(entries_.begin(), {kContiguousKey, {true}, std::vector<int>{1, 2}, request_.config_name});
    const int stage = zero_stage(base_);
    if (stage == 1 || stage == 2) set(base_, kContiguousKey, true);
    result_.notices.push_back(fmt::format(
        "{} is false in {}: on processors DeepSpeed then reduces no gradient at ZeRO 1 and 2, so it is true "
        "there",
        kContiguousKey, request_.config_name));
  }

  void restrict_stages(const SpaceEntry& entry) {
    std::vector<int> kept;
    for (const int stage : stages_) {
      const auto same = [stage](const Json& value) { return value == stage; };
      if (std::any_of(entry.values.begin(), entry.values.end(), same)) kept.push_back(stage);
    }
    if (kept.empty()) {
      throw Error(fmt::format("no ZeRO stage is left: {} lists {} {} and --zero-stages has {}; let them share one",
                              entry.origin, kStageKey, shown(Json(entry.values)), shown(Json(stages_))));
    }
    if (kept.size() < entry.values.size()) {
      result_.notices.push_back(fmt::format("{} lists {} {}, --zero-stages leaves {}", entry.origin, kStageKey,
                                            shown(Json(entry.values)), shown(Json(kept))));
    }
    stages_ = std::move(kept);
  }

  // A list of micro batches gives their range. Sizes between its values are searched too.
  void restrict_micro_batch(const SpaceEntry& entry) {
    int64_t low = std::numeric_limits<int64_t>::max();
    int64_t high = 1;
    for (const Json& value : entry.values) {
      low = std::min(low, value.get<int64_t>());
      high = std::max(high, value.get<int64_t>());
    }
    space().min_micro_batch = std::max(space().min_micro_batch, low);
    space().max_micro_batch = std::min(space().max_micro_batch.value_or(high), high);
    result_.notices.push_back(
        fmt::format("{} lists micro batches: they are searched from {} to {}", entry.origin, low, high));
  }

  void bound_micro_batch() {
    const int64_t low = space().min_micro_batch;
    if (space().max_micro_batch && *space().max_micro_batch < low) {
      throw Error(
          fmt::format("no micro batch is left: the smallest allowed is {} and the largest {}; check --min-micro-batch, "
                      "--max-micro-batch and {}",
                      low, *space().max_micro_batch, kMicroBatchKey));
    }
    if (!request_.global_batch) return;
    // No training is that large, and divisors are found fast enough.
    constexpr int64_t kMaxGlobalBatch = int64_t{1} << 40;
    const int64_t global = *request_.global_batch;
    if (global < 1 || global > kMaxGlobalBatch) {
      throw Error(fmt::format("--global-batch is {}; it must be from 1 to {}", global, kMaxGlobalBatch));
    }
    if (request_.dp_size < 1) throw Error("the data-parallel size must be at least 1");
    if (global % request_.dp_size != 0) {
      throw Error(
          fmt::format("--global-batch {} is not a multiple of the data-parallel size {}", global, request_.dp_size));
    }
    space().micro_batch_divides = global / request_.dp_size;
    require_divisor();
  }

  void require_divisor() {
    const int64_t number = *space().micro_batch_divides;
    for (int64_t divisor = 1; divisor <= number / divisor; ++divisor) {
      if (number % divisor != 0) continue;
      if (space().allows_micro_batch(divisor) || space().allows_micro_batch(number / divisor)) return;
    }
    throw Error(
        fmt::format("no micro batch is left: none within the bounds divides --global-batch / data-parallel size = {}; "
                    "check --global-batch, --min-micro-batch, --max-micro-batch and {}",
                    number, kMicroBatchKey));
  }

  // Each list in base_ was replaced by its first value. Here each key gets the first value that is allowed at the
  // base's own stage, or at the first wanted stage at which every list has such a value.
  void settle_lists(const std::vector<SpaceEntry>& user) {
    std::vector<int> stages{zero_stage(base_)};
    stages.insert(stages.end(), stages_.begin(), stages_.end());
    Json neutral = base_;
    for (const SpaceEntry& entry : user) {
      if (entry.key != kStageKey) erase(neutral, entry.key);
    }
    for (const int stage : stages) {
      Json settled = base_;
      const bool all = std::all_of(user.begin(), user.end(), [&](const SpaceEntry& entry) {
        return entry.key == kStageKey || set_first_allowed(settled, neutral, entry, stage);
      });
      if (!all) continue;
      base_ = std::move(settled);
      return;
    }
  }

  bool set_first_allowed(Json& base, const Json& neutral, const SpaceEntry& entry, int stage) const {
    for (const Json& value : entry.values) {
      Json probe = neutral;
      set(probe, entry.key, value);
      if (forbids_stage(probe, stage, request_.rules)) continue;
      set(base, entry.key, value);
      return true;
    }
    return false;
  }

  void add_stages() {
    std::vector<LeftOut> left_out;
    for (const int stage : stages_) {
      std::vector<Axis> axes = request_.default_axes ? default_axes(stage) : std::vector<Axis>();
      axes.erase(std::remove_if(axes.begin(), axes.end(),
                                [&](const Axis& axis) { return is_fixed(axis, stage, request_.rules); }),
                 axes.end());
      for (const SpaceEntry& entry : entries_) {
        if (applies(entry, stage)) put(axes, entry);
      }
      StageOutcome outcome = lay_out(stage, axes, base_, request_.rules);
      if (outcome.space) {
        space().stages.push_back(std::move(*outcome.space));
      } else {
        leave_out(left_out, stage, (outcome.base_forbids ? request_.config_name + ": " : "") + outcome.why_not);
      }
      result_.notices.insert(result_.notices.end(), outcome.notices.begin(), outcome.notices.end());
    }
    std::string reasons;
    for (const LeftOut& some : left_out) {
      const bool one = some.stages.size() == 1;
      const std::string named = fmt::format("stage{} {}", one ? "" : "s", fmt::join(some.stages, ", "));
      result_.notices.push_back(fmt::format("ZeRO {} {} left out: {}", named, one ? "is" : "are", some.why));
      reasons += fmt::format("; {}: {}", named, some.why);
    }
    if (space().stages.empty()) throw Error("no ZeRO stage is left to tune" + reasons);
  }

  const SpaceRequest& request_;
  Json base_;
  std::vector<int> stages_;
  std::vector<SpaceEntry> entries_;  // a later entry replaces an earlier one with the same key
  SpaceResult result_;
};

}  // namespace

SpaceResult build_space(const SpaceRequest& request) { return Builder(request).build(); }

}  // namespace dsat::config
