// Compares a file's keys with the list of Determined's keys. An unknown key that is near a known one counts as
// misspelt; other unknown keys are allowed.
#include "determined/misspelt_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "dsat/base/spelling.h"

namespace dsat::cli {
namespace {

// Determined's keys at the top level, and in the sections that dsat reads a part of.
constexpr const char* kKnown[] = {"bind_mounts",
                                  "checkpoint_policy",
                                  "checkpoint_storage",
                                  "data",
                                  "debug",
                                  "description",
                                  "entrypoint",
                                  "environment",
                                  "environment.add_capabilities",
                                  "environment.drop_capabilities",
                                  "environment.environment_variables",
                                  "environment.force_pull_image",
                                  "environment.image",
                                  "environment.pod_spec",
                                  "environment.ports",
                                  "environment.proxy_ports",
                                  "environment.registry_auth",
                                  "hyperparameters",
                                  "integrations",
                                  "internal",
                                  "labels",
                                  "log_policies",
                                  "max_restarts",
                                  "min_checkpoint_period",
                                  "min_validation_period",
                                  "name",
                                  "optimizations",
                                  "pbs",
                                  "perform_initial_validation",
                                  "preemption_timeout",
                                  "profiling",
                                  "project",
                                  "records_per_epoch",
                                  "reproducibility",
                                  "resources",
                                  "resources.agent_label",
                                  "resources.devices",
                                  "resources.is_single_node",
                                  "resources.max_slots",
                                  "resources.native_parallel",
                                  "resources.priority",
                                  "resources.resource_pool",
                                  "resources.shm_size",
                                  "resources.slots_per_trial",
                                  "resources.slots",
                                  "resources.weight",
                                  "retention_policy",
                                  "scheduling_unit",
                                  "searcher",
                                  "searcher.max_length",
                                  "searcher.metric",
                                  "searcher.name",
                                  "searcher.smaller_is_better",
                                  "slurm",
                                  "tensorboard_storage",
                                  "workspace"};

bool is_known(const std::string& key) {
  return std::any_of(std::begin(kKnown), std::end(kKnown), [&](const char* known) { return key == known; });
}

// The known key that is nearest to this one; empty: none is near.
std::string nearest(const std::string& key) {
  const size_t letters = key.size() - (key.rfind('.') + 1);  // npos + 1 is 0
  static const std::vector<std::string_view> known(std::begin(kKnown), std::end(kKnown));
  return std::string(nearest_name(key, known, std::max<size_t>(1, letters / 4)));
}

// The keys at the top level; a section of which dsat reads a part is replaced by its keys.
std::vector<std::string> keys_of(const YamlFile& file) {
  std::vector<std::string> keys;
  for (const auto& item : file.root().items()) {
    const std::string& section = item.key();
    const bool has_keys = section == "environment" || section == "resources" || section == "searcher";
    if (!has_keys || !item.value().is_object()) {
      keys.push_back(section);
      continue;
    }
    for (const auto& inner : item.value().items()) keys.push_back(fmt::format("{}.{}", section, inner.key()));
  }
  return keys;
}

}  // namespace

void refuse_misspelt_keys(const YamlFile& file) {
  for (const std::string& key : keys_of(file)) {
    const std::string meant = is_known(key) ? "" : nearest(key);
    if (!meant.empty()) file.refuse(key, fmt::format("is no key of an experiment: did you mean {}?", meant));
  }
}

std::vector<std::string> keys_without_effect(const YamlFile& file, const std::vector<std::string>& used) {
  std::vector<std::string> keys = keys_of(file);
  const auto is_used = [&](const std::string& key) { return std::find(used.begin(), used.end(), key) != used.end(); };
  keys.erase(std::remove_if(keys.begin(), keys.end(), is_used), keys.end());
  return keys;
}

}  // namespace dsat::cli
