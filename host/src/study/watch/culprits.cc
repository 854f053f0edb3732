// Keeps what has trained, and the failures by their text. After each trial the failures of a text are divided among
// their suspects: the most common causes take their failures, and the rest is divided again.
#include "study/watch/culprits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "dsat/config/batch.h"
#include "dsat/config/defaults.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "study/watch/failure_watch.h"

namespace dsat::host {
namespace {

// Fewer failures prove nothing.
constexpr size_t kLeast = 2;
// So many failures show that a cause is not the micro batch, if they have another one in common.
constexpr size_t kNotOfSize = 3;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// What lies between the digits of one number: the point of 0.5, the e+ of 1e+06, and the x of 0x7f with what follows.
size_t joint_of_number(const std::string& text, size_t at, bool& is_address) {
  if (text[at] == 'x') return is_address = true, 1;
  const bool has_exponent = text.compare(at, 2, "e+") == 0 || text.compare(at, 2, "e-") == 0;
  const size_t length = text[at] == '.' ? 1 : has_exponent ? 2 : 0;
  return length > 0 && at + length < text.size() && is_digit(text[at + length]) ? length : 0;
}

// Numbers differ between failures that are alike: sizes, ports, norms, addresses in hexadecimal digits.
std::string without_numbers(const std::string& text) {
  std::string out;
  bool is_address = false;
  for (size_t i = 0; i < text.size();) {
    const bool is_inside = !out.empty() && out.back() == '#';
    is_address = is_address && is_inside && std::isxdigit(static_cast<unsigned char>(text[i])) != 0;
    if (is_digit(text[i]) || is_address) {
      if (!is_inside) out += '#';
      ++i;
    } else if (const size_t joint = is_inside ? joint_of_number(text, i, is_address) : 0) {
      i += joint;
    } else {
      out += text[i++];
    }
  }
  return out;
}

bool contains(const std::vector<int>& features, const std::pair<int, int>& cause) {
  const auto has = [&](int feature) { return std::binary_search(features.begin(), features.end(), feature); };
  return has(cause.first) && has(cause.second);
}

// Each feature alone, and each pair of them.
template <class Visit>
void for_each_cause(const std::vector<int>& features, const Visit& visit) {
  for (size_t i = 0; i < features.size(); ++i) {
    for (size_t j = i; j < features.size(); ++j) visit(std::pair<int, int>(features[i], features[j]));
  }
}

std::string name_of(const config::Axis& axis, const Json& value) {
  return fmt::format("{} {}", axis.key, config::text_of(value));
}
std::string name_of_stage(int stage) { return fmt::format("{} {}", config::kStageKey, stage); }

// The name of each feature of a configuration: its stage, and its value of each key that is tuned. A key that is left
// out of one that `trained` has DeepSpeed's default: else a default would be blamed that trains all the time.
template <class Visit>
void for_each_name(const Json& config, const config::Space& space, bool trained, const Visit& visit) {
  const int stage = config::zero_stage(config);
  visit(name_of_stage(stage), space.stages.size(), true);
  std::set<std::string> seen;
  for (const config::StageSpace& of_stage : space.stages) {
    for (const config::Axis& axis : of_stage.axes) {
      const Json* given = config::find(config, axis.key);
      const bool is_read = trained && given == nullptr && of_stage.stage == stage;
      const Json value = is_read ? config::deepspeed_default(axis.key, stage) : given != nullptr ? *given : Json();
      if (value.is_null() || !seen.insert(axis.key).second) continue;
      visit(name_of(axis, value), axis.values.size(), false);
    }
  }
}

}  // namespace

std::vector<Culprits::Feature> Culprits::features_of(const Json& config, const config::Space& space, bool trained) {
  std::vector<Feature> features;
  for_each_name(config, space, trained, [&](const std::string& text, size_t values, bool is_stage) {
    const auto [at, is_new] = features_.emplace(text, static_cast<Feature>(names_.size()));
    if (is_new) names_.push_back({text, values, is_stage});
    features.push_back(at->second);
  });
  std::sort(features.begin(), features.end());
  return features;
}

std::vector<Culprits::Feature> Culprits::known_features(const std::vector<std::string>& texts) const {
  std::vector<Feature> features;
  for (const std::string& text : texts) {
    const auto at = features_.find(text);
    if (at != features_.end()) features.push_back(at->second);
  }
  std::sort(features.begin(), features.end());
  return features;
}

bool Culprits::is_stage(const Cause& cause) const {
  return cause.first == cause.second && names_[static_cast<size_t>(cause.first)].is_stage;
}

// Has this trial cleared anything?
bool Culprits::learn_training(const Trial& trial, const std::vector<Feature>& features) {
  const auto micro_batch = trial.record.config.value(config::kMicroBatchKey, int64_t{0});
  const bool is_extreme =
      trained_sizes_.empty() || micro_batch > *trained_sizes_.rbegin() || micro_batch < *trained_sizes_.begin();
  if (is_extreme) trained_sizes_.insert(micro_batch);
  const size_t before = trained_.size();
  for_each_cause(features, [&](const Cause& cause) { trained_.insert(cause); });
  return is_extreme || trained_.size() > before;
}

void Culprits::add(const Trial& trial, const config::Space& space) {
  if (!trial.costs_a_run() || trial.phase > Phase::searcher || !trial.end || !trial.record.outcome) return;
  const Outcome outcome = *trial.record.outcome;
  const bool trained = outcome == Outcome::completed && !trial.model_info;
  const bool failed = outcome == Outcome::failed || outcome == Outcome::timed_out || outcome == Outcome::diverged ||
                      trial.lacked_host_memory();
  if (!trained && !failed) return;
  // The cause of these is known: a checkpoint, a trial that ran another configuration, the script.
  if (!trained && (trial.end->from_checkpoint || trial.end->deviation || is_of_code(trial))) return;
  std::vector<Feature> features;
  try {
    features = features_of(trial.record.config, space, trained);
  } catch (const Error&) {  // nobody can read this configuration
    return;
  }
  smallest_ = space.min_micro_batch;
  if (trained) {
    if (!learn_training(trial, features)) return;
    for (const auto& [text, failures] : alike_) suspect_anew(text);
    return;
  }
  const std::string& how = how_it_failed(trial);
  const std::string text = without_numbers(how);
  std::vector<Failure>& alike = alike_[text];
  const auto micro_batch = trial.record.config.value(config::kMicroBatchKey, int64_t{0});
  alike.push_back({trial.id(), micro_batch, std::move(features), how});
  if (alike.size() > kMostKept) alike.erase(alike.begin());
  suspect_anew(text);
}

void Culprits::suspect_anew(const std::string& text) {
  const std::vector<Failure>& failures = alike_.at(text);
  std::vector<Suspicion>& suspicions = suspicions_[text] = suspicions_of(failures);
  if (std::optional<Suspicion> size = size_of(failures)) suspicions.push_back(std::move(*size));
}

void Culprits::forget_failures() {
  alike_.clear();
  suspicions_.clear();
}

// Each suspicion keeps its newest failures, one fewer than it takes.
void Culprits::give_new_chance() {
  std::map<std::string, std::set<uint64_t>> kept;
  for (const auto& [text, suspicions] : suspicions_) {
    for (const Suspicion& suspicion : suspicions) {
      const std::vector<Failure>& failures = suspicion.failures;
      const size_t most = (suspicion.from_size ? kNotOfSize : kLeast) - 1;
      for (size_t i = failures.size() - std::min(failures.size(), most); i < failures.size(); ++i) {
        kept[text].insert(failures[i].trial);
      }
    }
  }
  for (const auto& [text, trials] : kept) {
    std::vector<Failure>& alike = alike_[text];
    const auto is_old = [&stay = trials](const Failure& failure) { return stay.count(failure.trial) == 0; };
    alike.erase(std::remove_if(alike.begin(), alike.end(), is_old), alike.end());
    suspect_anew(text);
  }
}

// The causes without training that most of the failures share, by the failures that have them. Pairs count only where
// no single feature is as common.
Culprits::Causes Culprits::most_common_causes(const std::vector<Failure>& failures) const {
  std::map<Cause, Shared> shared;
  for (size_t i = 0; i < failures.size(); ++i) {
    for_each_cause(failures[i].features, [&](const Cause& cause) {
      if (trained_.count(cause) == 0) shared[cause].set(i);
    });
  }
  size_t most = 0;
  for (const auto& [cause, with] : shared) most = std::max(most, with.count());
  Causes causes;
  const auto is_common = [&](const auto& entry) { return entry.second.count() == most; };
  const auto is_single = [&](const auto& entry) { return is_common(entry) && entry.first.first == entry.first.second; };
  const bool any_single = std::any_of(shared.begin(), shared.end(), is_single);
  for (const auto& entry : shared) {
    if (any_single ? is_single(entry) : is_common(entry)) causes[entry.second].insert(entry.first);
  }
  return causes;
}

// Does the micro batch of this failure lie beyond all that trained? While none has, a larger one than the least may
// simply be too large.
bool Culprits::may_be_of_size(const Failure& failure) const {
  if (trained_sizes_.empty()) return failure.micro_batch > smallest_;
  return failure.micro_batch > *trained_sizes_.rbegin() || failure.micro_batch < *trained_sizes_.begin();
}

std::vector<Culprits::Suspicion> Culprits::suspicions_of(std::vector<Failure> failures) const {
  std::vector<Suspicion> suspicions;
  while (failures.size() >= kLeast) {
    const Causes causes = most_common_causes(failures);
    const size_t most = causes.empty() ? 0 : causes.begin()->first.count();
    Shared of_size, of_causes;
    for (size_t i = 0; i < failures.size(); ++i) of_size.set(i, may_be_of_size(failures[i]));
    for (const auto& [with, same] : causes) of_causes |= with;
    const bool is_size = of_size.count() >= std::max(kLeast, of_causes.count()) && most < kNotOfSize;
    if (!is_size && most < kLeast) break;
    Shared explained = of_size;
    if (!is_size) explained = suspect(causes, failures, suspicions);
    std::vector<Failure> rest;
    for (size_t i = 0; i < failures.size(); ++i) {
      if (!explained.test(i)) rest.push_back(std::move(failures[i]));
    }
    failures = std::move(rest);
  }
  return suspicions;
}

// Micro batches above all that trained have failed so often, and with so little in common, that the size is the cause.
std::optional<Culprits::Suspicion> Culprits::size_of(const std::vector<Failure>& failures) const {
  if (trained_sizes_.empty()) return std::nullopt;
  Suspicion suspicion;
  std::map<Feature, size_t> shared;  // by failures, of those without training
  for (const Failure& failure : failures) {
    if (failure.micro_batch <= *trained_sizes_.rbegin()) continue;
    suspicion.from_size = std::min(suspicion.from_size.value_or(failure.micro_batch), failure.micro_batch);
    suspicion.failures.push_back(failure);
    for (const Feature feature : failure.features) {
      if (trained_.count({feature, feature}) == 0) ++shared[feature];
    }
  }
  const size_t count = suspicion.failures.size();
  const bool is_explained = std::any_of(shared.begin(), shared.end(),
                                        [&](const auto& feature) { return kNotOfSize * feature.second > count; });
  return count < kNotOfSize || is_explained ? std::nullopt : std::optional<Suspicion>(std::move(suspicion));
}

// Causes of the same failures are suspects of one crime. Others have a crime of their own if they alone explain a
// failure; if none does, all of them are suspects of one.
Culprits::Shared Culprits::suspect(const Causes& causes, const std::vector<Failure>& failures,
                                   std::vector<Suspicion>& suspicions) const {
  Shared once, more;
  for (const auto& [with, same] : causes) {
    more |= once & with;
    once |= with;
  }
  const auto add = [&](const Shared& with, std::set<Cause> suspects) {
    Suspicion suspicion{std::move(suspects), {}, causes.begin()->first.count()};
    for (size_t i = 0; i < failures.size(); ++i) {
      if (with.test(i)) suspicion.failures.push_back(failures[i]);
    }
    suspicions.push_back(std::move(suspicion));
  };
  std::set<Cause> all;
  Shared explained;
  for (const auto& [with, same] : causes) {
    all.insert(same.begin(), same.end());
    if ((with & ~more).none()) continue;
    explained |= with;
    add(with, same);
  }
  if (explained.any()) return explained;
  add(once, std::move(all));
  return once;
}

// A value of many is less likely to be the cause than one of two.
double Culprits::weight(const Cause& cause) const {
  const auto of = [this](Feature feature) {
    return 1 / static_cast<double>(std::max<size_t>(1, names_[static_cast<size_t>(feature)].values));
  };
  return cause.first == cause.second ? of(cause.first) : of(cause.first) * of(cause.second);
}

// The more failures there were, the less risk is taken. A stage is suspected before any value, because its values
// mostly run at other stages; alone it is tried once more, because only this can clear it.
bool Culprits::would_fail(const Suspicion& suspicion, const std::vector<Feature>& features) const {
  double all = 0, here = 0;
  size_t count = 0;
  bool suspects_stage = false, has_stage = false;
  for (const Cause& cause : suspicion.suspects) {
    const bool is_here = contains(features, cause);
    const bool of_stage = is_stage(cause);
    all += weight(cause);
    if (is_here) here += weight(cause);
    count += is_here ? 1 : 0;
    suspects_stage |= of_stage;
    has_stage |= of_stage && is_here;
  }
  if (count == 0) return false;
  if (suspicion.suspects.size() == 1) return true;
  if (suspects_stage) return has_stage && count > 1;
  return here * static_cast<double>(suspicion.most) > all;
}

std::string Culprits::why_refused(const Json& config, const config::Space& space) const {
  if (alike_.empty()) return "";
  std::vector<std::string> texts;
  try {
    for_each_name(config, space, false, [&](const std::string& text, size_t, bool) { texts.push_back(text); });
  } catch (const Error&) {
    return "";
  }
  const std::vector<Feature> features = known_features(texts);
  const auto micro_batch = config.value(config::kMicroBatchKey, int64_t{0});
  for (const auto& [text, suspicions] : suspicions_) {
    for (const Suspicion& suspicion : suspicions) {
      const bool is_too_large = suspicion.from_size && micro_batch >= *suspicion.from_size;
      if (is_too_large || would_fail(suspicion, features)) return describe(suspicion);
    }
  }
  return "";
}

bool Culprits::suspects_of(const Trial& failed) const {
  for (const auto& [text, suspicions] : suspicions_) {
    for (const Suspicion& suspicion : suspicions) {
      for (const Failure& failure : suspicion.failures) {
        if (failure.trial == failed.id()) return true;
      }
    }
  }
  return false;
}

std::string Culprits::text_of(const Cause& cause) const {
  const std::string& first = names_[static_cast<size_t>(cause.first)].text;
  return cause.first == cause.second ? first
                                     : fmt::format("{} with {}", first, names_[static_cast<size_t>(cause.second)].text);
}

std::string Culprits::describe(const Suspicion& suspicion) const {
  std::vector<std::string> suspects;
  if (suspicion.from_size)
    suspects.push_back(fmt::format("{} from {} on", config::kMicroBatchKey, *suspicion.from_size));
  for (const Cause& cause : suspicion.suspects) suspects.push_back(text_of(cause));
  std::vector<uint64_t> trials;
  for (const Failure& failure : suspicion.failures) trials.push_back(failure.trial);
  return fmt::format("{} always failed (trials {}): {}", fmt::join(suspects, " or "), fmt::join(trials, ", "),
                     suspicion.failures.front().reason);
}

std::vector<std::string> Culprits::found() const {
  std::vector<std::string> lines;
  for (const auto& [text, suspicions] : suspicions_) {
    for (const Suspicion& suspicion : suspicions) {
      if (suspicion.suspects.size() == 1) lines.push_back(describe(suspicion));
    }
  }
  return lines;
}

std::vector<std::string> Culprits::take_news() {
  std::vector<std::string> news;
  for (const auto& [text, suspicions] : suspicions_) {
    for (const Suspicion& suspicion : suspicions) {
      if (suspicion.suspects.size() != 1) continue;
      if (reported_.insert(text_of(*suspicion.suspects.begin())).second) news.push_back(describe(suspicion));
    }
  }
  return news;
}

bool Culprits::refuses(const std::vector<std::string>& texts) const {
  const std::vector<Feature> features = known_features(texts);
  return std::any_of(suspicions_.begin(), suspicions_.end(), [&](const auto& of_text) {
    return std::any_of(of_text.second.begin(), of_text.second.end(),
                       [&](const Suspicion& suspicion) { return would_fail(suspicion, features); });
  });
}

bool Culprits::refuse_all(const config::Space& space) const {
  return !suspicions_.empty() &&
         std::all_of(space.stages.begin(), space.stages.end(), [&](const config::StageSpace& of_stage) {
           const std::string stage = name_of_stage(of_stage.stage);
           const auto is_refused = [&](const config::Axis& axis) {
             return std::all_of(axis.values.begin(), axis.values.end(), [&](const Json& value) {
               return refuses({stage, name_of(axis, value)});
             });
           };
           return refuses({stage}) || std::any_of(of_stage.axes.begin(), of_stage.axes.end(), is_refused);
         });
}

bool Culprits::blame_script(const Trial& failed, const config::Space& space) const {
  const auto at = alike_.find(without_numbers(how_it_failed(failed)));
  if (!trained_.empty() || at == alike_.end()) return false;
  std::vector<Feature> shared = at->second.front().features;
  std::set<Feature> seen;
  for (const Failure& failure : at->second) {
    std::vector<Feature> both;
    std::set_intersection(shared.begin(), shared.end(), failure.features.begin(), failure.features.end(),
                          std::back_inserter(both));
    shared = std::move(both);
    seen.insert(failure.features.begin(), failure.features.end());
  }
  return shared.empty() &&
         std::all_of(space.stages.begin(), space.stages.end(), [&](const config::StageSpace& of_stage) {
           const auto stage = features_.find(name_of_stage(of_stage.stage));
           return stage != features_.end() && seen.count(stage->second) != 0;
         });
}

}  // namespace dsat::host
