// bench_studies: what whole studies of the host hand back, family by family, after several budgets. It prints the
// table of docs/bench-search.md: regret and its worst surface, studies within 1 %, trials out of memory, keys that were
// changed, and studies that ended before their trials were spent. With --rest it runs each of these again to the end of
// its budget.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <iostream>
#include <optional>
#include <vector>

#include "dsat/base/numbers.h"
#include "dsat/base/split.h"
#include "search/score.h"
#include "search/strangers/strangers.h"
#include "search/surfaces/optimum.h"
#include "search/surfaces/surfaces.h"
#include "survival/whole_study.h"

namespace {

namespace po = boost::program_options;
using dsat::split;
using namespace dsat::bench;  // NOLINT: a program of one file

constexpr double kTolerance = 0.5, kFarOff = 3;  // %: guided's default, and more than an early end may lose

// All studies of a family's half with one budget.
struct Tally {
  std::vector<double> surfaces;  // median regret of each
  int studies = 0, within_1 = 0, trials = 0, out_of_memory = 0, early = 0, early_far_off = 0;
  std::vector<int> keys;
};

// The studies that ended early, and what the rest of their trials would have gained.
struct EarlyEnds {
  int studies = 0, above_tolerance = 0, far_off = 0, rest_above_tolerance = 0;
  double rest_percent = 0;  // sum

  void add(double regret, double regret_of_all) {
    ++studies;
    above_tolerance += regret > kTolerance ? 1 : 0;
    far_off += regret > kFarOff ? 1 : 0;
    rest_percent += regret - regret_of_all;
    rest_above_tolerance += regret - regret_of_all > kTolerance ? 1 : 0;
  }
  std::string text() const {
    return fmt::format(
        "{} studies ended early: {} more than {} % below the best, {} more than {} %. The rest of their trials gains "
        "{:.2f} % on average, and more than {} % in {} of them.\n",
        studies, above_tolerance, kTolerance, far_off, kFarOff, rest_percent / std::max(1, studies), kTolerance,
        rest_above_tolerance);
  }
};

po::options_description described() {
  po::options_description options("bench_studies [options]");
  auto add = options.add_options();
  add("help", "this text");
  add("families", po::value<std::string>()->default_value(""), "beginnings of families or names, by commas; all");
  add("family-seed", po::value<int>()->default_value(7), "draws the families; tune on 1 and 2, judge on others");
  add("seeds", po::value<int>()->default_value(20), "studies of each surface");
  add("first-seed", po::value<int>()->default_value(1), "the first of them");
  add("budgets", po::value<std::string>()->default_value("8,16,32,64"), "--max-trials, several by commas");
  add("peaks", po::value<std::string>()->default_value("reported,silent"),
      "reported, silent or both: whether trials report their peak memory");
  add("searcher", po::value<std::string>()->default_value("guided"), "a plugin");
  add("rest", "run each study of guided that ended early again to the end, and say what that gained");
  add("studies", "a line a study besides: regret, keys, trials, what was handed back");
  return options;
}

struct Judged {
  Surface surface;
  double optimum = 0;
};

std::vector<Judged> surfaces_of(const po::variables_map& given) {
  const auto seed = static_cast<uint64_t>(given["family-seed"].as<int>());
  const std::vector<std::string> wanted = split(given["families"].as<std::string>(), ',');
  const auto is_wanted = [&](const std::string& name) {
    return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& with) { return name.rfind(with, 0) == 0; });
  };
  std::vector<Judged> chosen;
  for (const auto& family :
       {six_surfaces(seed), job_surfaces(seed, 20), odd_surfaces(seed), strange_surfaces(seed, kStrangeEach)}) {
    for (const Surface& surface : family) {
      if (!is_wanted(surface.family) && !is_wanted(surface.name)) continue;
      chosen.push_back({surface, find_optimum(surface, surface.space()).throughput});
    }
  }
  if (chosen.empty()) throw dsat::Error("no family or surface begins so");
  return chosen;
}

double regret_without_an_early_end(const Judged& judged, WholeStudySetting setting) {
  setting.searcher_options = {{"tolerance", 0}};
  return regret_percent(run_whole_study(judged.surface, setting).throughput, judged.optimum);
}

void add_surface(const Judged& judged, const po::variables_map& given, WholeStudySetting setting, Tally& tally,
                 EarlyEnds& ends) {
  std::vector<double> regrets;
  const int first = given["first-seed"].as<int>();
  for (int seed = first; seed < first + given["seeds"].as<int>(); ++seed) {
    setting.seed = static_cast<uint64_t>(seed);
    const WholeStudy study = run_whole_study(judged.surface, setting);
    const double regret = regret_percent(study.throughput, judged.optimum);
    const bool early = study.trials < setting.max_trials;
    regrets.push_back(regret);
    ++tally.studies;
    tally.within_1 += regret <= 1 ? 1 : 0;
    tally.trials += study.trials;
    tally.out_of_memory += study.out_of_memory;
    tally.early += early ? 1 : 0;
    tally.early_far_off += early && regret > kFarOff ? 1 : 0;
    tally.keys.push_back(study.keys_changed);
    if (early && given.count("rest") != 0) ends.add(regret, regret_without_an_early_end(judged, setting));
    if (given.count("studies") == 0) continue;
    std::cout << fmt::format("{} {} of {} seed {}: regret {:.2f}, {} keys, {} trials, {} out of memory: {}\n",
                             judged.surface.name, judged.surface.reports_peak ? "reported" : "silent",
                             setting.max_trials, seed, regret, study.keys_changed, study.trials, study.out_of_memory,
                             study.best.is_null() ? "nothing"
                                                  : study.best["zero_optimization"].dump() + " micro batch " +
                                                        study.best["train_micro_batch_size_per_gpu"].dump())
              << std::flush;
  }
  tally.surfaces.push_back(median(regrets));
}

// One row: each column has a number a budget.
std::string row(const std::string& family, const std::vector<Tally>& tallies) {
  std::vector<std::string> mean, worst, within, memory, keys, early;
  for (const Tally& tally : tallies) {
    double sum = 0;
    for (const double regret : tally.surfaces) sum += regret;
    mean.push_back(fmt::format("{:.1f}", sum / static_cast<double>(tally.surfaces.size())));
    worst.push_back(fmt::format("{:.1f}", *std::max_element(tally.surfaces.begin(), tally.surfaces.end())));
    within.push_back(fmt::format("{:.0f}", 100.0 * tally.within_1 / tally.studies));
    memory.push_back(fmt::format("{:.0f}", 100.0 * tally.out_of_memory / std::max(1, tally.trials)));
    keys.push_back(fmt::format("{}", lower_median(tally.keys)));
    early.push_back(tally.early_far_off > 0 ? fmt::format("{} ({})", tally.early, tally.early_far_off)
                                            : fmt::format("{}", tally.early));
  }
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", family, fmt::join(mean, ", "), fmt::join(worst, ", "),
                     fmt::join(within, ", "), fmt::join(memory, ", "), fmt::join(keys, ", "), fmt::join(early, ", "));
}

std::vector<int> budgets_of(const po::variables_map& given) {
  constexpr int kLeast = 4, kMost = 100'000;  // the profile and a trial; bench_search's
  std::vector<int> budgets;
  for (const std::string& text : split(given["budgets"].as<std::string>(), ',')) {
    const std::optional<int64_t> budget = dsat::parse_integer(text, kLeast, kMost);
    if (!budget) throw dsat::Error(fmt::format("--budgets takes numbers from {} to {}: {}", kLeast, kMost, text));
    budgets.push_back(static_cast<int>(*budget));
  }
  return budgets;
}

void run(const po::variables_map& given) {
  for (const char* name : {"seeds", "first-seed", "family-seed"}) {
    if (given[name].as<int>() < 1) throw dsat::Error(fmt::format("--{} must be at least 1", name));
  }
  const std::vector<int> budgets = budgets_of(given);
  std::vector<Judged> surfaces = surfaces_of(given);
  EarlyEnds ends;
  std::cout << "| family | regret % | worst surface | within 1 % | out of memory % | keys | early ends |\n"
               "|---|---|---|---|---|---|---|\n";
  for (size_t begin = 0, end = 0; begin < surfaces.size(); begin = end) {
    while (end < surfaces.size() && surfaces[end].surface.family == surfaces[begin].surface.family) ++end;
    for (const std::string& peaks : split(given["peaks"].as<std::string>(), ',')) {
      if (peaks != "reported" && peaks != "silent")
        throw dsat::Error("--peaks takes reported, silent or both, by a comma");
      std::vector<Tally> tallies;
      for (const int budget : budgets) {
        WholeStudySetting setting;
        setting.searcher = given["searcher"].as<std::string>();
        setting.max_trials = budget;
        tallies.emplace_back();
        for (size_t i = begin; i < end; ++i) {
          surfaces[i].surface.reports_peak = peaks == "reported";
          add_surface(surfaces[i], given, setting, tallies.back(), ends);
        }
      }
      std::cout << row(surfaces[begin].surface.family + ", " + peaks, tallies) << std::flush;
    }
  }
  if (given.count("rest") != 0) std::cout << ends.text();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    po::variables_map given;
    po::store(po::parse_command_line(argc, argv, described()), given);
    po::notify(given);
    if (given.count("help") != 0) return std::cout << described(), 0;
    run(given);
  } catch (const std::exception& e) {
    return std::cerr << "bench_studies: " << e.what() << '\n', 2;
  }
  return 0;
}
