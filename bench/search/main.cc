// bench_search: compares all searchers on simulated jobs; docs/bench-search.md explains its tables. This file reads the
// command line, chooses scenarios and searchers, runs the contest, and prints or writes the results.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <csignal>
#include <fstream>
#include <iostream>

#include "dsat/base/numbers.h"
#include "dsat/base/split.h"
#include "search/contest.h"
#include "search/optuna.h"
#include "search/report.h"
#include "search/strangers/strangers.h"
#include "search/surfaces/surfaces.h"

namespace {

namespace po = boost::program_options;
using dsat::Error;
using dsat::split;
using namespace dsat::bench;  // NOLINT: a program of one file

po::options_description described() {
  po::options_description options("bench_search [options]");
  auto add = options.add_options();
  add("help", "this text");
  add("searchers", po::value<std::string>(), "names, separated by commas; plugins, optuna-tpe and optuna-random");
  add("scenarios", po::value<std::string>(), "those whose name or family begins with one of these, by commas");
  add("peaks", po::value<std::string>()->default_value("both"),
      "reported, silent or both: the half of each family whose trials report their peak memory, the other, or both");
  add("family-seed", po::value<int>()->default_value(1),
      "draws six, jobs, odd and strange; tune on 1 and 2, judge on others");
  add("noise", po::value<double>(),
      "percent: the noise of every trial, in place of the scenario's own; each reports the spread of its three steps");
  add("seeds", po::value<int>()->default_value(20), "seeds of each study");
  add("first-seed", po::value<int>()->default_value(1), "the first of them");
  add("budgets", po::value<std::string>(), "trials of the studies, ascending; default 8,16,20,32,64");
  add("concurrency", po::value<std::string>()->default_value("1"), "trials at a time; several by commas");
  add("quick", "3 seeds, budgets 8,16,32, every third scenario, no Optuna unless named");
  add("options", po::value<std::string>(), "JSON: {searcher: {option: value}}");
  add("optuna-oom", po::value<std::string>()->default_value("pruned"),
      "pruned, failed or zero: how an out-of-memory trial is reported to Optuna");
  add("python", po::value<std::string>()->default_value("/usr/bin/python3"), "the Python that has Optuna");
  add("plugins", po::value<std::string>(), "folder of the plugins; default: plugins beside this program");
  add("no-cache", "run all again, keep nothing");
  add("jobs", po::value<int>()->default_value(1), "threads");
  add("trace", po::value<std::string>(),
      "write every trial of the longest study of each seed to this file (- is stdout), with its true regret");
  add("brief", "the last table alone: a row for each half of a family, concurrency and searcher");
  add("json", po::value<std::string>(), "write the figures to this file");
  add("list", "name the scenarios and their mechanisms, and end");
  return options;
}

bool begins_with_one_of(const std::string& text, const std::vector<std::string>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const std::string& beginning) { return text.rfind(beginning, 0) == 0; });
}

int at_least_one(const po::variables_map& given, const char* name) {
  const int value = given[name].as<int>();
  if (value < 1) throw Error(fmt::format("--{} must be at least 1", name));
  return value;
}

std::vector<Surface> chosen_surfaces(const po::variables_map& given) {
  const std::string peaks = given["peaks"].as<std::string>();
  if (peaks != "reported" && peaks != "silent" && peaks != "both")
    throw Error("--peaks takes reported, silent or both");
  std::vector<Surface> all;
  const uint64_t seed = static_cast<uint64_t>(at_least_one(given, "family-seed"));
  for (const auto& some :
       {six_surfaces(seed), job_surfaces(seed, 20), odd_surfaces(seed), strange_surfaces(seed, kStrangeEach)}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  std::vector<Surface> chosen;
  const bool quick = given.count("quick") != 0 && given.count("scenarios") == 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (quick && i % 3 != 0) continue;
    if (given.count("scenarios") != 0) {
      const std::vector<std::string> wanted = split(given["scenarios"].as<std::string>(), ',');
      if (!begins_with_one_of(all[i].name, wanted) && !begins_with_one_of(all[i].family, wanted)) continue;
    }
    if (peaks != "silent") chosen.push_back(reporting(all[i]));
    if (peaks != "reported") chosen.push_back(silent(all[i]));
  }
  if (chosen.empty()) throw Error("no scenario of that name; see --list");
  return chosen;
}

// Sets the noise of a real DeepSpeed trial, whose step time is the median of three steps.
void set_noise(double percent, std::vector<Surface>& surfaces) {
  constexpr int kSteps = 3;
  if (!(percent > 0 && percent <= 100)) throw Error("--noise takes a percentage from 0 to 100");
  for (Surface& surface : surfaces) {
    surface.noise.trial = percent / 100;
    surface.noise.steps = kSteps;
  }
}

// All built plugins, and Optuna.
std::vector<std::string> default_searchers(const ContestOptions& options, bool quick) {
  std::vector<std::string> searchers;
  for (const char* name : {"guided", "asha", "binary", "random", "grid"}) {
    if (exists(options.plugins / fmt::format("lib{}.so", name))) searchers.push_back(name);
  }
  if (!quick) searchers.insert(searchers.end(), {"optuna-tpe", "optuna-random"});
  return searchers;
}

void drop_optuna_if_missing(ContestOptions& options) {
  const auto is_optuna = [](const std::string& name) { return name.rfind("optuna-", 0) == 0; };
  auto& searchers = options.searchers;
  if (std::none_of(searchers.begin(), searchers.end(), is_optuna)) return;
  if (!OptunaProcess(options.python, DSAT_OPTUNA_PEER).version().empty()) return;
  std::cerr << "Optuna is left out: " << options.python << " does not have it; install python3-optuna\n";
  searchers.erase(std::remove_if(searchers.begin(), searchers.end(), is_optuna), searchers.end());
}

// Ascending numbers, separated by commas.
std::vector<int> numbers_of(const po::variables_map& given, const char* name, int least) {
  std::vector<int> numbers;
  for (const std::string& part : split(given[name].as<std::string>(), ',')) {
    const std::optional<int64_t> number = dsat::parse_integer(part, least, 100000);
    if (!number) throw Error(fmt::format("--{} takes numbers from {} to 100000: {}", name, least, part));
    if (!numbers.empty() && *number <= numbers.back()) throw Error(fmt::format("--{} must ascend", name));
    numbers.push_back(static_cast<int>(*number));
  }
  if (numbers.empty()) throw Error(fmt::format("--{} is empty", name));
  return numbers;
}

std::vector<int> budgets_of(const po::variables_map& given) {
  if (given.count("budgets") != 0) return numbers_of(given, "budgets", 4);
  return given.count("quick") != 0 ? std::vector<int>{8, 16, 32} : std::vector<int>{8, 16, 20, 32, 64};
}

ContestOptions options_of(const po::variables_map& given) {
  ContestOptions options;
  const bool quick = given.count("quick") != 0;
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  options.plugins = given.count("plugins") != 0 ? given["plugins"].as<std::string>() : (here / "plugins").string();
  options.seeds = quick && given["seeds"].defaulted() ? 3 : at_least_one(given, "seeds");
  options.first_seed = at_least_one(given, "first-seed");
  options.jobs = at_least_one(given, "jobs");
  options.budgets = budgets_of(given);
  if (given.count("trace") != 0) options.trace = given["trace"].as<std::string>();
  options.python = given["python"].as<std::string>();
  options.optuna_oom = given["optuna-oom"].as<std::string>();
  if (options.optuna_oom != "pruned" && options.optuna_oom != "failed" && options.optuna_oom != "zero") {
    throw Error("--optuna-oom takes pruned, failed or zero");
  }
  if (given.count("options") != 0) {
    options.searcher_options = dsat::Json::parse(given["options"].as<std::string>(), nullptr, false);
    if (!options.searcher_options.is_object()) throw Error("--options takes a JSON object of objects");
  }
  const bool own_noise = given.count("noise") == 0;
  if (given.count("no-cache") == 0 && options.trace.empty() && own_noise) {
    options.cache = here / "bench" / "search-cache";
  }
  options.surfaces = chosen_surfaces(given);
  if (!own_noise) set_noise(given["noise"].as<double>(), options.surfaces);
  options.searchers = given.count("searchers") != 0 ? split(given["searchers"].as<std::string>(), ',')
                                                    : default_searchers(options, quick);
  drop_optuna_if_missing(options);
  if (options.searchers.empty()) throw Error("no searcher is left to run");
  return options;
}

int run(const po::variables_map& given) {
  if (given.count("list") != 0) {
    for (const Surface& surface : chosen_surfaces(given)) {
      const char* half = surface.reports_peak ? "reported" : "silent";
      std::cout << surface.family << "\t" << half << "\t" << surface.name << "\t" << surface.about << "\n";
    }
    return 0;
  }
  ContestOptions options = options_of(given);
  std::vector<ContestRun> runs;
  dsat::Json json = dsat::Json::array();
  const std::vector<int> concurrencies = numbers_of(given, "concurrency", 1);
  if (concurrencies.size() > 1 && !options.trace.empty()) throw Error("--trace takes one --concurrency");
  for (const int concurrency : concurrencies) {
    options.concurrency = concurrency;
    runs.push_back({concurrency, run_contest(options)});
    json.push_back(report_json(runs.back().results, options));
    if (given.count("brief") == 0) std::cout << table(runs.back().results, options);
  }
  std::cout << summary_table(runs, options);
  if (given.count("json") != 0) {
    std::ofstream out(given["json"].as<std::string>());
    out << (json.size() == 1 ? json.front() : json).dump(1) << "\n";
    if (!out) throw Error(fmt::format("cannot write {}", given["json"].as<std::string>()));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  po::variables_map given;
  try {
    po::store(po::command_line_parser(argc, argv).options(described()).positional({}).run(), given);
    if (given.count("help") != 0) {
      std::cout << described();
      return 0;
    }
    return run(given);
  } catch (const std::exception& error) {
    std::cerr << "bench_search: " << error.what() << "\n";
    return 2;
  }
}
