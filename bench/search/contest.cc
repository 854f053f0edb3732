// Loads the plugins, prepares each scenario (optimum, fingerprint), and spreads pairs of scenario and searcher over the
// threads. Scores that the cache has are not run again.
#include "search/contest.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "search/cache.h"
#include "search/optuna.h"
#include "search/surfaces/optimum.h"

namespace dsat::bench {
namespace {

// Raise it whenever the rules of a study change here: no kept score outlives that.
constexpr const char* kRules = "rules 1";

bool is_optuna(const std::string& searcher) { return searcher.rfind("optuna-", 0) == 0; }

// A plugin with options of its own, compared under a name of its own.
struct Variant {
  std::string plugin;
  Json options = Json::object();
};

Variant variant_of(const std::string& name) {
  if (name == "asha-guided") return {"asha", {{"asha-draw", "guided"}}};
  return {name};
}

// A plugin's library, loaded for the life of the program.
class Library {
 public:
  Library(const std::filesystem::path& folder, const std::string& name)
      : file_(folder / fmt::format("lib{}.so", name)) {
    void* handle = dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw Error(fmt::format("cannot load a plugin: {}", dlerror()));
    entry_ = static_cast<const dsat_plugin_entry*>(dlsym(handle, "dsat_plugin_entry_v1"));
    if (entry_ == nullptr) throw Error(fmt::format("{} is no dsat plugin", file_.string()));
    hash_ = file_hash(file_);
  }
  const dsat_factory& factory(const char* id) const {
    const void* found = entry_->get_factory(id);
    if (found == nullptr) throw Error(fmt::format("{} has no {}", file_.string(), id));
    return *static_cast<const dsat_factory*>(found);
  }
  const std::string& hash() const { return hash_; }

 private:
  std::filesystem::path file_;
  const dsat_plugin_entry* entry_ = nullptr;
  std::string hash_;
};

struct ContestScenario {
  const Surface* surface;
  config::Space space;
  Optimum optimum;
  std::string fingerprint;
};

// Each trial's true regret, its overrides and why it was proposed.
void print_trace(const ContestScenario& scenario, uint64_t seed, const StudyRun& run) {
  const Surface& surface = *scenario.surface;
  const auto regret = [&](const Json& config) {
    return regret_percent(surface.throughput(point_of(config)), scenario.optimum.throughput);
  };
  fmt::print("{}, seed {}; the optimum is {}\n", surface.name, seed, scenario.optimum.overrides.dump());
  for (const TrialLog& trial : run.trials) {
    const std::string result =
        trial.outcome == Outcome::completed ? fmt::format("{:.2f}", regret(trial.config)) : "oom";
    fmt::print("{:3} {:>6} {}\n    {}\n", trial.id, result, Json::diff(surface.base_config(), trial.config).dump(),
               trial.note);
  }
  fmt::print("handed back: {:.2f} %\n", regret(run.best));
}

class Contest {
 public:
  explicit Contest(const ContestOptions& options)
      : options_(options), cache_(options.cache), profiler_(options.plugins, "profiler") {
    for (const std::string& name : options.searchers) {
      libraries_.push_back(is_optuna(name) ? nullptr
                                           : std::make_unique<Library>(options.plugins, variant_of(name).plugin));
    }
    if (std::any_of(options.searchers.begin(), options.searchers.end(), is_optuna)) {
      script_hash_ = file_hash(DSAT_OPTUNA_PEER);
      optuna_version_ = OptunaProcess(options.python, DSAT_OPTUNA_PEER).version();
    }
  }

  std::vector<ScenarioResult> run() {
    results_.resize(options_.surfaces.size());
    scenarios_.resize(options_.surfaces.size());
    spread(scenarios_.size(), [this](size_t i) { prepare(i); });
    spread(scenarios_.size() * options_.searchers.size(),
           [this](size_t i) { play(i / options_.searchers.size(), i % options_.searchers.size()); });
    return std::move(results_);
  }

 private:
  // Runs work(0..count) on as many threads as jobs; the first failure is thrown when all have ended.
  void spread(size_t count, const std::function<void(size_t)>& work) {
    std::atomic<size_t> next{0};
    std::exception_ptr failure;
    std::mutex mutex;
    const auto loop = [&] {
      try {
        for (size_t i = next++; i < count; i = next++) work(i);
      } catch (...) {
        next = count;
        const std::lock_guard<std::mutex> lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    };
    std::vector<std::thread> threads;
    for (int i = 1; i < options_.jobs; ++i) threads.emplace_back(loop);
    loop();
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
  }

  void prepare(size_t index) {
    const Surface& surface = options_.surfaces[index];
    ContestScenario& scenario = scenarios_[index];
    scenario.surface = &surface;
    scenario.space = surface.space();
    scenario.optimum = find_optimum(surface, scenario.space);
    if (scenario.optimum.throughput <= 0) throw Error(fmt::format("nothing fits in scenario {}", surface.name));
    scenario.fingerprint = fingerprint(surface, scenario.space);
    results_[index] = {
        surface.name, surface.family, surface.about, scenario.optimum.throughput, scenario.optimum.overrides, {}};
    for (const std::string& name : options_.searchers) results_[index].entries.push_back({name, {}});
  }

  void play(size_t index, size_t searcher) {
    const ContestScenario& scenario = scenarios_[index];
    const std::string key = key_of(scenario, searcher);
    std::optional<std::vector<SeedScore>> seeds = cache_.find(key);
    if (!seeds) {
      seeds.emplace();
      std::unique_ptr<OptunaProcess> optuna;
      if (libraries_[searcher] == nullptr) {
        optuna = std::make_unique<OptunaProcess>(options_.python, DSAT_OPTUNA_PEER);
      }
      for (int seed = 0; seed < options_.seeds; ++seed) {
        seeds->push_back(score(scenario, searcher, static_cast<uint64_t>(options_.first_seed + seed), optuna.get()));
      }
      cache_.put(key, *seeds);
    }
    results_[index].entries[searcher].summary = summarise(*seeds, options_.concurrency);
    const std::lock_guard<std::mutex> lock(mutex_);
    fmt::print(stderr, "{} of {}: {} on {}\n", ++done_, scenarios_.size() * options_.searchers.size(),
               options_.searchers[searcher], scenario.surface->name);
  }

  SeedScore score(const ContestScenario& scenario, size_t searcher, uint64_t seed, OptunaProcess* optuna) const {
    const std::string& name = options_.searchers[searcher];
    StudySetting setting{scenario.surface, &scenario.space, seed, options_.budgets.back(), options_.concurrency};
    const ProfileRun profile = run_profile(profiler_.factory(DSAT_PROFILER_FACTORY), setting);
    SeedScore score;
    if (optuna != nullptr) {
      // It does not know its budget: the shorter studies are the beginnings of the longest.
      OptunaStudy study(*optuna, name.substr(7), options_.optuna_oom, setting, profile);
      const StudyRun run = run_ask_tell(study, setting, profile);
      add_study(score, *scenario.surface, scenario.optimum.throughput, run, setting.max_trials, setting.concurrency);
      for (const int budget : options_.budgets) score.handed[budget] = score.so_far.at(static_cast<size_t>(budget - 1));
      return score;
    }
    const dsat_factory& factory = libraries_[searcher]->factory(DSAT_SEARCHER_FACTORY);
    for (const int budget : options_.budgets) {
      setting.max_trials = budget;
      const StudyRun run = run_searcher(factory, options_for(name), setting, profile);
      if (!run.error.empty()) throw Error(fmt::format("{} failed on {}: {}", name, scenario.surface->name, run.error));
      add_study(score, *scenario.surface, scenario.optimum.throughput, run, budget, setting.concurrency);
      if (options_.trace && budget == options_.budgets.back()) print_trace(scenario, seed, run);
    }
    return score;
  }

  Json options_for(const std::string& name) const {
    Json options = variant_of(name).options;
    options.update(options_.searcher_options.value(name, Json::object()));
    return options;
  }

  std::string key_of(const ContestScenario& scenario, size_t searcher) const {
    const std::string& name = options_.searchers[searcher];
    const std::string version = libraries_[searcher] == nullptr
                                    ? fmt::format("{} {} {}", script_hash_, optuna_version_, options_.optuna_oom)
                                    : libraries_[searcher]->hash() + options_for(name).dump();
    return fmt::format("{}, {} {}, profiler {}, {} {}, seeds {}+{}, budgets {}, {} at a time", kRules, name, version,
                       profiler_.hash(), scenario.surface->name, scenario.fingerprint, options_.first_seed,
                       options_.seeds, fmt::join(options_.budgets, " "), options_.concurrency);
  }

  const ContestOptions& options_;
  Cache cache_;
  Library profiler_;
  std::vector<std::unique_ptr<Library>> libraries_;  // null: Optuna
  std::string script_hash_, optuna_version_;
  std::vector<ContestScenario> scenarios_;
  std::vector<ScenarioResult> results_;
  std::mutex mutex_;
  size_t done_ = 0;
};

}  // namespace

std::vector<ScenarioResult> run_contest(const ContestOptions& options) { return Contest(options).run(); }

}  // namespace dsat::bench
