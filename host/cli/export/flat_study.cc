// Makes one flat row for each trial. Text of scripts and plugins is made printable, so that a table's line stays one
// line.
#include "export/flat_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dsat/config/json.h"
#include "terminal/console.h"

namespace dsat::cli {

std::string leaf_text(const Json& leaf) {
  if (leaf.is_null()) return "";
  if (leaf.is_string()) return one_line(leaf.get<std::string>());
  return config::text_of(leaf);
}

std::vector<size_t> exported_trials(const host::StudyFacts& facts) {
  std::vector<size_t> trials;
  for (size_t i = 0; i < facts.record.trials.size(); ++i) {
    const host::TrialRecord& trial = facts.record.trials[i];
    if (trial.started() && !trial.duplicate_of && !facts.trials[i].model_info) trials.push_back(i);
  }
  return trials;
}

std::string unique_name(const std::string& name, std::set<std::string>& taken, size_t longest) {
  std::string unique = name.substr(0, longest);
  for (int number = 2; !taken.insert(unique).second; ++number) {
    const std::string ending = fmt::format("_{}", number);
    unique = name.substr(0, longest - ending.size()) + ending;
  }
  return unique;
}

const std::string& start_of(const host::TrialRecord& trial) {
  return trial.started_at.empty() ? trial.submitted_at : trial.started_at;
}

std::vector<std::string> tuned_keys(const host::StudyFacts& facts) {
  std::vector<std::string> keys;
  for (const size_t i : exported_trials(facts)) {
    for (const Leaf& leaf : leaves_of(facts.record.trials[i].overrides)) {
      if (std::find(keys.begin(), keys.end(), leaf.first) == keys.end()) keys.push_back(leaf.first);
    }
  }
  return keys;
}

std::vector<std::pair<std::string, double>> numbers_of(const host::TrialRecord& trial) {
  std::vector<std::pair<std::string, double>> numbers;
  for (const Leaf& leaf : leaves_of(trial.metrics)) {
    if (!leaf.second.is_number()) continue;
    const auto value = leaf.second.get<double>();
    if (std::isfinite(value)) numbers.emplace_back(leaf.first, value);
  }
  if (trial.peak_bytes) numbers.emplace_back("peak_bytes", static_cast<double>(*trial.peak_bytes));
  return numbers;
}

std::string outcome_of(const host::StudyFacts& facts, size_t index) {
  const auto& outcome = facts.record.trials[index].outcome;
  return outcome ? to_string(*outcome) : to_string(facts.trials[index].place);
}

std::string name_of(const host::StudyFacts& facts) {
  const auto it = facts.record.study.is_object() ? facts.record.study.find("name") : facts.record.study.end();
  if (facts.record.study.is_object() && it != facts.record.study.end() && it->is_string() &&
      !it->get<std::string>().empty()) {
    return one_line(it->get<std::string>());
  }
  return one_line(folder_of(facts).filename().string());
}

std::filesystem::path folder_of(const host::StudyFacts& facts) {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::absolute(facts.record.dir, ignored).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();  // "runs/tuesday/"
}

}  // namespace dsat::cli
