// Groups scenarios by family and averages over them. A column's mean is over scenarios, whose figures are medians or
// means over the seeds.
#include "search/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace dsat::bench {
namespace {

// A searcher's summaries over the scenarios of a family.
struct Column {
  std::string searcher;
  std::vector<const Summary*> summaries;

  template <class Get>
  double mean(Get get) const {
    double sum = 0;
    for (const Summary* summary : summaries) sum += get(*summary);
    return sum / static_cast<double>(summaries.size());
  }
  double mean_regret(int budget) const {
    return mean([&](const Summary& s) { return s.regret.at(budget); });
  }
  double worst_regret(int budget) const {
    double worst = 0;
    for (const Summary* summary : summaries) worst = std::max(worst, summary->regret.at(budget));
    return worst;
  }
  // The median over the scenarios; 0: never.
  double trials_to(double limit) const {
    std::vector<double> trials;
    for (const Summary* summary : summaries) {
      const double count = summary->trials_to.at(limit);
      trials.push_back(count > 0 ? count : 1e9);
    }
    const double middle = median(trials);
    return middle < 1e6 ? middle : 0;
  }
};

// The half of a family: results that are shown together.
std::string group_of(const ScenarioResult& result) {
  return result.family + (result.reports_peak ? ", reported" : ", silent");
}

std::vector<std::string> groups_of(const std::vector<ScenarioResult>& results) {
  std::vector<std::string> groups;
  for (const ScenarioResult& result : results) {
    const std::string group = group_of(result);
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

std::vector<Column> columns_of(const std::vector<ScenarioResult>& results, const std::string& group) {
  std::vector<Column> columns;
  for (const ScenarioResult& result : results) {
    if (group_of(result) != group) continue;
    columns.resize(result.entries.size());
    for (size_t i = 0; i < result.entries.size(); ++i) {
      columns[i].searcher = result.entries[i].searcher;
      columns[i].summaries.push_back(&result.entries[i].summary);
    }
  }
  return columns;
}

// The budgets in the tables. The budget of 20 trials serves only for the share of seeds within 1 %.
std::vector<int> shown_budgets(const ContestOptions& options) {
  std::vector<int> budgets;
  for (const int budget : options.budgets) {
    if (budget != 20) budgets.push_back(budget);
  }
  return budgets;
}

std::string count_or_never(double trials, int most) {
  return trials > 0 ? fmt::format("{:7.0f}", trials) : fmt::format("{:>7}", fmt::format(">{}", most));
}

std::string family_table(const std::vector<Column>& columns, const ContestOptions& options) {
  const std::vector<int> budgets = shown_budgets(options);
  std::string text = fmt::format("{:<14}", "regret, %");
  for (const int budget : budgets) text += fmt::format("{:8}", budget);
  for (const int budget : budgets) text += fmt::format("{:>8}", fmt::format("max {}", budget));
  text += "   OOM %  to 5 %  to 1 %  1 % at 20  wall/full  slots %  wall h  ms a trial\n";
  for (const Column& column : columns) {
    text += fmt::format("{:<14}", column.searcher);
    for (const int budget : budgets) text += fmt::format("{:8.2f}", column.mean_regret(budget));
    for (const int budget : budgets) text += fmt::format("{:8.2f}", column.worst_regret(budget));
    text += fmt::format("{:8.1f}", column.mean([](const Summary& s) { return s.out_of_memory; }));
    text += " " + count_or_never(column.trials_to(5), options.budgets.back());
    text += " " + count_or_never(column.trials_to(1), options.budgets.back());
    text += fmt::format("{:11.0f}", column.mean([](const Summary& s) { return s.within_1_at_20; }));
    text += fmt::format("{:11.2f}", column.mean([](const Summary& s) { return s.wall_ratio; }));
    text += fmt::format("{:9.1f}", column.mean([](const Summary& s) { return s.slot_use; }));
    text += fmt::format("{:8.2f}", column.mean([](const Summary& s) { return s.wall_h; }));
    text += fmt::format("{:12.2f}\n", column.mean([](const Summary& s) { return s.decision_ms; }));
  }
  return text;
}

// The median regrets of each scenario. `*`: no other searcher is better.
std::string scenario_table(const std::vector<ScenarioResult>& results, const std::string& group, int budget) {
  std::string text;
  for (const ScenarioResult& result : results) {
    if (group_of(result) != group) continue;
    if (text.empty()) {
      text = fmt::format("{:<18}", fmt::format("after {}", budget));
      for (const SearcherResult& entry : result.entries) text += fmt::format("{:>15}", entry.searcher);
      text += "\n";
    }
    double least = 1e9;
    for (const SearcherResult& entry : result.entries) least = std::min(least, entry.summary.regret.at(budget));
    text += fmt::format("{:<18}", result.name);
    for (const SearcherResult& entry : result.entries) {
      const double regret = entry.summary.regret.at(budget);
      text += fmt::format("{:14.2f}{}", regret, regret <= least + 1e-9 ? "*" : " ");
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string table(const std::vector<ScenarioResult>& results, const ContestOptions& options) {
  std::string text;
  for (const std::string& group : groups_of(results)) {
    const std::vector<Column> columns = columns_of(results, group);
    text += fmt::format("\n{}: {} scenarios, {} seeds, {} at a time; mean over scenarios of the median over seeds\n",
                        group, columns.front().summaries.size(), options.seeds, options.concurrency);
    text += family_table(columns, options);
    for (const int budget : {16, 32}) {
      if (std::find(options.budgets.begin(), options.budgets.end(), budget) == options.budgets.end()) continue;
      text += "\n" + scenario_table(results, group, budget);
    }
  }
  return text;
}

std::string summary_table(const std::vector<ContestRun>& runs, const ContestOptions& options) {
  const std::vector<int> budgets = shown_budgets(options);
  std::string text = fmt::format("\n{:<28} {:>9}  {:<14}", "regret, % (mean of medians)", "at a time", "searcher");
  for (const int budget : budgets) text += fmt::format("{:8}", budget);
  text += fmt::format("{:>9}   tried   OOM %\n", fmt::format("worst {}", budgets.back()));
  for (const std::string& group : groups_of(runs.front().results)) {
    for (const ContestRun& run : runs) {
      for (const Column& column : columns_of(run.results, group)) {
        text += fmt::format("{:<28} {:>9}  {:<14}", group, run.concurrency, column.searcher);
        for (const int budget : budgets) text += fmt::format("{:8.2f}", column.mean_regret(budget));
        text += fmt::format("{:9.1f}", column.worst_regret(budgets.back()));
        text += fmt::format("{:8.2f}", column.mean([](const Summary& s) { return s.tried; }));
        text += fmt::format("{:8.1f}\n", column.mean([](const Summary& s) { return s.out_of_memory; }));
      }
    }
  }
  return text;
}

Json report_json(const std::vector<ScenarioResult>& results, const ContestOptions& options) {
  Json scenarios = Json::array();
  for (const ScenarioResult& result : results) {
    Json entries = Json::object();
    for (const SearcherResult& entry : result.entries) {
      const Summary& summary = entry.summary;
      Json regrets = Json::object();
      for (const auto& [budget, regret] : summary.regret) regrets[std::to_string(budget)] = regret;
      entries[entry.searcher] = {{"median_regret_percent", regrets},
                                 {"median_regret_percent_of_tried", summary.tried},
                                 {"out_of_memory_percent", summary.out_of_memory},
                                 {"trials_to_5_percent", summary.trials_to.at(5)},
                                 {"trials_to_1_percent", summary.trials_to.at(1)},
                                 {"seeds_within_1_percent_at_20_percent", summary.within_1_at_20},
                                 {"wall_against_full_slots", summary.wall_ratio},
                                 {"slot_use_percent", summary.slot_use},
                                 {"wall_hours", summary.wall_h},
                                 {"real_ms_a_trial", summary.decision_ms}};
    }
    scenarios.push_back({{"name", result.name},
                         {"family", result.family},
                         {"reports_peak", result.reports_peak},
                         {"searchers", entries}});
  }
  return {{"seeds", options.seeds},
          {"first_seed", options.first_seed},
          {"concurrency", options.concurrency},
          {"budgets", options.budgets},
          {"scenarios", scenarios}};
}

}  // namespace dsat::bench
